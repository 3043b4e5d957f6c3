//! stdin, stdout and stderr of payloads.

use serde_json::json;
use tokio::sync::mpsc;
use vec_sandbox::{EndedBy, Line, RunControl};

use crate::support::{LONG, both_modes};

both_modes! {
    async fn a_flood_is_cut_and_then_killed(place) {
        let script = "import os\nwhile True: os.write(1, b'y' * 65536)";
        let mut plan = place.plan(script, &[]);
        plan.output.stdout_bytes = 1000;
        plan.output.kill_bytes = 4 << 20;
        let run = place.run(&plan).await;
        assert!(run.output_killed && run.stdout.truncated);
        assert_eq!(run.stdout.bytes.len(), 1000);
        assert!(run.stdout.total > 4 << 20);
        assert_eq!(run.report.ended_by, EndedBy::Kill);
        assert!(run.report.tree_gone && !run.report.timed_out);
    }
}

both_modes! {
    async fn more_than_the_cap_is_counted_and_harmless(place) {
        let script = "import os, sys\nos.write(1, b'\\xff\\x00' * 5000)\nsys.stderr.write('e' * 300)";
        let mut plan = place.plan(script, &[]);
        plan.output.stdout_bytes = 100;
        let run = place.run(&plan).await;
        assert!(run.report.succeeded() && !run.output_killed);
        assert_eq!((run.stdout.bytes.len(), run.stdout.total), (100, 10_000));
        assert!(run.stdout.truncated && !run.stderr.truncated);
        assert_eq!(run.stderr.bytes, [b'e'; 300]);
    }
}

both_modes! {
    async fn lines_arrive_while_the_payload_runs(place) {
        let script = r#"
import os, time
print("ask", flush=True)
while not os.path.exists("/views/main/answer"):
    time.sleep(0.01)
print("got it")
"#;
        let plan = place.plan(script, &[]);
        let (lines_tx, mut lines_rx) = mpsc::channel::<Line>(4);
        let answer = place.path("view/answer");
        let talk = async move {
            let first = lines_rx.recv().await.unwrap();
            assert_eq!(first.bytes, b"ask");
            std::fs::write(answer, "").unwrap();
            lines_rx.recv().await.unwrap()
        };
        let run = place.runner.run_streaming(&plan, RunControl::new(), lines_tx);
        let (run, second) = tokio::time::timeout(LONG, async { tokio::join!(run, talk) }).await.unwrap();
        assert!(run.unwrap().report.succeeded());
        assert_eq!(second.bytes, b"got it");
    }
}

both_modes! {
    async fn stdio_is_pipes_that_can_be_opened_by_name(place) {
        let script = r#"
import errno, json, os, stat, sys
def attempt(act):
    try:
        act()
        return "done"
    except OSError as e:
        return errno.errorcode[e.errno]
with open("/dev/stderr", "w") as f:
    f.write("by name")
print(json.dumps({
    "stdin": sys.stdin.read(),
    "pipe": stat.S_ISFIFO(os.fstat(1).st_mode),
    "truncate": attempt(lambda: os.truncate("/proc/self/fd/1", 0)),
    "tty": attempt(lambda: open("/dev/tty").close()),
}))
"#;
        let run = place.run(&place.plan(script, &[])).await;
        let seen: serde_json::Value = serde_json::from_slice(&run.stdout.bytes).unwrap();
        assert_eq!(seen, json!({"stdin": "", "pipe": true, "truncate": "EINVAL", "tty": "ENXIO"}));
        assert_eq!(run.stderr.bytes, b"by name");
    }
}
