//! Whom TERM reaches: the payload's process group, all of it, and nobody else.

use vec_sandbox::{EndedBy, PayloadExit, RunControl};

use crate::support::{LONG, both_modes};

/// Children of the group and outside of it tell by files what reached them. The leader dies of TERM
/// at once; the group's child needs some time for its last words.
const FAMILY: &str = r#"
import os, signal, sys
ready_rx, ready_tx = os.pipe()

def told(name, wait_s):
    def handler(*_):
        open('/out/' + name, 'w').close()
        signal.setitimer(signal.ITIMER_REAL, wait_s)
        signal.sigwait({signal.SIGALRM})
        open('/out/' + name + '.done', 'w').close()
        os._exit(0)
    return handler

def child(name, leave):
    if os.fork():
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    signal.signal(signal.SIGTERM, told(name, 0.4))
    leave()
    os.write(ready_tx, b'r')
    while True:
        signal.pause()

child('group', lambda: None)
child('session', os.setsid)
child('own_group', lambda: os.setpgid(0, 0))
for _ in range(3):
    os.read(ready_rx, 1)
print('ready', flush=True)
signal.pause()
"#;

both_modes! {
    async fn term_reaches_the_payloads_group_and_the_grace_is_the_groups(place) {
        let mut plan = place.plan(FAMILY, &[]);
        plan.time.deadline_ms = 1_500;
        plan.time.grace_ms = 10_000;
        let run = place.run(&plan).await;
        assert_eq!(run.stdout.bytes, b"ready\n", "{:?}", run.report);
        assert_eq!(run.report.exit, PayloadExit::Signal(15), "the leader has no handler");
        assert!(run.report.timed_out && !run.report.killed_tree && run.report.tree_gone);
        for (name, wanted) in [
            ("group", true),
            ("group.done", true),
            ("session", false),
            ("own_group", false),
        ] {
            assert_eq!(place.path("out").join(name).exists(), wanted, "{name}");
        }
    }
}

both_modes! {
    async fn a_group_that_outlives_its_leader_ends_with_the_grace(place) {
        let script = r#"
import os, signal
rx, tx = os.pipe()
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(tx, b'r')
    while True:
        signal.pause()
os.read(rx, 1)
print('ready', flush=True)
signal.pause()
"#;
        let mut plan = place.plan(script, &[]);
        plan.time.grace_ms = 700;
        let control = RunControl::new();
        let (lines_tx, mut lines_rx) = tokio::sync::mpsc::channel(4);
        let run = place.runner.run_streaming(&plan, control.clone(), lines_tx);
        let ended = async {
            lines_rx.recv().await.expect("ready");
            control.terminate();
            std::time::Instant::now()
        };
        let both = async { tokio::join!(run, ended) };
        let (run, asked) = tokio::time::timeout(LONG, both).await.unwrap();
        let (report, waited) = (run.unwrap().report, asked.elapsed().as_millis());
        assert_eq!(report.exit, PayloadExit::Signal(15), "the leader's own status counts");
        assert_eq!(report.ended_by, EndedBy::Terminate);
        assert!(report.killed_tree && report.tree_gone, "{report:?}");
        assert!((700..2_500).contains(&waited), "{waited}");
    }
}
