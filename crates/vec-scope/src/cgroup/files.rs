//! Small files of control groups: single values, keyed values, lists of processes.
//!
//! Invariants: what is absent or no number is `None`, never 0.

use std::path::Path;

/// The only number of a file.
pub(super) fn value(directory: &Path, file: &str) -> Option<u64> {
    std::fs::read_to_string(directory.join(file))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// The number behind `key` in a file of lines `<key> <number>`.
pub(super) fn keyed(directory: &Path, file: &str, key: &str) -> Option<u64> {
    keyed_of(&std::fs::read_to_string(directory.join(file)).ok()?, key)
}

fn keyed_of(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok())?
    })
}

/// The sum over all devices of `key` in a file of lines `<device> <key>=<number>...` (`io.stat`).
pub(super) fn summed(directory: &Path, file: &str, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(directory.join(file)).ok()?;
    Some(summed_of(&text, key))
}

fn summed_of(text: &str, key: &str) -> u64 {
    let fields = text.split_whitespace();
    let values = fields.filter_map(|field| field.strip_prefix(key)?.strip_prefix('='));
    values.filter_map(|value| value.parse::<u64>().ok()).sum()
}

/// Words of a file, as `cgroup.controllers`.
pub(super) fn words(directory: &Path, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(directory.join(file)).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Pids in the group itself.
pub(super) fn processes(directory: &Path) -> Vec<i32> {
    let words = words(directory, "cgroup.procs");
    words.iter().filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_whole() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\nmax max\n";
        assert_eq!(keyed_of(text, "oom_kill"), Some(3));
        assert_eq!(keyed_of(text, "oom"), None);
        assert_eq!(keyed_of(text, "max"), None, "no number");
        assert_eq!(keyed_of("", "oom_kill"), None);
    }

    #[test]
    fn bytes_of_all_devices_are_added_up() {
        let text =
            "254:0 rbytes=10 wbytes=1 rios=7 wios=1 dbytes=0 dios=0\n8:16 rbytes=5 wbytes=2\n";
        assert_eq!(summed_of(text, "rbytes"), 15);
        assert_eq!(summed_of(text, "wbytes"), 3);
        assert_eq!(summed_of("", "rbytes"), 0);
    }
}
