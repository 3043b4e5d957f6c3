//! Why an event does not fit the state. A stored event that is refused means a corrupt archive or
//! a bug; a fact is checked before it is stored.

use vec_types::{NodeId, NodeStatus, Phase};

use crate::{EffectId, ResumeRefused};

/// An event that cannot follow the events before it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CorruptRun {
    /// The first event must be `run_start`.
    #[error("{kind} before run_start")]
    NotStarted {
        /// Word of the event.
        kind: String,
    },
    /// A second `run_start`.
    #[error("run_start a second time")]
    StartedTwice,
    /// `run_start` with rules that contradict each other.
    #[error("run_start with a policy that cannot work: {}", problems.join("; "))]
    Policy {
        /// One sentence each.
        problems: Vec<String>,
    },
    /// Only `run_resume` may follow `stop`.
    #[error("{kind} after stop")]
    Stopped {
        /// Word of the event.
        kind: String,
    },
    /// A `run_resume` that is not allowed.
    #[error("run_resume is refused")]
    Resume(#[source] ResumeRefused),
    /// Restarts are numbered upwards.
    #[error("run_resume number {found} after number {last}")]
    ResumeNumber {
        /// Number found.
        found: u32,
        /// Number of the restart before.
        last: u32,
    },
    /// The node does not exist.
    #[error("{kind} of node {node}, which does not exist")]
    UnknownNode {
        /// Word of the event.
        kind: String,
        /// Node named.
        node: NodeId,
    },
    /// Nodes are numbered in order of creation.
    #[error("{kind} of node {found} where node {expected} comes next")]
    NodeOrder {
        /// Word of the event.
        kind: String,
        /// Next free id.
        expected: NodeId,
        /// Id found.
        found: NodeId,
    },
    /// The event does not fit the phase.
    #[error("{kind} in phase {phase:?}")]
    WrongPhase {
        /// Word of the event.
        kind: String,
        /// Phase of the run.
        phase: Phase,
    },
    /// The draw is not what the generator gives.
    #[error("draw {found} of {found_u}, but the generator gives draw {expected} of {expected_u}")]
    Draw {
        /// Index that comes next.
        expected: u64,
        /// Index found.
        found: u64,
        /// Value that comes next.
        expected_u: f64,
        /// Value found.
        found_u: f64,
    },
    /// Operator, parent or family differ from what was drawn, selected or picked before.
    #[error("{kind} of node {node}: {why}")]
    Creation {
        /// Word of the event.
        kind: String,
        /// Node.
        node: NodeId,
        /// What does not fit.
        why: &'static str,
    },
    /// An effect that the state does not call for, or that is in work already.
    #[error("start of {effect}, which nothing calls for")]
    EffectNotDue {
        /// Effect.
        effect: EffectId,
    },
    /// An effect that was never started, has ended, or was dropped.
    #[error("end of {effect}, which is not in work")]
    EffectNotInWork {
        /// Effect.
        effect: EffectId,
    },
    /// The outcome variant belongs to another effect.
    #[error("end of {effect} with an outcome of another kind of effect")]
    OutcomeKind {
        /// Effect.
        effect: EffectId,
    },
    /// The outcome contradicts itself.
    #[error("end of {effect}: {why}")]
    Outcome {
        /// Effect.
        effect: EffectId,
        /// What does not fit.
        why: String,
    },
    /// A node ends once.
    #[error("node {node} is settled a second time")]
    SettledTwice {
        /// Node.
        node: NodeId,
    },
    /// The status does not follow from what happened.
    #[error("node {node} is settled as {}, but its stage is {stage}", status.as_str())]
    Settlement {
        /// Node.
        node: NodeId,
        /// Status found.
        status: NodeStatus,
        /// Stage that the node is in.
        stage: &'static str,
    },
    /// A refuted direction of a node that has none, or a second one.
    #[error("refuted direction of node {node}: {why}")]
    Refuted {
        /// Node.
        node: NodeId,
        /// What does not fit.
        why: &'static str,
    },
    /// A result of a check that is not due.
    #[error("{kind} of node {node}: {why}")]
    Check {
        /// Word of the event.
        kind: String,
        /// Node.
        node: NodeId,
        /// What does not fit.
        why: &'static str,
    },
    /// A promotion event out of order.
    #[error("{kind} of node {node}: {why}")]
    Promotion {
        /// Word of the event.
        kind: String,
        /// Node.
        node: NodeId,
        /// What does not fit.
        why: &'static str,
    },
    /// An event of continuation or carry-over that does not fit.
    #[error("{kind} of node {node}: {why}")]
    Import {
        /// Word of the event.
        kind: String,
        /// Node.
        node: NodeId,
        /// What does not fit.
        why: String,
    },
    /// Data epochs follow each other.
    #[error("data epoch {found} where {expected} comes next")]
    Epoch {
        /// Epoch that comes next.
        expected: u32,
        /// Epoch found.
        found: u32,
    },
    /// An event of final selection out of order.
    #[error("{kind}: {why}")]
    Final {
        /// Word of the event.
        kind: String,
        /// What does not fit.
        why: &'static str,
    },
    /// `stop` while nodes are still in work.
    #[error("stop while {running} nodes are not settled")]
    StopTooEarly {
        /// Nodes in work.
        running: usize,
    },
}
