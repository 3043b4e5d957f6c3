//! Where this process stands in the control-group file systems: pure, from `/proc/self/cgroup` and
//! `/proc/self/mountinfo` (cgroups(7)).
//!
//! Invariants: a path is given only for a hierarchy that is mounted and in which the process's own
//! group is visible; everything made later lies below that group, never beside it.

use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// Directories of the own group, per hierarchy that is of use.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Own {
    /// Version 2.
    pub(crate) unified: Option<PathBuf>,
    /// Version 1 with the `memory` controller.
    pub(crate) memory: Option<PathBuf>,
    /// Version 1 with the `pids` controller.
    pub(crate) pids: Option<PathBuf>,
}

/// One control-group file system.
struct Mount {
    /// The group that is the mount's root.
    root: PathBuf,
    point: PathBuf,
    /// Version 1: its options, among them the controllers' names. Version 2: none.
    controllers: Option<Vec<String>>,
}

/// Reads both texts; lines that are no control groups are passed over.
pub(crate) fn own(proc_self_cgroup: &str, mountinfo: &str) -> Own {
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(mount).collect();
    let directory = |controller: Option<&str>| {
        let group = group_of(proc_self_cgroup, controller)?;
        let mut fitting = mounts.iter().filter(|mount| match controller {
            None => mount.controllers.is_none(),
            Some(name) => has(mount.controllers.as_deref(), name),
        });
        fitting.find_map(|mount| inside(mount, &group))
    };
    Own {
        unified: directory(None),
        memory: directory(Some("memory")),
        pids: directory(Some("pids")),
    }
}

fn has(controllers: Option<&[String]>, name: &str) -> bool {
    controllers.is_some_and(|all| all.iter().any(|one| one == name))
}

/// `<id>:<controllers>:<path>`; version 2 is `0::<path>`.
fn group_of(proc_self_cgroup: &str, controller: Option<&str>) -> Option<PathBuf> {
    proc_self_cgroup.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let is_it = match controller {
            None => id == "0" && controllers.is_empty(),
            Some(name) => controllers.split(',').any(|one| one == name),
        };
        is_it.then(|| PathBuf::from(path))
    })
}

/// `<id> <parent> <device> <root> <point> <options> [<optional>...] - <type> <source> <options>`.
fn mount(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut right = right.split(' ');
    let (kind, _, options) = (right.next()?, right.next()?, right.next()?);
    let controllers = match kind {
        "cgroup2" => None,
        "cgroup" => Some(options.split(',').map(str::to_owned).collect()),
        _ => return None,
    };
    let mut left = left.split(' ').skip(3);
    Some(Mount {
        root: unescaped(left.next()?),
        point: unescaped(left.next()?),
        controllers,
    })
}

/// Blanks and such stand as `\ooo`.
fn unescaped(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let octal = bytes.get(at + 1..at + 4).filter(|_| byte == b'\\');
        let value = octal
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        out.push(value.unwrap_or(byte));
        at += if value.is_some() { 4 } else { 1 };
    }
    PathBuf::from(std::ffi::OsString::from_vec(out))
}

/// The group's directory below the mount; none when the mount does not reach it (a group outside
/// the namespace's root is shown with `..`).
fn inside(mount: &Mount, group: &Path) -> Option<PathBuf> {
    if group.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    let below = group.strip_prefix(&mount.root).ok()?;
    Some(if below.as_os_str().is_empty() {
        mount.point.clone()
    } else {
        mount.point.join(below)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2_MOUNT: &str =
        "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const HYBRID_MOUNTS: &str = "22 1 254:0 / / rw - ext4 /dev/vda rw
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";

    fn path(text: &str) -> Option<PathBuf> {
        Some(PathBuf::from(text))
    }

    #[test]
    fn every_kind_of_host() {
        let own_group = "/sys/fs/cgroup/user.slice/vec.scope";
        let rows = [
            (
                "version 2 alone",
                "0::/user.slice/vec.scope\n",
                V2_MOUNT,
                (path(own_group), None, None),
            ),
            (
                "version 2, in its root",
                "0::/\n",
                V2_MOUNT,
                (path("/sys/fs/cgroup"), None, None),
            ),
            (
                "hybrid",
                "9:name=systemd:/\n8:pids:/\n4:memory:/a/b\n0::/\n",
                HYBRID_MOUNTS,
                (
                    path("/sys/fs/cgroup/unified"),
                    path("/sys/fs/cgroup/memory/a/b"),
                    path("/sys/fs/cgroup/pids"),
                ),
            ),
            (
                "version 1 with joined controllers",
                "3:cpu,memory,pids:/x\n",
                "40 31 0:37 / /cg rw - cgroup cgroup rw,cpu,memory,pids\n",
                (None, path("/cg/x"), path("/cg/x")),
            ),
            (
                "a container that sees a part of the host's tree",
                "0::/docker/4f/init\n",
                "35 24 0:30 /docker/4f /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
                (path("/sys/fs/cgroup/init"), None, None),
            ),
            (
                "a group outside the namespace's root",
                "0::/../other\n",
                V2_MOUNT,
                (None, None, None),
            ),
            (
                "another part of the tree is mounted",
                "0::/a\n",
                "35 24 0:30 /b /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
                (None, None, None),
            ),
            (
                "a name with a blank and a colon",
                "0::/a b:c\n",
                "35 24 0:30 / /my\\040groups rw - cgroup2 cgroup2 rw\n",
                (path("/my groups/a b:c"), None, None),
            ),
            ("nothing mounted", "0::/\n", "", (None, None, None)),
            ("garbage", "x\n::\n", "- - -\n\n", (None, None, None)),
        ];
        for (what, cgroup, mounts, (unified, memory, pids)) in rows {
            let expected = Own {
                unified,
                memory,
                pids,
            };
            assert_eq!(own(cgroup, mounts), expected, "{what}");
        }
    }
}
