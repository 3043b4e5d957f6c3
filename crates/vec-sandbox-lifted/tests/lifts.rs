//! What follows when a protection is left out, or when the kernel lacks one.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::os::unix::fs::PermissionsExt;

use vec_sandbox_lifted::{
    ExecInputs, HostLayout, Lift, Limits, OutputCaps, PayloadExit, PythonBinds, RunControl, Runner,
    SandboxPlan, SandboxRun, TimeLimits, TmpfsSize, WorkKind, candidate_env,
};

const HELPER: &str = env!("CARGO_BIN_EXE_vec-sandbox-lifted");

/// Runs a line of shell with `lift` left out.
fn run(script: &str, lift: &[Lift]) -> SandboxRun {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let inputs = ExecInputs {
        solution: dir.path().to_owned(),
        views: Vec::new(),
        out: WorkKind::Memory {
            size: TmpfsSize {
                bytes: 1 << 20,
                inodes: 64,
            },
            fill: None,
        },
        python: PythonBinds::default(),
        argv: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        env: candidate_env(1, false, None),
        limits: Limits::of_memory(512 << 20, 16 << 20, 1),
        time: TimeLimits {
            deadline_ms: 20_000,
            grace_ms: 0,
        },
        output: OutputCaps::standard(),
    };
    let mut plan = SandboxPlan::exec(&inputs, &HostLayout::detect().unwrap()).unwrap();
    plan.resolve_sources().unwrap();
    plan.lift = lift.to_vec();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime
        .block_on(Runner::new(HELPER).run(&plan, RunControl::new()))
        .unwrap()
}

fn stdout(run: &SandboxRun) -> String {
    assert_eq!(
        run.report.exit,
        PayloadExit::Code(0),
        "{:?} {}",
        run.report,
        String::from_utf8_lossy(&run.stderr.bytes)
    );
    String::from_utf8_lossy(&run.stdout.bytes).into_owned()
}

/// Everything that a fresh `/proc` tells beside processes and the kept figures.
const FACTS: &str = r"
cd /proc
for f in *; do
  case $f in
    [0-9]*|self|thread-self|mounts|net|cpuinfo|meminfo|stat|loadavg|uptime|filesystems) ;;
    *) if [ -d $f ]; then ls -A $f; else head -c 100 $f 2>/dev/null; fi ;;
  esac
done
:
";

#[test]
fn a_kernel_without_subset_gets_a_proc_with_covered_facts() {
    let control = stdout(&run(FACTS, &[Lift::ProcSubset]));
    assert!(
        control.contains("Linux version") && control.contains("kernel"),
        "{control}"
    );
    assert_eq!(stdout(&run(FACTS, &[Lift::ProcOption])), "");
    let look = "grep ' - proc ' /proc/self/mountinfo; ls -d /proc/[0-9]*; cat /proc/sys/x";
    let seen = stdout(&run(&format!("{look}; :"), &[Lift::ProcOption]));
    assert!(!seen.contains("subset="), "control: {seen}");
    assert!(
        seen.contains("hidepid") && !seen.contains("/proc/1\n"),
        "init is hidden: {seen}"
    );
    let seen = stdout(&run(&format!("{look}; :"), &[]));
    assert!(seen.contains("subset=pid"), "{seen}");
}

#[test]
fn covers_cannot_be_taken_off() {
    let script =
        "umount /proc/sys; echo x > /proc/sysrq-trigger; echo x > /proc/sys/y; ls -A /proc/sys";
    assert_eq!(
        stdout(&run(&format!("{script}; :"), &[Lift::ProcOption])),
        ""
    );
}

#[test]
fn new_privileges_are_possible_only_without_a_filter() {
    let look = "grep NoNewPrivs /proc/self/status";
    for (lift, wanted) in [
        (&[][..], "NoNewPrivs:\t1\n"),
        (&[Lift::NoNewPrivs], "NoNewPrivs:\t1\n"),
        (&[Lift::NoNewPrivs, Lift::Seccomp], "NoNewPrivs:\t0\n"),
    ] {
        assert_eq!(stdout(&run(look, lift)), wanted, "{lift:?}");
    }
}
