//! The lines of the scorer's journal (`logs/scorer.jsonl`): what survives a kill, and the evidence
//! of every query. One canonical JSON object per line, synced before the answer leaves.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use vec_types::{BoardId, Digest, ExecName, NodeId, RunId, ScoreReport, UnixMs};

use crate::problem::FormatProblem;

/// How a scoring ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Outcome {
    /// Scored.
    Report {
        /// The scores.
        report: ScoreReport,
    },
    /// Not a prediction.
    InvalidFormat {
        /// What is wrong.
        problem: FormatProblem,
    },
}

/// One line. Fields are only ever added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Record {
    /// A scorer process began. Whatever was in flight before is lost; its charges stand.
    Start {
        /// When.
        at: UnixMs,
        /// Journal version; 1.
        version: u32,
        /// The run.
        run: RunId,
        /// The board.
        board: BoardId,
        /// Start number of the scorer in this run, from 0.
        start: u32,
        /// Meaning of its scores (O-EVS-2).
        fingerprint: Digest,
    },
    /// A client may query.
    Register {
        /// When.
        at: UnixMs,
        /// Its name.
        client: String,
        /// Directory of its socket.
        dir: PathBuf,
        /// Queries it may make.
        quota: u32,
    },
    /// A query was admitted to scoring (written before scoring begins).
    Charge {
        /// When.
        at: UnixMs,
        /// Whose.
        client: String,
        /// Number of the query, from 0 per client.
        query: u32,
        /// sha256 over the uploaded files.
        input: Digest,
    },
    /// A charge was given back: the scorer failed, not the prediction.
    Refund {
        /// When.
        at: UnixMs,
        /// Whose.
        client: String,
        /// Which query.
        query: u32,
    },
    /// A query was answered.
    Query {
        /// When.
        at: UnixMs,
        /// Whose.
        client: String,
        /// Which query.
        query: u32,
        /// What the client was told: rounded scores of half A.
        report: ScoreReport,
        /// Bytes of the report on the wire (score-leak budget).
        score_bytes: u64,
        /// From admission to here.
        elapsed_ms: u64,
    },
    /// The controller's scoring was answered.
    Reply {
        /// When.
        at: UnixMs,
        /// Request id.
        request: String,
        /// sha256 over rows, seed and the uploaded files.
        input: Digest,
        /// Node whose program made the prediction.
        node: NodeId,
        /// Execution.
        exec: ExecName,
        /// Anchor key of the rows scored.
        rows: String,
        /// How it ended.
        outcome: Outcome,
        /// From the whole upload to here.
        elapsed_ms: u64,
    },
    /// A client may not query any more (TOO-05).
    Close {
        /// When.
        at: UnixMs,
        /// Which.
        client: String,
        /// Its queries in flight.
        in_flight: u32,
        /// Format checks it made in this start of the scorer.
        checks: u64,
        /// Files of it that failed the format check before a query in this start.
        refused: u64,
    },
    /// The final count of a closed client (SCO-08).
    Settle {
        /// When.
        at: UnixMs,
        /// Which.
        client: String,
        /// Queries charged and not refunded.
        used: u32,
        /// Score bytes it was given.
        score_bytes: u64,
    },
}
