//! Can every model be used? Today all models are scripted: their playbook must load and know the
//! board's families.

use std::collections::BTreeSet;
use std::path::Path;

use vec_config::EndpointKind;
use vec_daemon::chain;
use vec_playbook::Playbook;
use vec_types::FamilyId;

use crate::prepare::Prepared;

/// Looks at every endpoint in use.
pub(super) fn models(prepared: &Prepared) -> Result<((), String), String> {
    let models = &prepared.config.models;
    let mut for_roles = BTreeSet::new();
    for endpoint in models.used().values() {
        match &endpoint.kind {
            EndpointKind::Playbook { playbook } => for_roles.insert(playbook.as_path()),
        };
    }
    if for_roles.len() > 1 {
        return Err(format!(
            "roles use {} playbooks; one run has one scripted model, so give all roles the same endpoint",
            for_roles.len()
        ));
    }
    let mut all = for_roles;
    all.extend(models.engineer_playbook().map(std::path::PathBuf::as_path));
    for playbook in &all {
        check_playbook(playbook, prepared)?;
    }
    let names: Vec<String> = all.iter().map(|path| path.display().to_string()).collect();
    Ok((
        (),
        format!(
            "{} models, scripted by {}",
            models.used().len(),
            names.join(", ")
        ),
    ))
}

fn check_playbook(path: &Path, prepared: &Prepared) -> Result<(), String> {
    let playbook = Playbook::load(path).map_err(|error| chain(&error).to_string())?;
    if playbook.board != prepared.board.board {
        return Err(format!(
            "{} is for board {}, the run is on {}",
            path.display(),
            playbook.board,
            prepared.board.board
        ));
    }
    let known: BTreeSet<&FamilyId> = playbook.families().map(|(id, _)| id).collect();
    let missing: Vec<&str> = prepared
        .board
        .families
        .iter()
        .filter(|family| !known.contains(&family.id))
        .map(|family| family.id.as_str())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} has no programs of the board's families {}",
        path.display(),
        missing.join(", ")
    ))
}
