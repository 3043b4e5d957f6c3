//! The prebuild verb as the launcher uses it: descriptor 7, stdin, stdout, exit codes.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use vec_daemon::spec::ScoringSpec;
use vec_scorer::PrebuildReply;

use super::stage::{MARKER, Stage, truth_value};

fn prebuild(stage: &Stage, request: &[u8]) -> Output {
    // The shell opens the directory as descriptor 7, as the launcher does by inheritance.
    let truth = stage.dir.path().join("truth");
    let script = format!(
        "exec 7<{}; exec {} prebuild",
        truth.display(),
        env!("CARGO_BIN_EXE_vec-scorer")
    );
    let mut child = Command::new("/bin/sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("spawn");
    let mut stdin = child.stdin.take().expect("stdin");
    stdin.write_all(request).expect("request");
    drop(stdin);
    child.wait_with_output().expect("output")
}

fn request(spec: &ScoringSpec) -> Vec<u8> {
    let unlocked = ScoringSpec {
        truth_sha256: BTreeMap::new(),
        ..spec.clone()
    };
    serde_json::to_vec(&unlocked).expect("request")
}

#[test]
fn digests_anchors_and_scores_come_out_but_no_rows() {
    let stage = Stage::new();
    let output = prebuild(&stage, &request(&stage.spec.scoring));
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let reply: PrebuildReply = serde_json::from_slice(&output.stdout).expect("reply");
    assert_eq!(reply.truth_sha256, stage.spec.scoring.truth_sha256);
    assert_eq!(
        reply.rows,
        [("A", 60), ("B:search", 30), ("B:guard", 30)]
            .map(|(k, n)| (k.to_owned(), n))
            .into()
    );
    assert_eq!(reply.self_test.len(), 9);
    for numbers in reply.self_test.values() {
        assert_eq!((numbers.perfect, numbers.baseline), (100.0, 50.0));
        assert!(numbers.shuffled < 100.0 && numbers.constant < 50.0);
    }
    let anchors = reply.anchors.values().next().expect("ruler");
    assert!(
        anchors
            .values()
            .all(|anchor| anchor.floor > 0.0 && anchor.ceiling == 0.0)
    );
    let text = String::from_utf8(output.stdout).expect("text");
    assert!((0..super::stage::ROWS).all(|id| !text.contains(&truth_value(id))));
    // Locked digests give the same fingerprint; wrong ones are refused.
    let locked = serde_json::to_vec(&stage.spec.scoring).expect("request");
    let again: PrebuildReply =
        serde_json::from_slice(&prebuild(&stage, &locked).stdout).expect("reply");
    assert_eq!(again, reply);
}

#[test]
fn unusable_truth_is_one_clear_line_and_exit_78() {
    let write = |stage: &Stage, half: &str, text: &str| {
        fs::write(
            stage.dir.path().join("truth").join(half).join("truth.csv"),
            text,
        )
        .expect("write");
    };
    type Change<'a> = &'a dyn Fn(&mut Stage);
    let flat: String = (0..60).map(|k| format!("{},{MARKER}1\n", 2 * k)).collect();
    let changes: [(&str, Change<'_>); 8] = [
        (
            "A/truth.csv, line 3: the target is not a number",
            &|stage| {
                write(stage, "A", &format!("id,target\n0,1\n2,{MARKER}x\n"));
            },
        ),
        ("all truth values of A:s0 are equal", &|stage| {
            write(stage, "A", &format!("id,target\n{flat}"));
        }),
        ("A:s0 has 1 truth rows; at least 2", &|stage| {
            write(stage, "A", "id,target\n0,1\n");
        }),
        ("read truth file B/truth.csv", &|stage| {
            fs::remove_file(stage.dir.path().join("truth/B/truth.csv")).expect("remove");
        }),
        ("id 0 stands twice", &|stage| {
            write(
                stage,
                "B",
                "id,target,rows\n0,1,search\n1,2,search\n3,4,guard\n",
            );
        }),
        ("A/truth.csv has sha256", &|stage| {
            // Kept by the request below.
            let digest = vec_types::Digest::ZERO;
            stage.spec.scoring.truth_sha256 = [("A".to_owned(), digest)].into();
        }),
        ("wants metric \"mae\"", &|stage| {
            stage
                .spec
                .scoring
                .rulers
                .values_mut()
                .for_each(|ruler| ruler.metric = "mae".into());
        }),
        ("the floor of A:s0 is 0 or not a number", &|stage| {
            stage.spec.scoring.floor_prediction = 1e301;
        }),
    ];
    for (expected, change) in changes {
        let mut stage = Stage::new();
        change(&mut stage);
        let request = if expected.contains("sha256") {
            serde_json::to_vec(&stage.spec.scoring).expect("request")
        } else {
            request(&stage.spec.scoring)
        };
        let output = prebuild(&stage, &request);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(78), "{expected}: {said}");
        assert!(said.contains(expected), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(!said.contains(MARKER) && output.stdout.is_empty(), "{said}");
    }
}

#[test]
fn requests_that_are_none_are_named() {
    for (request, expected) in [
        (
            b"{}".to_vec(),
            "prebuild request is not valid: missing field",
        ),
        (
            vec![b' '; (4 << 20) + 1],
            "prebuild request is not valid: longer than",
        ),
    ] {
        let output = prebuild(&Stage::new(), &request);
        assert_eq!(output.status.code(), Some(78));
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected));
    }
}
