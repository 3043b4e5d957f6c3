//! How the helper was started: by somebody who may map a separate id, or by an ordinary user.
//!
//! Invariants: decided once, from the kernel's own tables; root of a user namespace in which the
//! sandbox's id is not mapped counts as an ordinary user.

use nix::errno::Errno;
use nix::sys::stat::fstat;
use nix::unistd::{Gid, Pid, Uid, fchown, getegid, geteuid};

use super::{OrRefuse, Refusal};
use crate::plan::{INIT_ID, INSIDE_ID, OuterIds};
use crate::report::SetupStep;

/// Start mode with the payload's ids on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// May map any id: the payload runs as `OuterIds`, init as the ids that follow them.
    Root(OuterIds),
    /// May map any id and maps one, as an ordinary user does: for the attack suite's build.
    One(OuterIds),
    /// May map only its own ids.
    User(OuterIds),
}

impl Start {
    pub(crate) fn detect(wanted: OuterIds) -> Self {
        let both = |file: &str, id: u32| {
            std::fs::read_to_string(file)
                .is_ok_and(|table| table_maps(&table, id) && table_maps(&table, id + 1))
        };
        let is_root = geteuid().is_root()
            && both("/proc/self/uid_map", wanted.uid)
            && both("/proc/self/gid_map", wanted.gid);
        if is_root {
            return Self::Root(wanted);
        }
        Self::User(OuterIds {
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
        })
    }

    pub(crate) fn outer(self) -> OuterIds {
        match self {
            Self::Root(ids) | Self::One(ids) | Self::User(ids) => ids,
        }
    }

    pub(crate) fn is_root(self) -> bool {
        matches!(self, Self::Root(_) | Self::One(_))
    }

    /// How many ids are mapped.
    pub(crate) fn ids(self) -> u32 {
        match self {
            Self::Root(_) => 2,
            Self::One(_) | Self::User(_) => 1,
        }
    }

    /// Writes the id maps of the freshly cloned child.
    pub(crate) fn write_maps(self, child: Pid) -> Result<(), Refusal> {
        let write = |name: &str, text: String| {
            let path = format!("/proc/{child}/{name}");
            std::fs::write(&path, text)
                .or_refuse(SetupStep::IdMap, || format!("cannot write {path}"))
        };
        if !self.is_root() {
            write("setgroups", "deny".to_owned())?;
        }
        let OuterIds { uid, gid } = self.outer();
        let map = |id: u32| {
            let payload = format!("{INSIDE_ID} {id} 1\n");
            match self {
                Self::Root(_) => format!("{payload}{INIT_ID} {} 1\n", id + 1),
                Self::One(_) | Self::User(_) => payload,
            }
        };
        write("gid_map", map(gid))?;
        write("uid_map", map(uid))
    }

    /// Init's id inside: its own where two can be mapped, so that the payload can do nothing to it.
    pub(crate) fn init_id(self) -> u32 {
        match self {
            Self::Root(_) => INIT_ID,
            Self::One(_) | Self::User(_) => INSIDE_ID,
        }
    }

    /// Gives the payload's pipes to its user, so that `/dev/stdout` can be opened by name.
    pub(crate) fn own_stdio(self) -> Result<(), Errno> {
        let (Self::Root(ids) | Self::One(ids)) = self else {
            return Ok(());
        };
        let (out, err) = (std::io::stdout(), std::io::stderr());
        for fd in [
            std::os::fd::AsFd::as_fd(&out),
            std::os::fd::AsFd::as_fd(&err),
        ] {
            let kind = fstat(fd)?.st_mode & libc::S_IFMT;
            if kind == libc::S_IFIFO {
                fchown(
                    fd,
                    Some(Uid::from_raw(ids.uid)),
                    Some(Gid::from_raw(ids.gid)),
                )?;
            }
        }
        Ok(())
    }
}

/// Whether the `inside outside count` lines of an id map contain `id` on the inside.
fn table_maps(table: &str, id: u32) -> bool {
    table.lines().any(|line| {
        let mut numbers = line
            .split_whitespace()
            .filter_map(|n| n.parse::<u64>().ok());
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(first), Some(_), Some(count)) => {
                (first..first.saturating_add(count)).contains(&u64::from(id))
            }
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_maps_are_read_as_ranges() {
        assert!(table_maps("         0          0 4294967295\n", 64_100));
        assert!(!table_maps("0 1000 1\n", 64_100));
        assert!(table_maps("0 1000 1\n1 100000 65536\n", 64_100));
        assert!(!table_maps("", 64_100));
    }
}
