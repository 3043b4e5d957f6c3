//! Set-ups that cannot be: each one a clear error, nothing run.

use std::io::{IoSlice, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use vec_sandbox::{
    EndedBy, PayloadExit, ProbeReport, RunControl, Runner, SandboxError, SandboxPlan,
    SandboxReport, SetupError, SetupStep, StartedBy, WorkKind, probe,
};

use crate::support::{Place, both_modes, mode, started_by_root};

async fn refused(place: &Place, plan: &SandboxPlan) -> SetupError {
    let run = place.run(plan).await;
    assert_eq!(run.report.exit, PayloadExit::NotStarted);
    assert_eq!(run.report.ended_by, EndedBy::Setup);
    assert!(run.report.tree_gone);
    assert!(!place.path("out/ran").exists());
    run.report.setup_error.unwrap()
}

const RAN: &str = "open('/out/ran', 'w')";

both_modes! {
    async fn the_probe_says_what_works(place) {
        let report = probe(&place.helper).await.unwrap();
        assert!(report.ok, "{:?}", report.problem());
        assert!(report.checks.len() >= 15);
        let wanted = if started_by_root() { StartedBy::Root } else { StartedBy::User };
        assert_eq!(report.isolation.started_by, wanted);
        assert_eq!(report.isolation.kept_groups, 0);
        for profile in ["engineer: ", "worker: "] {
            let of_profile = report.checks.iter().filter(|c| c.name.starts_with(profile));
            assert!(of_profile.count() >= 10, "{profile}");
        }
        assert!(report.isolation.proc_options.contains("subset=pid"));
        assert!(!report.isolation.missing.iter().any(|what| what.contains("subset=pid")));
    }
}

both_modes! {
    async fn no_user_namespaces_is_named_with_its_cure(place) {
        let helper = place.helper.to_str().unwrap();
        // Inside a disposable user namespace, whose own ceiling is then 0.
        let in_namespace = |before: &str| {
            let script = format!("{before} exec {helper} --probe");
            let output = Command::new("unshare").args(["-Ur", "sh", "-c", &script]).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            (output.status.success(), serde_json::from_str::<ProbeReport>(&text).expect(&text))
        };
        let (success, report) = in_namespace("");
        assert!(success && report.ok, "control: {:?}", report.problem());
        let (success, report) = in_namespace("echo 0 > /proc/sys/user/max_user_namespaces;");
        assert!(!success && !report.ok);
        let error = report.error.unwrap();
        assert_eq!(error.step, SetupStep::Namespaces);
        assert!(error.advice.contains("user.max_user_namespaces"), "{error}");
        assert!(report.checks.is_empty(), "nothing ran");
    }
}

both_modes! {
    async fn a_link_or_nothing_as_source_is_refused(place) {
        let plan = place.plan(RAN, &[]);
        std::os::unix::fs::symlink("/etc", place.path("link")).unwrap();
        let mut linked = plan.clone();
        linked.ro_binds.last_mut().unwrap().source = place.path("link");
        let error = refused(&place, &linked).await;
        assert_eq!((error.step, error.errno), (SetupStep::Source, Some(libc::ELOOP)));
        assert!(error.message.contains("link"), "{error}");

        let mut below = plan.clone();
        below.ro_binds.last_mut().unwrap().source = place.path("link/alternatives");
        assert_eq!(refused(&place, &below).await.errno, Some(libc::ELOOP));

        let mut missing = plan.clone();
        missing.work.kind = WorkKind::Host {
            source: place.path("absent"),
        };
        let error = refused(&place, &missing).await;
        assert!(error.message.contains("absent"), "{error}");

        let run = place.run(&plan).await;
        assert!(run.report.succeeded() && place.path("out/ran").exists(), "control");
    }
}

both_modes! {
    async fn an_unreadable_view_is_named(place) {
        let plan = place.plan(RAN, &[]);
        std::fs::set_permissions(place.path("view"), mode(0o000)).unwrap();
        let error = refused(&place, &plan).await;
        std::fs::set_permissions(place.path("view"), mode(0o755)).unwrap();
        assert_eq!(error.step, SetupStep::Access);
        assert!(error.message.contains("/view"), "{error}");
        assert!(error.advice.contains("0755"), "{error}");
    }
}

both_modes! {
    async fn a_missing_program_is_named(place) {
        let mut plan = place.plan(RAN, &[]);
        plan.argv[0] = "/env/bin/python3".to_owned();
        let error = refused(&place, &plan).await;
        assert_eq!((error.step, error.errno), (SetupStep::Exec, Some(libc::ENOENT)));
        assert!(error.message.contains("/env/bin/python3"), "{error}");
        // Executable by its mode, but no program.
        std::fs::set_permissions(place.path("solution/run.py"), mode(0o755)).unwrap();
        plan.argv[0] = "/solution/run.py".to_owned();
        let error = refused(&place, &plan).await;
        assert_eq!((error.step, error.errno), (SetupStep::Exec, Some(libc::ENOEXEC)));
    }
}

both_modes! {
    async fn a_hard_link_in_the_work_directory_is_not_given_away(place) {
        if !started_by_root() {
            // Ownership does not change then.
            return;
        }
        std::fs::write(place.path("precious"), "x").unwrap();
        std::fs::hard_link(place.path("precious"), place.path("out/link")).unwrap();
        let error = refused(&place, &place.plan(RAN, &[])).await;
        assert_eq!(error.step, SetupStep::WorkOwner);
        assert!(error.message.contains("hard link"), "{error}");
        assert_eq!(nix::sys::stat::stat(&place.path("precious")).unwrap().st_uid, 0);
    }
}

both_modes! {
    async fn helpers_that_are_none(place) {
        let plan = place.plan(RAN, &[]);
        let error = Runner::new("/nonexistent/vec-sandbox").run(&plan, RunControl::new()).await.unwrap_err();
        assert!(matches!(error, SandboxError::Spawn { .. }), "{error}");
        let error = Runner::new("/bin/true").run(&plan, RunControl::new()).await.unwrap_err();
        assert!(matches!(error, SandboxError::HelperDied { .. }), "{error}");
        let mut absurd = plan;
        absurd.limits.processes = 0;
        let error = place.runner.run(&absurd, RunControl::new()).await.unwrap_err();
        assert!(matches!(error, SandboxError::Plan(_)), "{error}");
    }
}

both_modes! {
    async fn the_helper_checks_what_it_reads(place) {
        let good = serde_json::to_string(&place.plan(RAN, &[])).unwrap();
        let cases = [
            (String::new(), "malformed"),
            ("{".to_owned(), "malformed"),
            (good.replacen('{', "{\"surprise\":1,", 1), "surprise"),
            (good.replace("\"schema\":2", "\"schema\":1"), "schema 1"),
            (good.replace("/solution\"", "/dev/x\""), "collides"),
            (good.replace("\"/out\"", "\"/out/..\""), "/out/.."),
        ];
        for (text, part) in cases {
            let error = helper_says(&place, &text).setup_error.unwrap();
            assert_eq!(error.step, SetupStep::Plan, "{error}");
            assert!(error.message.contains(part), "{error}");
        }
        assert!(!place.path("out/ran").exists());
        assert!(helper_says(&place, &good).succeeded(), "control");
    }
}

/// Talks to the helper without the library.
fn helper_says(place: &Place, plan: &str) -> SandboxReport {
    let (plan_rx, mut plan_tx) = std::io::pipe().unwrap();
    let (control_rx, control_tx) = std::io::pipe().unwrap();
    let (report_rx, report_tx) = UnixStream::pair().unwrap();
    let brought = [plan_rx.as_raw_fd(), control_rx.as_raw_fd()];
    let sent = sendmsg::<()>(
        report_rx.as_raw_fd(),
        &[IoSlice::new(b"p")],
        &[ControlMessage::ScmRights(&brought)],
        MsgFlags::empty(),
        None,
    );
    assert_eq!(sent, Ok(1));
    drop((plan_rx, control_rx));
    let mut command = Command::new(&place.helper);
    command.arg("run").stdin(OwnedFd::from(report_tx));
    let mut child = command.spawn().unwrap();
    drop(command);
    plan_tx.write_all(plan.as_bytes()).unwrap();
    drop(plan_tx);
    let said = std::io::read_to_string(report_rx).unwrap();
    // Before the report comes what is handed out, when the payload has started.
    let report = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    drop(control_tx);
    assert!(child.wait().unwrap().success());
    report
}

both_modes! {
    async fn a_helper_without_its_descriptors_starts_nothing(place) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        let null = || std::fs::File::open("/dev/null").unwrap().into();
        for stdin in [theirs.into(), null()] {
            let stdin: OwnedFd = stdin;
            let mut command = Command::new(&place.helper);
            let output = command.args(["run", "1"]).stdin(stdin).output().unwrap();
            assert_eq!(output.status.code(), Some(64));
            assert!(output.stdout.is_empty() && !output.stderr.is_empty());
        }
    }
}
