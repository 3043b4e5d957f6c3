//! `vec-scorer prebuild`: digests, anchors and self-test numbers of the hidden truth. The launcher
//! hands over the directory's descriptor and never reads a byte of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use vec_config::{Anchor, AnchorKey};
use vec_daemon::fds;
use vec_daemon::spec::{RulerSpec, ScoringSpec};
use vec_types::{BoardId, Digest, RulerId};

use crate::prepare::Prepared;

/// Longest run of the verb.
const PREBUILD_TIMEOUT: Duration = Duration::from_secs(45);

/// Longest accepted reply; anchors and scores only.
const REPLY_BYTES_MAX: usize = 4 << 20;

/// Longest stderr that is shown.
const STDERR_CHARS_MAX: usize = 500;

/// What the scorer says about a board's truth (vec-scorer's prebuild reply, version 1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Prebuilt {
    pub(crate) version: u32,
    pub(crate) board: BoardId,
    pub(crate) truth_sha256: BTreeMap<String, Digest>,
    pub(crate) rows: BTreeMap<String, u32>,
    pub(crate) anchors: BTreeMap<RulerId, BTreeMap<AnchorKey, Anchor>>,
    pub(crate) scorer_hash: Digest,
    pub(crate) scoring_fingerprint: Digest,
    pub(crate) self_test: BTreeMap<String, TestScores>,
}

/// Self-test scores on one row set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct TestScores {
    pub(crate) perfect: f64,
    pub(crate) baseline: f64,
    pub(crate) shuffled: f64,
    pub(crate) constant: f64,
    pub(crate) pair: [f64; 2],
}

impl Prebuilt {
    /// The numbers of the first row set of half B, for people and for the lock.
    pub(crate) fn scores(&self) -> Option<TestScores> {
        let of_b = self
            .self_test
            .iter()
            .find(|(rows, _)| rows.starts_with("B:"));
        of_b.or_else(|| self.self_test.iter().next())
            .map(|(_, scores)| *scores)
    }

    pub(super) fn words(&self) -> String {
        self.scores().map_or_else(String::new, |scores| {
            format!(
                "perfect {:.2}, baseline {:.2}, shuffled {:.2}, constant {:.2}, {} row sets",
                scores.perfect,
                scores.baseline,
                scores.shuffled,
                scores.constant,
                self.self_test.len()
            )
        })
    }
}

/// Runs the verb and judges its numbers.
pub(super) async fn prebuild(prepared: &Prepared) -> Result<(Prebuilt, String), String> {
    let spec = scoring_spec(prepared);
    let request = serde_json::to_vec(&spec).map_err(|error| error.to_string())?;
    let output = tokio::time::timeout(PREBUILD_TIMEOUT, run(prepared, &request))
        .await
        .map_err(|_| format!("no answer within {} s", PREBUILD_TIMEOUT.as_secs()))??;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let text: String = text.trim().chars().take(STDERR_CHARS_MAX).collect();
        return Err(format!("{text} ({})", output.status));
    }
    if output.stdout.len() > REPLY_BYTES_MAX {
        return Err(format!("its reply is longer than {REPLY_BYTES_MAX} bytes"));
    }
    let prebuilt: Prebuilt = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("its reply is not what it must be: {error}"))?;
    judge(&prebuilt)?;
    let words = prebuilt.words();
    Ok((prebuilt, words))
}

// The scorer judges itself; a scorer that does not is refused here.
fn judge(prebuilt: &Prebuilt) -> Result<(), String> {
    if prebuilt.self_test.is_empty() {
        return Err("its self-test has no numbers".to_owned());
    }
    for (rows, scores) in &prebuilt.self_test {
        let TestScores {
            perfect,
            baseline,
            shuffled,
            constant,
            pair,
        } = *scores;
        let refused = |why: &str| Err(format!("self-test on {rows}: {why}"));
        let worse = [baseline, shuffled, constant];
        let all = [perfect, pair[0], pair[1]];
        if !all.iter().chain(&worse).all(|score| score.is_finite()) {
            return refused("a score is not finite");
        }
        if worse.iter().all(|score| *score == perfect) {
            return refused("the scorer is constant: it does not separate predictions");
        }
        if worse.iter().any(|score| *score >= perfect) {
            return refused(
                "the scorer is inverted: a worse prediction scores as high as the perfect one",
            );
        }
        if constant >= baseline {
            return refused("a far constant scores as high as the baseline");
        }
        if pair[0].to_bits() != pair[1].to_bits() {
            return refused("the same prediction gets two different scores");
        }
    }
    Ok(())
}

async fn run(prepared: &Prepared, request: &[u8]) -> Result<std::process::Output, String> {
    let program = prepared.prefix.join("bin/vec-scorer");
    let directory = &prepared.built.truth_dir;
    let truth =
        File::open(directory).map_err(|error| format!("open {}: {error}", directory.display()))?;
    let mut command = std::process::Command::new(&program);
    command
        .arg("prebuild")
        .env_clear()
        .current_dir("/")
        .fd_mappings(vec![FdMapping {
            parent_fd: OwnedFd::from(truth),
            child_fd: fds::TRUTH,
        }])
        .map_err(|error| error.to_string())?;
    let mut child = tokio::process::Command::from(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("start {}: {error}", program.display()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends early says why on stderr.
        drop(stdin.write_all(request).await);
    }
    child
        .wait_with_output()
        .await
        .map_err(|error| error.to_string())
}

/// The scoring side of a board before it is locked.
fn scoring_spec(prepared: &Prepared) -> ScoringSpec {
    let board = &prepared.board;
    let rulers = board
        .objective()
        .into_iter()
        .filter_map(|(id, weight)| {
            let ruler = board.rulers.get(&id)?;
            let spec = RulerSpec {
                view: ruler.view.clone(),
                weight,
                metric: ruler.metric.as_str().to_owned(),
            };
            Some((id, spec))
        })
        .collect();
    ScoringSpec {
        board: board.board.clone(),
        rulers,
        truth_fraction: board.scoring.truth_fraction,
        guard_seeds: prepared.config.guard.fresh_seeds.clone(),
        truth_sha256: prepared.built.record.truth_sha256.clone(),
        floor_prediction: prepared.built.record.floor_prediction,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: TestScores = TestScores {
        perfect: 100.0,
        baseline: 50.0,
        shuffled: 41.0,
        constant: 24.0,
        pair: [50.0, 50.0],
    };

    fn prebuilt(scores: TestScores) -> Prebuilt {
        Prebuilt {
            version: 1,
            board: "diabetes".parse().expect("board"),
            truth_sha256: BTreeMap::new(),
            rows: BTreeMap::new(),
            anchors: BTreeMap::new(),
            scorer_hash: Digest::ZERO,
            scoring_fingerprint: Digest::ZERO,
            self_test: BTreeMap::from([("B:s0".to_owned(), scores)]),
        }
    }

    #[test]
    fn a_scorer_that_misjudges_is_refused_by_name() {
        assert_eq!(judge(&prebuilt(GOOD)), Ok(()));
        let all = |score| TestScores {
            perfect: score,
            baseline: score,
            shuffled: score,
            constant: score,
            pair: [score, score],
        };
        for (word, scores) in [
            (
                "inverted",
                TestScores {
                    perfect: 0.0,
                    ..GOOD
                },
            ),
            ("constant", all(50.0)),
            (
                "far constant",
                TestScores {
                    constant: 60.0,
                    ..GOOD
                },
            ),
            (
                "two different",
                TestScores {
                    pair: [50.0, 50.5],
                    ..GOOD
                },
            ),
            (
                "not finite",
                TestScores {
                    shuffled: f64::NAN,
                    ..GOOD
                },
            ),
        ] {
            let error = judge(&prebuilt(scores)).expect_err(word);
            assert!(error.contains(word), "{word}: {error}");
        }
        let mut silent = prebuilt(GOOD);
        silent.self_test.clear();
        assert!(judge(&silent).is_err());
    }

    #[test]
    fn the_numbers_of_half_b_stand_for_all() {
        let mut two = prebuilt(GOOD);
        two.self_test.insert(
            "A:s0".to_owned(),
            TestScores {
                shuffled: 1.0,
                ..GOOD
            },
        );
        assert_eq!(two.scores(), Some(GOOD));
        assert!(two.words().contains("perfect 100.00") && two.words().contains("2 row sets"));
    }
}
