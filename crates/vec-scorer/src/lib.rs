//! The scorer: the only program that reads hidden truth.
//!
//! Invariants:
//! - Truth is read through an inherited directory descriptor, checked against the lock's digests,
//!   and never leaves this process: replies, journal, logs and errors hold scores, counts, codes
//!   and test ids only.
//! - Untrusted prediction bytes are parsed in a confined process of their own ([`Parser`]); the
//!   metric reads nothing but that process's checked flat output ([`Matrix`]).
//! - One thread owns quotas, replies and the journal; an answer leaves after its journal line is
//!   synced. Charges are written before scoring: a kill may leave one charge without an answer,
//!   never an answer without a charge.
//! - A client is its socket: it reaches half A with scoring seed 0 and its own quota, nothing else.
//!
//! Tasks: one owner thread; one gRPC server for the controller, one per registered client; one
//! tracked task per admitted scoring.

mod client_service;
mod journal;
mod listeners;
mod matrix;
mod owner;
mod parse;
mod parser;
mod parser_child;
mod prebuild;
mod problem;
mod record;
mod scoring;
mod self_test;
mod server;
mod service;
mod state;
mod status;
mod truth;
mod upload;
mod work;

pub use client_service::{CLIENT_UPLOADS_MAX, UPLOADS_MAX};
pub use journal::{Journal, JournalError};
pub use listeners::{CLIENT_CONNECTIONS_MAX, ListenError, SOCKET_NAME};
pub use matrix::{Matrix, MatrixError};
pub use parse::{Caps, ParseError, parse_prediction};
pub use parser::{PARSE_TIMEOUT, Parser, ParserFailure};
pub use parser_child::parse_verb;
pub use prebuild::{PrebuildError, PrebuildReply, prebuild, prebuild_verb};
pub use problem::{FormatCode, FormatProblem};
pub use record::{Outcome, Record};
pub use scoring::{Anchor, PrepareError, RowChoice, SEARCH_SEEDS, ScoreFailure, Scoring};
pub use self_test::{SelfTestNumbers, SelfTestRefusal, judge_self_test};
pub use server::{Deps, Server, ServerError, load_truth};
pub use service::SETTLE_WAIT_MAX;
pub use state::{CLIENTS_OPEN_MAX, Client, CorruptJournal, QUOTA_MAX, Refusal, State};
pub use truth::{TRUTH_BYTES_MAX, TruthError, TruthRows, parse_truth};
pub use upload::{IDLE_TIMEOUT, UPLOAD_TIMEOUT, VIEWS_MAX};
