//! The system-call filters of a payload, by profile: `engineer` a deny list, `exec` and `worker`
//! allow lists, both ending in EPERM; then `clone3` → ENOSYS (the C library falls back to `clone`, whose
//! flags can be judged) and x32 numbers → ENOSYS (under an allow list EPERM, which it answers first).
//!
//! Invariants: built per architecture from `libc` numbers; a call made through another
//! architecture's entry (int 0x80) kills the process. Integer arguments that the kernel reads as
//! 32 bits are compared as 32 bits (CVE-2019-10063). The aarch64 table is compiled only there:
//! unverified on aarch64.

mod allowed;
mod denied;

use std::collections::BTreeMap;

use nix::errno::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as ArgLen, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

use crate::plan::{Lift, Profile, SandboxPlan};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Failed = seccompiler::BackendError;

/// Socket families a payload may create: Unix, IPv4, IPv6. Not AF_VSOCK, which no network
/// namespace contains, and not AF_NETLINK: name service works without.
const FAMILIES: [i32; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];

/// Terminal ioctls that inject input (TIOCSTI) or paste (TIOCLINUX).
const IOCTLS: [u64; 2] = [0x5412, 0x541C];

/// Namespace bits of clone(2), each one enough to be refused.
const CLONE_NEW: [u64; 8] = [
    0x80,        // time
    0x0002_0000, // mount
    0x0200_0000, // cgroup
    0x0400_0000, // uts
    0x0800_0000, // ipc
    0x1000_0000, // user
    0x2000_0000, // pid
    0x4000_0000, // net
];

/// The filters in the order in which they are installed. The list comes last, since under an allow
/// list no further filter can be installed; it allows `clone3`, which the one before refuses.
pub(crate) fn filters(plan: &SandboxPlan) -> Result<Vec<BpfProgram>, Failed> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let refused = SeccompAction::Errno(Errno::EPERM as u32);
    let (mut rules, otherwise, listed) = match plan.profile {
        Profile::Engineer => (deny_rules(plan)?, SeccompAction::Allow, refused),
        Profile::Exec => (allow_rules(plan)?, refused, SeccompAction::Allow),
        Profile::Worker => (worker_rules()?, refused, SeccompAction::Allow),
    };
    if listed == SeccompAction::Allow {
        rules.insert(libc::SYS_clone3, Vec::new());
    }
    let list = SeccompFilter::new(rules, otherwise, listed, arch)?;
    Ok(vec![absent_numbers(), list.try_into()?])
}

/// The filters of `plan` as the kernel takes them, so that another sandbox can be given the same work.
///
/// # Errors
/// A text: this architecture has no table.
#[cfg(feature = "lifted")]
pub fn filter_bytes(plan: &SandboxPlan) -> Result<Vec<Vec<u8>>, String> {
    let bytes = |program: &BpfProgram| {
        let steps = program.iter().flat_map(|step| {
            let [code_low, code_high] = step.code.to_ne_bytes();
            let [a, b, c, d] = step.k.to_ne_bytes();
            [code_low, code_high, step.jt, step.jf, a, b, c, d]
        });
        steps.collect()
    };
    let programs = filters(plan).map_err(|error| error.to_string())?;
    Ok(programs.iter().map(bytes).collect())
}

fn plain(numbers: &[i64]) -> Rules {
    numbers.iter().map(|&number| (number, Vec::new())).collect()
}

fn worker_rules() -> Result<Rules, Failed> {
    let mut rules = plain(allowed::WORKER);
    rules.extend(plain(allowed::WORKER_HERE));
    rules.insert(libc::SYS_clone, vec![no_namespace()?]);
    Ok(rules)
}

/// clone(2) without a single new namespace.
fn no_namespace() -> Result<SeccompRule, Failed> {
    let all_bits = CLONE_NEW.iter().fold(0, |all, bit| all | bit);
    let none = SeccompCondition::new(0, ArgLen::Qword, Op::MaskedEq(all_bits), 0)?;
    SeccompRule::new(vec![none])
}

fn deny_rules(plan: &SandboxPlan) -> Result<Rules, Failed> {
    let mut rules = plain(denied::EVERYWHERE);
    rules.extend(plain(denied::HERE));
    if !plan.lifts(Lift::IoUring) {
        rules.extend(plain(denied::IO_URING));
    }
    if !plan.lifts(Lift::SocketFamilies) {
        for call in [libc::SYS_socket, libc::SYS_socketpair] {
            let none_of = FAMILIES
                .iter()
                .map(|&family| dword(0, Op::Ne, family as u64))
                .collect::<Result<Vec<_>, _>>()?;
            rules.insert(call, vec![SeccompRule::new(none_of)?]);
        }
    }
    let injecting = IOCTLS
        .iter()
        .map(|&command| SeccompRule::new(vec![dword(1, Op::Eq, command)?]))
        .collect::<Result<Vec<_>, _>>()?;
    rules.insert(libc::SYS_ioctl, injecting);
    let new_namespace = CLONE_NEW
        .iter()
        .map(|&bit| {
            let has_bit = SeccompCondition::new(0, ArgLen::Qword, Op::MaskedEq(bit), bit)?;
            SeccompRule::new(vec![has_bit])
        })
        .collect::<Result<Vec<_>, _>>()?;
    rules.insert(libc::SYS_clone, new_namespace);
    Ok(rules)
}

fn allow_rules(plan: &SandboxPlan) -> Result<Rules, Failed> {
    let mut rules = plain(allowed::EXEC);
    rules.extend(plain(allowed::EXEC_HERE));
    if plan.lifts(Lift::IoUring) {
        rules.extend(plain(denied::IO_URING));
    }
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        let each = FAMILIES
            .iter()
            .map(|&family| SeccompRule::new(vec![dword(0, Op::Eq, family as u64)?]))
            .collect::<Result<Vec<_>, _>>()?;
        let any = plan.lifts(Lift::SocketFamilies);
        rules.insert(call, if any { Vec::new() } else { each });
    }
    let harmless = IOCTLS
        .iter()
        .map(|&command| dword(1, Op::Ne, command))
        .collect::<Result<Vec<_>, _>>()?;
    rules.insert(libc::SYS_ioctl, vec![SeccompRule::new(harmless)?]);
    rules.insert(libc::SYS_clone, vec![no_namespace()?]);
    Ok(rules)
}

fn dword(index: u8, op: Op, value: u64) -> Result<SeccompCondition, Failed> {
    SeccompCondition::new(index, ArgLen::Dword, op, value)
}

/// Numbers that shall look as if this kernel did not have them: `clone3`, and x32 calls, which have
/// the x86-64 architecture word and numbers from 0x4000_0000 on.
fn absent_numbers() -> BpfProgram {
    use seccompiler::sock_filter;
    const LOAD_WORD: u16 = 0x20;
    const JUMP_EQ: u16 = 0x15;
    const JUMP_GE: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32_BIT: u32 = 0x4000_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let enosys = u32::from(SeccompAction::Errno(Errno::ENOSYS as u32));
    vec![
        step(LOAD_WORD, 0, 0, 0),
        step(JUMP_EQ, 1, 0, libc::SYS_clone3 as u32),
        // No architecture has numbers up there of its own.
        step(JUMP_GE, 0, 1, X32_BIT),
        step(RETURN, 0, 0, enosys),
        step(RETURN, 0, 0, u32::from(SeccompAction::Allow)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exec() -> Vec<i64> {
        [allowed::EXEC, allowed::EXEC_HERE].concat()
    }

    fn worker() -> Vec<i64> {
        [allowed::WORKER, allowed::WORKER_HERE].concat()
    }

    #[test]
    fn every_profiles_lists_have_no_number_twice() {
        let denied = [denied::EVERYWHERE, denied::HERE, denied::IO_URING].concat();
        for list in [denied, exec(), worker()] {
            let mut numbers = list.clone();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), list.len());
        }
    }

    #[test]
    fn what_sessions_may_not_do_candidates_may_not_either() {
        let denied = [denied::EVERYWHERE, denied::HERE, denied::IO_URING].concat();
        for number in denied {
            assert!(!exec().contains(&number), "{number}");
            assert!(!worker().contains(&number), "{number}");
        }
        for number in &worker() {
            let judged = [libc::SYS_clone, libc::SYS_ioctl].contains(number);
            assert!(exec().contains(number) || judged, "{number}");
        }
    }
}
