//! What a whole process tree used, and whose fault an out-of-memory kill is.
//!
//! Invariants: a figure that was not measured is `None`, never 0. The verdict is a pure table over
//! the record, so that a replay of the record decides the same.

use serde::{Deserialize, Serialize};

/// Where the figures of an [`Accounting`] come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountingSource {
    /// `/proc`, looked at every 500 ms below the sandbox's init. **Every figure is a lower bound**:
    /// what a process uses between its last sample and its end is missed, and so is a process that
    /// lives between two samples.
    Sampled,
    /// The tree's own control group, version 2: exact.
    Cgroup,
    /// A control group of version 2 for CPU time and ones of version 1 for memory and processes:
    /// exact. Bytes to and from devices are [`Self::Sampled`]: version 1 does not see buffered
    /// writes.
    CgroupHybrid,
}

/// What a tree of processes used (EXE-10).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accounting {
    /// Where the figures come from.
    pub source: AccountingSource,
    /// User and system time of all processes, in ms.
    pub cpu_ms: Option<u64>,
    /// Highest memory of the whole tree, in bytes. Sampled: resident pages, shared ones in
    /// proportion, without pages of a memory file system that no process has mapped. In a control
    /// group: everything that is charged to it, with such files and the page cache.
    pub memory_peak_bytes: Option<u64>,
    /// Bytes read from block devices.
    pub read_bytes: Option<u64>,
    /// Bytes written to block devices.
    pub write_bytes: Option<u64>,
    /// Processes of the tree that an out-of-memory killer ended; `None` under `plain`.
    pub oom_kills: Option<u64>,
    /// The tree reached its own memory limit. Sampled: it was seen above it and was ended for it.
    pub limit_hit: bool,
    /// Out-of-memory kills on the whole machine while the tree ran, without its own: pressure that
    /// is nobody's own limit.
    pub slice_oom_kills: Option<u64>,
    /// Most processes at once; in a control group threads count.
    pub processes_peak: Option<u64>,
    /// Processes that survived SIGKILL until the bound; above 0, nothing may be sealed (EXE-09).
    pub left: u32,
}

impl Accounting {
    /// A record without any figure.
    #[must_use]
    pub fn unmeasured(source: AccountingSource) -> Self {
        Self {
            source,
            cpu_ms: None,
            memory_peak_bytes: None,
            read_bytes: None,
            write_bytes: None,
            oom_kills: None,
            limit_hit: false,
            slice_oom_kills: None,
            processes_peak: None,
            left: 0,
        }
    }
}

/// Whose fault an out-of-memory kill is (EXE-06).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OomVerdict {
    /// Nothing died of memory.
    None,
    /// Its own limit was hit: the candidate's fault `oom`.
    Candidate,
    /// The slice or the machine was short of memory: `infra_oom`.
    Infra,
}

/// EXE-06 as a table. `killed_by_other`: the main process ended by a SIGKILL that we did not send.
///
/// | killed by OOM | own limit | pressure above | `killed_by_other` | verdict |
/// |---|---|---|---|---|
/// | yes | hit | any | any | candidate |
/// | yes | not hit | any | any | infra |
/// | not counted (sampled) | hit | any | any | candidate |
/// | no | hit | any | any | as if not hit: approaching a limit is only recorded |
/// | no or not counted | not hit | yes | yes | infra |
/// | anything else | | | | none |
///
/// Ask it about failed executions only: a program may survive the kill of one of its children.
#[must_use]
pub fn oom_verdict(accounting: &Accounting, killed_by_other: bool) -> OomVerdict {
    let pressure = accounting.slice_oom_kills.is_some_and(|n| n > 0);
    match (accounting.oom_kills, accounting.limit_hit) {
        (Some(1..), true) | (None, true) => OomVerdict::Candidate,
        (Some(1..), false) => OomVerdict::Infra,
        (Some(0), _) | (None, false) if pressure && killed_by_other => OomVerdict::Infra,
        (Some(0), _) | (None, false) => OomVerdict::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_exe_06() {
        use OomVerdict::{Candidate, Infra, None as Nothing};
        // oom_kills, limit_hit, slice_oom_kills, killed_by_other
        let rows = [
            (Some(1), true, Some(0), false, Candidate),
            (Some(1), true, Some(3), true, Candidate),
            (Some(2), true, None, true, Candidate),
            (Some(1), false, Some(0), true, Infra),
            (Some(1), false, None, false, Infra),
            (Some(1), false, Some(1), true, Infra),
            (None, true, None, true, Candidate),
            (None, true, Some(1), false, Candidate),
            (Some(0), true, Some(0), false, Nothing),
            (Some(0), true, None, true, Nothing),
            (Some(0), true, Some(1), true, Infra),
            (Some(0), false, Some(1), true, Infra),
            (Some(0), false, Some(1), false, Nothing),
            (Some(0), false, Some(0), true, Nothing),
            (None, false, Some(1), true, Infra),
            (None, false, Some(1), false, Nothing),
            (None, false, None, true, Nothing),
        ];
        for (oom_kills, limit_hit, slice_oom_kills, killed_by_other, expected) in rows {
            let record = Accounting {
                oom_kills,
                limit_hit,
                slice_oom_kills,
                ..Accounting::unmeasured(AccountingSource::Sampled)
            };
            assert_eq!(
                oom_verdict(&record, killed_by_other),
                expected,
                "{record:?} {killed_by_other}"
            );
        }
    }
}
