//! Looking at processes through `/proc`.
//!
//! Invariants: read-only; a process that ends while it is looked at is simply absent.

use std::path::Path;

/// The parts of `/proc/<pid>/stat` that identify a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) state: char,
    pub(crate) session: i32,
    /// Clock ticks since boot.
    pub(crate) start_time_ticks: u64,
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
        Some(Self {
            state: fields.first()?.chars().next()?,
            session: fields.get(3)?.parse().ok()?,
            start_time_ticks: fields.get(19)?.parse().ok()?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_with_parentheses_does_not_shift_the_fields() {
        let text = "42 (a) b (c)) S 1 42 41 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 10 11";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(stat.session, 41);
        assert_eq!(stat.start_time_ticks, 987_654);
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
