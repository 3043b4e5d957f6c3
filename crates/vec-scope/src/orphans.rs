//! Groups that a dead process of the same run left.
//!
//! Invariants: found by name only. A control group is taken over only if no living process holds
//! it; a noted init is signalled only if pid and start time are its own. Call while the run is
//! locked by the caller: then nobody else of this run is at work. All of it takes 5 s at most,
//! whatever hangs.

use std::path::Path;
use std::sync::Arc;

use tokio::time::Instant;

use crate::{Pidfile, ScopeError, Supervisor, ending, names};

/// A group that was found and ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// Name of the group.
    pub name: String,
    /// Processes that were killed.
    pub killed: u32,
    /// Processes that survive SIGKILL; the group stays for the next sweep.
    pub left: u32,
}

impl Supervisor {
    /// Ends groups whose name begins with one of `prefixes`: those noted in `records` and, under
    /// `cgroup`, those whose control group is there.
    ///
    /// # Errors
    /// [`ScopeError::Name`]: a prefix that is no beginning of a group's name.
    pub async fn reap(
        &self,
        prefixes: &[String],
        records: &Path,
    ) -> Result<Vec<Orphan>, ScopeError> {
        for prefix in prefixes {
            names::check(prefix)?;
        }
        let deadline = Instant::now() + ending::KILL_MAX;
        let mut orphans = noted(prefixes, records, deadline).await;
        if let Self::Cgroup(groups) = self {
            for prefix in prefixes {
                for control in groups.orphans(prefix) {
                    let control = Arc::new(control);
                    let name = control.path().file_name().unwrap_or_default();
                    let name = name.to_string_lossy().into_owned();
                    let killed = u32::try_from(control.processes()).unwrap_or(u32::MAX);
                    let left = ending::end_control(&control, deadline).await;
                    let is_removed = ending::remove(&control, deadline).await;
                    orphans.push(Orphan {
                        name,
                        killed,
                        left: left.max(u32::from(!is_removed)),
                    });
                }
            }
        }
        Ok(orphans)
    }
}

async fn noted(prefixes: &[String], records: &Path, deadline: Instant) -> Vec<Orphan> {
    let entries = std::fs::read_dir(records).into_iter().flatten();
    let found: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    let mut orphans = Vec::new();
    for name in found {
        let path = records.join(&name);
        let ended = match Pidfile::read(&path) {
            Ok(Some(init)) => ending::end_tree(init, deadline).await,
            Ok(None) => continue,
            Err(error) => {
                tracing::warn!(%error, "the record of a group is unreadable and is dropped");
                ending::Ended::default()
            }
        };
        if ended.left == 0
            && let Err(error) = std::fs::remove_file(&path)
        {
            tracing::warn!(path = %path.display(), %error, "remove the record of a group");
        }
        if ended.killed > 0 {
            orphans.push(Orphan {
                name,
                killed: ended.killed,
                left: ended.left,
            });
        }
    }
    orphans
}
