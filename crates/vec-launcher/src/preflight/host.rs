//! Room on disk and in memory, and sockets that fit.

use std::path::Path;

use crate::prepare::Prepared;
use crate::runtime_dir::RuntimeDir;

/// Free space beside the snapshot: archive, programs, trajectories.
const DISK_HEADROOM_BYTES: u64 = 256 << 20;

const MIB: u64 = 1 << 20;

/// Is there room for the run's snapshot and for what it will write?
pub(super) fn disk(prepared: &Prepared, root: &Path) -> Result<((), String), String> {
    let snapshot = tree_bytes(&prepared.prefix) + tree_bytes(&prepared.built.dir);
    let outputs = u64::from(prepared.board.limits.output_max_mb) * MIB;
    let needed = snapshot + DISK_HEADROOM_BYTES + outputs;
    let free = free_bytes(root).map_err(|error| format!("look at {}: {error}", root.display()))?;
    check_room(free, needed, root)
}

fn check_room(free: u64, needed: u64, root: &Path) -> Result<((), String), String> {
    let text = format!(
        "{} MiB free at {}, {} MiB needed",
        free / MIB,
        root.display(),
        needed / MIB
    );
    if free < needed {
        return Err(format!("{text}; free some space or pass another --root"));
    }
    Ok(((), text))
}

// The root itself may not exist yet.
fn free_bytes(root: &Path) -> std::io::Result<u64> {
    let existing = root.ancestors().find(|path| path.exists()).unwrap_or(root);
    let found = rustix::fs::statvfs(existing)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

fn tree_bytes(path: &Path) -> u64 {
    let Ok(found) = path.symlink_metadata() else {
        return 0;
    };
    if !found.is_dir() {
        return found.len();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| tree_bytes(&entry.path())).sum()
}

/// Is there memory for everything that runs at a time?
pub(super) fn memory(prepared: &Prepared) -> Result<((), String), String> {
    let text = std::fs::read_to_string("/proc/meminfo")
        .map_err(|error| format!("read /proc/meminfo: {error}"))?;
    // Every probe has an "unavailable" answer (architecture §8).
    let Some(available) = available_kib(&text) else {
        return Ok(((), "available memory is unknown here".to_owned()));
    };
    let one = prepared.board.limits.memory_gb;
    check_memory(
        available,
        f64::from(prepared.config.concurrency.nodes) * one,
    )
}

fn check_memory(available_kib: u64, needed_gb: f64) -> Result<((), String), String> {
    let available_gb = available_kib as f64 / f64::from(1 << 20);
    let text = format!("{available_gb:.1} GB available, {needed_gb:.1} GB needed for executions");
    if available_gb < needed_gb {
        return Err(format!(
            "{text}; end other programs or lower concurrency.nodes"
        ));
    }
    Ok(((), text))
}

fn available_kib(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Do the sockets of a run fit below the runtime directory? It was checked when it was opened.
pub(super) fn runtime_dir(runtime: &RuntimeDir) -> Result<((), String), String> {
    vec_proto::check_socket_path(&runtime.longest_socket()).map_err(|error| error.to_string())?;
    Ok(((), runtime.path().display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_room_is_refused_with_the_figures() {
        let root = Path::new("/runs");
        assert!(check_room(2 * MIB, 2 * MIB, root).is_ok());
        let error = check_room(2 * MIB - 1, 2 * MIB, root).expect_err("full");
        assert!(
            error.contains("1 MiB free at /runs, 2 MiB needed"),
            "{error}"
        );
    }

    #[test]
    fn free_space_is_that_of_the_nearest_directory_that_exists() {
        let dir = tempfile::tempdir().expect("dir");
        assert!(free_bytes(&dir.path().join("a/b/c")).expect("known") > 0);
    }

    #[test]
    fn too_little_memory_is_refused_and_no_figure_is_no_refusal() {
        assert_eq!(
            available_kib("MemFree: 1 kB\nMemAvailable:   1048576 kB\n"),
            Some(1 << 20)
        );
        assert_eq!(available_kib("MemFree: 1 kB\n"), None);
        assert!(check_memory(1 << 20, 1.0).is_ok());
        assert!(check_memory((1 << 20) - 1_024, 1.0).is_err());
    }

    #[test]
    fn trees_are_summed_without_following_links() {
        let dir = tempfile::tempdir().expect("dir");
        std::fs::create_dir(dir.path().join("a")).expect("dir");
        std::fs::write(dir.path().join("a/x"), "12345").expect("file");
        let before = tree_bytes(dir.path());
        std::os::unix::fs::symlink("/usr", dir.path().join("link")).expect("link");
        assert_eq!(before, 5);
        assert!(tree_bytes(dir.path()) < 100);
    }
}
