//! `vec-scorer prebuild`: before the lock is written, the launcher gives the scorer the truth
//! directory (descriptor 7) and a request on stdin, and gets back digests, anchors and the
//! self-test's scores. Never rows.
//!
//! Request: JSON of [`ScoringSpec`]; `truth_sha256` may be `{}` (digests not yet locked), a digest
//! that is given must match. Reply: JSON of [`PrebuildReply`] on stdout, exit 0. A board that
//! cannot be scored: one line on stderr, exit 78.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use vec_daemon::spec::ScoringSpec;
use vec_daemon::{Exit, chain, fds};
use vec_types::{BoardId, CanonicalError, Digest, RulerId, TruthHalf, canonical_json};

use crate::parser::{Parser, ParserFailure};
use crate::scoring::{Anchor, PrepareError, RowChoice, ScoreFailure, Scoring};
use crate::self_test::{SelfTestNumbers, SelfTestRefusal, judge_self_test, self_test};
use crate::server::load_truth;
use crate::truth::{TruthError, half_name, read_half};

/// Longest request.
const REQUEST_BYTES_MAX: u64 = 4 << 20;

/// Bytes per row of the self-test's prediction file, at most.
const ROW_BYTES_MAX: u64 = 64;

/// What the launcher learns about a board's truth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrebuildReply {
    /// Reply version; 1.
    pub version: u32,
    /// The board.
    pub board: BoardId,
    /// sha256 of `A/truth.csv` and `B/truth.csv`, by half.
    pub truth_sha256: BTreeMap<String, Digest>,
    /// Truth rows: `A`, `B:search`, `B:guard`.
    pub rows: BTreeMap<String, u32>,
    /// Anchors per ruler and row set, keyed `<half>:s<scoring seed>`.
    pub anchors: BTreeMap<RulerId, BTreeMap<String, Anchor>>,
    /// Manifest hash of the metric sources.
    pub scorer_hash: Digest,
    /// Meaning of the scores (O-EVS-2); the daemon reports the same in `Health`.
    pub scoring_fingerprint: Digest,
    /// Self-test scores per row set.
    pub self_test: BTreeMap<String, SelfTestNumbers>,
}

/// Why a board cannot be scored.
#[derive(Debug, thiserror::Error)]
pub enum PrebuildError {
    /// The request cannot be read.
    #[error("read the prebuild request from stdin")]
    ReadRequest(#[source] io::Error),
    /// The request is not what it must be.
    #[error("prebuild request is not valid: {0}")]
    Request(String),
    /// Descriptor 7 is not a directory.
    #[error("open the truth directory handed over as descriptor 7")]
    Directory(#[source] io::Error),
    /// The truth is malformed or not the locked one.
    #[error(transparent)]
    Truth(TruthError),
    /// Board and truth do not rank predictions.
    #[error(transparent)]
    Prepare(PrepareError),
    /// A test prediction has no score.
    #[error("scorer self-test on {rows}")]
    Score {
        /// Anchor key of the row set.
        rows: RowChoice,
        /// Why.
        #[source]
        source: ScoreFailure,
    },
    /// The scorer is of no use.
    #[error("scorer self-test on {rows}: {refusal}")]
    Refused {
        /// Anchor key of the row set.
        rows: RowChoice,
        /// Why.
        refusal: SelfTestRefusal,
    },
    /// The parser process does not work on this machine.
    #[error("scorer self-test: parse a prediction in a confined process")]
    Parser(#[source] ParserFailure),
    /// A prediction that went through the parser scores differently from the same one that did not.
    #[error("scorer self-test: the parser process changes the baseline prediction")]
    ParserPair,
    /// The runtime cannot be started.
    #[error("start the self-test")]
    Start(#[source] io::Error),
    /// The reply cannot be written.
    #[error("encode the prebuild reply")]
    Encode(#[source] CanonicalError),
    /// Nobody reads the reply.
    #[error("write the prebuild reply to stdout")]
    Write(#[source] io::Error),
}

/// Runs the verb: stdin, descriptor 7, stdout.
#[must_use]
pub fn prebuild_verb() -> ExitCode {
    match run() {
        Ok(()) => Exit::Ok.into(),
        Err(error) => {
            drop(writeln!(
                io::stderr(),
                "vec-scorer prebuild: {}",
                chain(&error)
            ));
            Exit::Config.into()
        }
    }
}

fn run() -> Result<(), PrebuildError> {
    let mut request = Vec::new();
    io::stdin()
        .lock()
        .take(REQUEST_BYTES_MAX + 1)
        .read_to_end(&mut request)
        .map_err(PrebuildError::ReadRequest)?;
    if request.len() as u64 > REQUEST_BYTES_MAX {
        return Err(PrebuildError::Request(format!(
            "longer than {REQUEST_BYTES_MAX} bytes"
        )));
    }
    let spec: ScoringSpec = serde_json::from_slice(&request)
        .map_err(|error| PrebuildError::Request(error.to_string()))?;
    // Through /proc the inherited number becomes an owned descriptor without unsafe code.
    let handed_over = format!("/proc/self/fd/{}", fds::TRUTH);
    let truth = std::fs::File::open(handed_over.as_str()).map_err(PrebuildError::Directory)?;
    let bytes_max = u64::MAX;
    let parser = Parser::of_this_program(bytes_max).map_err(PrebuildError::Start)?;
    let reply = prebuild(spec, &truth, parser)?;
    let mut json = canonical_json(&reply).map_err(PrebuildError::Encode)?;
    json.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(&json)
        .and_then(|()| stdout.flush())
        .map_err(PrebuildError::Write)
}

/// Digests, anchors and self-test of one board.
///
/// # Errors
/// [`PrebuildError`], in one line with its sources.
pub fn prebuild(
    mut spec: ScoringSpec,
    truth: &impl AsFd,
    parser: Parser,
) -> Result<PrebuildReply, PrebuildError> {
    for half in [TruthHalf::A, TruthHalf::B] {
        if !spec.truth_sha256.contains_key(half_name(half)) {
            let bytes = read_half(truth, half).map_err(PrebuildError::Truth)?;
            spec.truth_sha256
                .insert(half_name(half).to_owned(), Digest::of(&bytes));
        }
    }
    let rows = load_truth(truth, &spec).map_err(PrebuildError::Truth)?;
    let scoring = Scoring::prepare(&spec, &rows).map_err(PrebuildError::Prepare)?;
    let mut numbers = BTreeMap::new();
    for choice in scoring.choices() {
        let scores = self_test(&scoring, choice, spec.floor_prediction).map_err(|source| {
            PrebuildError::Score {
                rows: choice,
                source,
            }
        })?;
        judge_self_test(&scores).map_err(|refusal| PrebuildError::Refused {
            rows: choice,
            refusal,
        })?;
        numbers.insert(choice.to_string(), scores);
    }
    through_the_parser(&scoring, &spec, parser)?;
    let count = |rows: usize| u32::try_from(rows).unwrap_or(u32::MAX);
    let rows = [
        ("A", &rows.a),
        ("B:search", &rows.search),
        ("B:guard", &rows.guard),
    ];
    Ok(PrebuildReply {
        version: 1,
        board: spec.board,
        truth_sha256: spec.truth_sha256,
        rows: rows
            .map(|(name, rows)| (name.to_owned(), count(rows.len())))
            .into(),
        anchors: scoring.anchors(),
        scorer_hash: vec_metrics::scorer_hash(),
        scoring_fingerprint: scoring.fingerprint(),
        self_test: numbers,
    })
}

/// The baseline prediction as a file, through a real confined parser process: proves that this
/// machine can parse at all, and that parsing changes nothing.
fn through_the_parser(
    scoring: &Scoring,
    spec: &ScoringSpec,
    mut parser: Parser,
) -> Result<(), PrebuildError> {
    let mut file = String::from("id,prediction\n");
    for id in scoring.test_ids() {
        file.push_str(&format!("{id},{:?}\n", spec.floor_prediction));
    }
    let ids = scoring.test_ids().len();
    parser.bytes_max = (ids as u64 + 1) * ROW_BYTES_MAX;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(PrebuildError::Start)?;
    let matrix = runtime
        .block_on(parser.parse(file.as_bytes(), ids))
        .map_err(PrebuildError::Parser)?;
    let same =
        |id: &u64| matrix.get(*id).map(f64::to_bits) == Some(spec.floor_prediction.to_bits());
    if scoring.check(&matrix).is_ok() && scoring.test_ids().iter().all(same) {
        Ok(())
    } else {
        Err(PrebuildError::ParserPair)
    }
}
