//! Filling a new run directory: code snapshot, views, inputs, lock and the small documents, all of
//! it in the ledger before the first daemon starts. The launcher is the run's writer until here.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;
use vec_config::{CandidateEnvironment, Lock, SandboxRecord, SelfTest, Supervisor, TruthIsolation};
use vec_lock::{
    LockBuildError, LockInputs, Pin, SnapshotError, SnapshotInputs, TruthInputs, build_lock,
    lock_bytes, pin_inputs, prompt_hashes, snapshot_code, view_facts,
};
use vec_sandbox::candidate_env;
use vec_store::{Batch, NewFile, RunLayout, Store, StoreError, rel};
use vec_types::{CanonicalError, PathError, RelPath, UnixMs, pretty_json};

use crate::preflight::{Findings, Prebuilt};
use crate::prepare::Prepared;

/// Why a run cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockingError {
    /// Code or inputs cannot be copied.
    #[error("copy code and inputs")]
    Snapshot(#[source] SnapshotError),
    /// Configuration, board and self-test do not make a lock.
    #[error("make the lock")]
    Lock(#[source] LockBuildError),
    /// The run directory cannot be written.
    #[error("write the run directory")]
    Store(#[source] StoreError),
    /// The configuration file cannot be read again.
    #[error("read {}", path.display())]
    Source {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The configuration file changed while the run was being made.
    #[error("{} changed while the run was being made; launch again", path.display())]
    SourceChanged {
        /// The file.
        path: PathBuf,
    },
    /// A document has no JSON form.
    #[error("write run_meta.json")]
    Encode(#[source] CanonicalError),
    /// A name that cannot stand in a run directory: a bug.
    #[error("name the inputs")]
    Name(#[source] PathError),
    /// Preflight has no numbers of the scorer: a bug.
    #[error("preflight has no numbers of the scorer")]
    NoSelfTest,
    /// The copying task was cut short.
    #[error("copying was cut short: {0}")]
    Task(String),
}

/// Fills the run directory and lets go of it. Returns the lock as written.
///
/// # Errors
/// [`LockingError`]; the caller removes the directory.
pub(crate) async fn lock_run(
    mut store: Store,
    prepared: Prepared,
    findings: Findings,
    supervisor: Supervisor,
    at: UnixMs,
) -> Result<Lock, LockingError> {
    let layout = store.layout().clone();
    let began = Instant::now();
    let filled =
        tokio::task::spawn_blocking(move || fill(&layout, prepared, findings, supervisor, at))
            .await;
    let Filled {
        lock,
        config_source,
        meta,
    } = filled.map_err(|error| LockingError::Task(error.to_string()))??;
    let lock_json = lock_bytes(&lock).map_err(LockingError::Lock)?;
    let copied: Vec<RelPath> = ["code", "views", "inputs"]
        .into_iter()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(LockingError::Name)?;
    let copied_ms = elapsed_ms(began);
    store
        .register_existing(at, &copied)
        .await
        .map_err(LockingError::Store)?;
    let files = vec![
        NewFile::create(rel::config_lock(), lock_json),
        NewFile::create(rel::config_source(), config_source),
        NewFile::create(rel::run_meta(), meta),
    ];
    let batch = Batch {
        at,
        files,
        events: Vec::new(),
    };
    store.commit(batch).await.map_err(LockingError::Store)?;
    store.release().await.map_err(LockingError::Store)?;
    tracing::info!(run = %lock.run_id, copied_ms, total_ms = elapsed_ms(began), "run locked");
    Ok(lock)
}

fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

struct Filled {
    lock: Lock,
    config_source: Vec<u8>,
    meta: Vec<u8>,
}

fn fill(
    layout: &RunLayout,
    prepared: Prepared,
    findings: Findings,
    supervisor: Supervisor,
    at: UnixMs,
) -> Result<Filled, LockingError> {
    let config_source = config_source(&prepared)?;
    let snapshot = SnapshotInputs {
        prefix: &prepared.prefix,
        build: &prepared.build,
        config: &prepared.config,
        board: &prepared.board,
    };
    let code = layout.code();
    let code_snapshot = snapshot_code(snapshot, &code).map_err(LockingError::Snapshot)?;
    let pins = pins(&prepared)?;
    let pinned_inputs = pin_inputs(layout.run_dir(), &pins).map_err(LockingError::Snapshot)?;
    let views = prepared
        .built
        .views
        .keys()
        .map(|view| Ok((view.clone(), view_facts(&layout.view(view))?)))
        .collect::<Result<_, SnapshotError>>()
        .map_err(LockingError::Snapshot)?;
    let prompt_hashes = prompt_hashes(&code).map_err(LockingError::Snapshot)?;
    let Findings {
        items: _,
        isolation,
        prebuilt,
    } = findings;
    let truth = truth(prebuilt.ok_or(LockingError::NoSelfTest)?, &prepared)?;
    let sandbox = SandboxRecord {
        path: prepared.sandbox_helper(),
        sha256: prepared.build.sandbox.sha256,
        isolation,
    };
    let meta = json!({
        "run_id": layout.run(),
        "board": prepared.board.board,
        "created_at": at.to_string(),
        "purpose": prepared.config.purpose,
        "hypothesis": prepared.config.hypothesis,
        "stop_reason": null,
    });
    let environment = environment(&prepared);
    let lock = build_lock(LockInputs {
        run_id: layout.run().clone(),
        created_at: at,
        config: prepared.config,
        config_source: config_source.clone(),
        config_sets: prepared.source.sets,
        board: prepared.board,
        build: prepared.build,
        code_snapshot,
        prompt_hashes,
        views,
        pinned_inputs,
        truth,
        environment,
        sandbox,
        supervisor,
        truth_isolation: TruthIsolation::Convention,
        tainted_ancestors: BTreeSet::new(),
    })
    .map_err(LockingError::Lock)?;
    Ok(Filled {
        lock,
        config_source,
        meta: pretty_json(&meta).map_err(LockingError::Encode)?,
    })
}

// What is locked is what was validated: the file is read twice, and must not differ.
fn config_source(prepared: &Prepared) -> Result<Vec<u8>, LockingError> {
    let path = &prepared.source.path;
    let bytes = std::fs::read(path).map_err(|source| LockingError::Source {
        path: path.clone(),
        source,
    })?;
    match vec_config::load_config(path, &prepared.source.sets) {
        Ok(config) if config == prepared.config => Ok(bytes),
        _ => Err(LockingError::SourceChanged { path: path.clone() }),
    }
}

fn pins(prepared: &Prepared) -> Result<Vec<Pin>, LockingError> {
    let pin = |source: PathBuf, dest: String| {
        let dest = dest.parse().map_err(LockingError::Name)?;
        Ok(Pin { source, dest })
    };
    let mut pins = vec![pin(
        prepared.built.dir.join("BOARD.json"),
        "inputs/BOARD.json".to_owned(),
    )?];
    for (view, dir) in &prepared.built.views {
        pins.push(pin(dir.clone(), format!("views/{view}"))?);
    }
    if let Some(dir) = &prepared.python.dir {
        for name in ["ENV.json", "files.json"] {
            pins.push(pin(dir.join(name), format!("inputs/env/{name}"))?);
        }
    }
    Ok(pins)
}

fn truth(prebuilt: Prebuilt, prepared: &Prepared) -> Result<TruthInputs, LockingError> {
    let scores = prebuilt.scores().ok_or(LockingError::NoSelfTest)?;
    Ok(TruthInputs {
        sha256: prebuilt.truth_sha256,
        anchors: prebuilt.anchors,
        floor_prediction: prepared.built.record.floor_prediction,
        scorer_hash: prebuilt.scorer_hash,
        self_test: SelfTest {
            perfect: scores.perfect,
            baseline: scores.baseline,
            shuffled: scores.shuffled,
            constant: scores.constant,
            pair_difference: (scores.pair[0] - scores.pair[1]).abs(),
        },
    })
}

fn environment(prepared: &Prepared) -> CandidateEnvironment {
    let threads = prepared
        .board
        .limits
        .threads
        .min(prepared.config.execution.threads);
    let coretype = std::env::var("OPENBLAS_CORETYPE").ok();
    let has_env = prepared.python.dir.is_some();
    CandidateEnvironment {
        python: prepared.python.facts.clone(),
        variables: candidate_env(threads, has_env, coretype.as_deref()),
        cpu_model: vec_lock::cpu_model(),
        architecture: std::env::consts::ARCH.to_owned(),
    }
}
