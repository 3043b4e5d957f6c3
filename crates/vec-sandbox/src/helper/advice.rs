//! From a refused step and errno to what a person can do about it on this host.
//!
//! Invariants: `advice` is pure over [`HostFacts`]; the facts are read in the helper, never in the
//! sandbox. Advice never suggests running without the sandbox.

use nix::errno::Errno;

use crate::report::{SetupError, SetupStep};

/// The host settings that decide about user namespaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HostFacts {
    apparmor_restricts: bool,
    userns_clone_off: bool,
    max_user_namespaces: Option<u64>,
}

impl HostFacts {
    pub(crate) fn read() -> Self {
        let number =
            |path: &str| -> Option<u64> { std::fs::read_to_string(path).ok()?.trim().parse().ok() };
        Self {
            apparmor_restricts: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
                .is_some_and(|value| value != 0),
            userns_clone_off: number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0),
            max_user_namespaces: number("/proc/sys/user/max_user_namespaces"),
        }
    }
}

/// `error` with the advice for this host.
pub(crate) fn advised(mut error: SetupError) -> SetupError {
    let errno = error.errno.map(Errno::from_raw);
    error.advice = advice(error.step, errno, &HostFacts::read());
    error
}

/// Empty where the message says all.
pub(crate) fn advice(step: SetupStep, errno: Option<Errno>, facts: &HostFacts) -> String {
    let refused = matches!(errno, Some(Errno::EPERM | Errno::EACCES));
    let text = match step {
        SetupStep::Namespaces if facts.max_user_namespaces == Some(0) => {
            "user.max_user_namespaces is 0: as root, `sysctl -w user.max_user_namespaces=15000`"
        }
        SetupStep::Namespaces if errno == Some(Errno::ENOSPC) => {
            "the limit of user namespaces is reached: raise user.max_user_namespaces, or run one level less deep"
        }
        SetupStep::Namespaces if refused && facts.userns_clone_off => {
            "as root, `sysctl -w kernel.unprivileged_userns_clone=1`"
        }
        SetupStep::Namespaces
        | SetupStep::IdMap
        | SetupStep::Hostname
        | SetupStep::Loopback
        | SetupStep::Root
        | SetupStep::Capabilities
            if refused && facts.apparmor_restricts =>
        {
            "AppArmor restricts user namespaces here (Ubuntu 24.04): as root, load the profile in deploy/apparmor once (with your --prefix in it), or `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"
        }
        SetupStep::Namespaces if refused || errno == Some(Errno::ENOSYS) => {
            "a container's or service's own filter seems to forbid user namespaces: run vec outside of it, or allow clone3 with namespaces there"
        }
        SetupStep::Namespaces if errno == Some(Errno::EINVAL) => {
            "the kernel lacks a kind of namespace: Linux 5.12 or newer with user, pid, net, ipc, uts and cgroup namespaces is needed"
        }
        SetupStep::Bind if errno == Some(Errno::ENOSYS) => {
            "the kernel lacks mount_setattr: Linux 5.12 or newer is needed"
        }
        SetupStep::Proc if refused => {
            "parts of this host's /proc are covered by other mounts, as in a container: run vec outside of it, or with an unmasked /proc"
        }
        SetupStep::Access => {
            "it must be readable for others (directories 0755, files 0644); its parent directories need not be"
        }
        SetupStep::Source if errno == Some(Errno::ELOOP) => "give the path without links",
        SetupStep::Exec => {
            "only /usr and what the plan binds exist inside; the program and its interpreter must be among them"
        }
        _ => "",
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_refusal_names_its_setting() {
        let none = HostFacts::default();
        let apparmor = HostFacts {
            apparmor_restricts: true,
            ..none
        };
        let debian = HostFacts {
            userns_clone_off: true,
            ..none
        };
        let zero = HostFacts {
            max_user_namespaces: Some(0),
            ..none
        };
        let cases = [
            (
                SetupStep::Namespaces,
                Errno::ENOSPC,
                zero,
                "max_user_namespaces=15000",
            ),
            (
                SetupStep::Namespaces,
                Errno::ENOSPC,
                none,
                "raise user.max_user_namespaces",
            ),
            (
                SetupStep::Namespaces,
                Errno::EPERM,
                debian,
                "unprivileged_userns_clone=1",
            ),
            (
                SetupStep::Namespaces,
                Errno::EPERM,
                apparmor,
                "deploy/apparmor",
            ),
            (SetupStep::Root, Errno::EACCES, apparmor, "deploy/apparmor"),
            (SetupStep::Namespaces, Errno::EPERM, none, "outside"),
            (SetupStep::Namespaces, Errno::ENOSYS, none, "clone3"),
            (SetupStep::Proc, Errno::EPERM, none, "/proc"),
            (SetupStep::Access, Errno::EACCES, none, "0755"),
        ];
        for (step, errno, facts, part) in cases {
            let text = advice(step, Some(errno), &facts);
            assert!(text.contains(part), "{step:?} {errno}: {text}");
        }
        assert_eq!(advice(SetupStep::Plan, None, &zero), "");
    }
}
