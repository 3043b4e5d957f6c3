//! What can be left out of a sandbox by the attack suite's own build (`vec-sandbox-lifted`), to show
//! that an attack works where nothing forbids it.
//!
//! Invariants: the product's build compiles every `lifts` to false and has no field to ask for one.

/// One protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "lifted", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "lifted", serde(rename_all = "snake_case"))]
#[cfg_attr(
    not(feature = "lifted"),
    expect(dead_code, unreachable_pub, reason = "the product lifts nothing")
)]
pub enum Lift {
    /// Read-only attribute of the binds.
    RoBinds,
    /// Its reach into mounts below.
    RoRecursive,
    /// Every system-call filter.
    Seccomp,
    /// The list of socket families.
    SocketFamilies,
    /// The refusal of io_uring.
    IoUring,
    /// Dropping capabilities.
    Capabilities,
    /// `no_new_privs`. Installing a filter sets it again (without it the kernel would accept none from
    /// a process without capabilities), so this has an effect only together with [`Lift::Seccomp`].
    NoNewPrivs,
    /// The second id: init runs under the payload's.
    TwoIds,
    /// Init hides its memory from processes of its own id.
    Dumpable,
    /// Own network namespace.
    NetNs,
    /// Own IPC namespace.
    Ipc,
    /// Own `/proc`: the host's is bound instead.
    OwnProc,
    /// Options of the own `/proc`.
    ProcSubset,
    /// Not a protection but the kernel's knowledge of `subset=pid`: an option that no kernel knows is
    /// asked for in its place, to exercise what then covers the host's facts.
    ProcOption,
    /// No further user namespaces.
    UserNamespaceCeiling,
    /// Few inotify instances and watches.
    InotifyCeiling,
    /// Bounded number of files in memory file systems.
    Inodes,
    /// Bounded size of a memory work directory.
    WorkSize,
    /// Largest file.
    FileSize,
    /// Number of processes.
    Nproc,
    /// No core files.
    Core,
    /// No foreign descriptors.
    CloseFds,
    /// Pipes as standard streams: stderr is a file instead.
    PipesOnly,
    /// Harmless device nodes only.
    DevNodes,
    /// Everything ends with the process that asked for it.
    DeathSignal,
}
