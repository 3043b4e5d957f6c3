//! Looking at processes through `/proc`.
//!
//! Invariants: read-only; a process that ends while it is looked at is simply absent.

use std::path::Path;

use crate::Pidfile;

/// The parts of `/proc/<pid>/stat` that identify a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) state: char,
    pub(crate) session: i32,
    /// Clock ticks since boot.
    pub(crate) start_time_ticks: u64,
    /// User and system time of the process itself.
    pub(crate) own_ticks: u64,
    /// The same of the children that it has reaped.
    pub(crate) children_ticks: u64,
}

impl Stat {
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Option<Self> {
        // The command name may itself hold blanks and parentheses.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            state: fields.first()?.chars().next()?,
            session: fields.get(3)?.parse().ok()?,
            start_time_ticks: number(19)?,
            own_ticks: number(11)? + number(12)?,
            children_ticks: number(13)? + number(14)?,
        })
    }

    /// It still runs (or sleeps); a zombie has already ended.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

/// Live processes of the session.
pub(crate) fn session_members(session: i32) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| Stat::of(pid).is_some_and(|s| s.session == session && s.is_alive()))
        .collect()
}

/// Resident memory of one process in KiB.
pub(crate) fn rss_kib(pid: i32) -> Option<u64> {
    let path = format!("/proc/{pid}/status");
    let text = std::fs::read_to_string(Path::new(&path)).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The process is there, alive, and no other one that got its number.
pub(crate) fn is(identity: Pidfile) -> bool {
    Stat::of(identity.pid)
        .is_some_and(|s| s.is_alive() && s.start_time_ticks == identity.start_time_ticks)
}

/// `root` and everything below it that is alive. Complete below the init of a pid namespace, since
/// orphans become its children.
pub(crate) fn tree(root: i32) -> Vec<i32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        next += 1;
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(
                text.split_whitespace()
                    .filter_map(|p| p.parse::<i32>().ok()),
            );
        }
    }
    found.retain(|&pid| Stat::of(pid).is_some_and(|s| s.is_alive()));
    found.sort_unstable();
    found.dedup();
    found
}

/// Memory of one process in bytes: its proportional share, or all that is resident where the
/// kernel refuses the share (another user's process).
pub(crate) fn memory_bytes(pid: i32) -> Option<u64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
    let share = rollup.ok().and_then(|text| {
        let line = text.lines().find_map(|l| l.strip_prefix("Pss:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    });
    Some(share.or_else(|| rss_kib(pid))?.saturating_mul(1024))
}

/// Bytes read from and written to block devices, with reaped children; `None` where it is refused.
pub(crate) fn io_bytes(pid: i32) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let value = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    Some((value("read_bytes:")?, value("write_bytes:")?))
}

/// Clock ticks of `/proc` in ms.
pub(crate) fn ticks_to_ms(ticks: u64) -> u64 {
    let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK);
    let per_second = per_second
        .ok()
        .flatten()
        .and_then(|n| u64::try_from(n).ok());
    ticks.saturating_mul(1000) / per_second.unwrap_or(100).max(1)
}

/// Processes that the kernel has killed for want of memory since the machine started; `None` where
/// it does not say.
pub(crate) fn machine_oom_kills() -> Option<u64> {
    oom_kills_of(&std::fs::read_to_string("/proc/vmstat").ok()?)
}

fn oom_kills_of(vmstat: &str) -> Option<u64> {
    let mut lines = vmstat.lines();
    lines.find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_for_memory_are_read_by_their_exact_name() {
        let text = "oom_kill_disable 7\npgfault 12\noom_kill 3\n";
        assert_eq!(oom_kills_of(text), Some(3));
        assert_eq!(oom_kills_of("pgfault 12\n"), None);
    }

    #[test]
    fn a_command_name_with_parentheses_does_not_shift_the_fields() {
        let text = "42 (a) b (c)) S 1 42 41 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 10 11";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(stat.session, 41);
        assert_eq!(stat.start_time_ticks, 987_654);
        assert_eq!((stat.own_ticks, stat.children_ticks), (11, 15));
        assert!(stat.is_alive());
        assert_eq!(Stat::parse("nonsense"), None);
    }

    #[test]
    fn this_process_is_found_in_its_session_and_has_memory() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let session = Stat::of(pid).unwrap().session;
        assert!(session_members(session).contains(&pid));
        assert!(rss_kib(pid).unwrap() > 100);
    }
}
