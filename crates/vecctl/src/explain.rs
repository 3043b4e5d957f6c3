//! Why a node exists: what the stored events say about its creation, beside what the run knew at
//! that moment. Pure: from stored events to facts; `render::explain` makes text of them.

mod after;
mod child;
mod draft;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use vec_search::{Event, RunState};
use vec_store::StoredEvent;
use vec_types::{FamilyId, NodeId, Operator, RunId, RunNode, SeedProgramId, SeedState, UnixMs};

pub(crate) use after::After;
pub(crate) use child::{Child, LeftOut, Row};
pub(crate) use draft::{Draft, FamilyRow};

/// All that `vecctl explain` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Explanation {
    pub(crate) run: RunId,
    pub(crate) node: NodeId,
    /// Number of the event that made it.
    pub(crate) event: u64,
    pub(crate) created_at: UnixMs,
    pub(crate) operator: Operator,
    pub(crate) parent: Option<NodeId>,
    pub(crate) family: Option<FamilyId>,
    /// Absent for nodes that nothing was drawn for.
    pub(crate) draw: Option<Draw>,
    pub(crate) fallbacks: Vec<Fallback>,
    pub(crate) why: Why,
    pub(crate) after: After,
}

/// One random number and its meaning (OPR-01).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Draw {
    pub(crate) index: u64,
    pub(crate) u: f64,
    /// Lengths of the intervals, in this order; improve has what is left.
    pub(crate) draft_p: f64,
    pub(crate) debug_p: f64,
    pub(crate) tune_p: f64,
    pub(crate) plateau: bool,
    pub(crate) operator: Operator,
}

/// An operator that was impossible (OPR-03, O-STP-2).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Fallback {
    pub(crate) from: Operator,
    pub(crate) to: Operator,
    pub(crate) why: String,
}

/// Where it is from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub(crate) enum Why {
    Child(Box<Child>),
    Draft(Draft),
    Resume {
        carried: NodeId,
        work: RunNode,
        origin: Option<RunNode>,
        max_resume: u32,
    },
    Seed {
        program: SeedProgramId,
        state: SeedState,
        /// Place in the locked order, from 1.
        place: usize,
        of: usize,
        /// Earlier nodes of the same program.
        before: Vec<NodeId>,
    },
    Import {
        origin: RunNode,
        of: u32,
    },
}

/// Explains one node of the run whose events these are.
pub(crate) fn explain(run: &RunId, rows: &[StoredEvent], node: NodeId) -> Result<Explanation> {
    let mut state = RunState::new();
    let mut made = None;
    for batch in rows.chunk_by(|a, b| a.batch == b.batch) {
        let events = read(batch)?;
        if made.is_none() && events.iter().any(|event| makes(event) == Some(node)) {
            made = Some((batch, events.clone(), state.clone()));
        }
        for (row, event) in batch.iter().zip(&events) {
            state.apply(row.at, event).with_context(|| {
                format!(
                    "event {} does not follow from the events before it; vecctl verify says more",
                    row.seq
                )
            })?;
        }
    }
    let Some((batch, events, before)) = made else {
        bail!("{}", unknown(run, &state, node));
    };
    Explanation::of(run, node, batch, &events, &before, &state)
}

fn read(batch: &[StoredEvent]) -> Result<Vec<Event>> {
    let events = batch.iter().map(|row| {
        row.event().with_context(|| {
            format!(
                "event {} ({}) was written by another version of vec; use the vecctl of that version",
                row.seq, row.kind
            )
        })
    });
    events.collect()
}

/// The node that an event makes.
const fn makes(event: &Event) -> Option<NodeId> {
    match event {
        Event::NodeCreated { node, .. } | Event::Imported { node, .. } => Some(*node),
        _ => None,
    }
}

fn unknown(run: &RunId, state: &RunState, node: NodeId) -> String {
    match state.nodes().last() {
        Some(last) => format!(
            "run {run} has no node {node}; its nodes are 0 to {}",
            last.id
        ),
        None => format!("run {run} has no node {node}; it has no nodes yet"),
    }
}

impl Explanation {
    fn of(
        run: &RunId,
        node: NodeId,
        batch: &[StoredEvent],
        events: &[Event],
        before: &RunState,
        now: &RunState,
    ) -> Result<Self> {
        let made = batch.iter().zip(events);
        let mut made = made.filter(|(_, event)| makes(event) == Some(node));
        let row = made
            .next()
            .map(|(row, _)| row)
            .context("a node is made by an event")?;
        let view = now.node(node).context("a made node is in the state")?;
        Ok(Self {
            run: run.clone(),
            node,
            event: row.seq,
            created_at: row.at,
            operator: view.operator,
            parent: view.parent,
            family: view.drawn_family.or(view.family).cloned(),
            draw: events.iter().find_map(draw),
            fallbacks: events.iter().filter_map(fallback).collect(),
            why: why(events, before, now).context("no event says why the node was made")?,
            after: After::of(&view, now),
        })
    }
}

fn draw(event: &Event) -> Option<Draw> {
    let Event::Draw {
        index,
        u,
        draft_p,
        debug_p,
        tune_p,
        plateau,
        operator,
        ..
    } = event
    else {
        return None;
    };
    Some(Draw {
        index: *index,
        u: *u,
        draft_p: *draft_p,
        debug_p: *debug_p,
        tune_p: *tune_p,
        plateau: *plateau,
        operator: *operator,
    })
}

fn fallback(event: &Event) -> Option<Fallback> {
    let (from, to, why) = match event {
        Event::FallbackToImprove { from, why, .. } => (*from, Operator::Improve, why),
        Event::FallbackToDraft { from, why, .. } => (*from, Operator::Draft, why),
        _ => return None,
    };
    let why = why.clone();
    Some(Fallback { from, to, why })
}

fn why(events: &[Event], before: &RunState, now: &RunState) -> Option<Why> {
    events.iter().find_map(|event| match event {
        Event::Select { .. } => Child::of(event, before).map(|child| Why::Child(Box::new(child))),
        Event::DraftPick { .. } => Draft::of(event, before).map(Why::Draft),
        Event::ResumePick { carried, work, .. } => Some(Why::Resume {
            carried: *carried,
            work: work.clone(),
            origin: before.node(*carried)?.origin.cloned(),
            max_resume: before.policy()?.continuation.max_resume,
        }),
        Event::Imported { import, .. } => Some(Why::Import {
            origin: import.origin.clone(),
            of: now.policy()?.continuation.imports,
        }),
        Event::NodeCreated {
            operator: Operator::Seed,
            seed_program: Some(program),
            ..
        } => seed(program, before),
        _ => None,
    })
}

fn seed(program: &SeedProgramId, before: &RunState) -> Option<Why> {
    let programs = &before.policy()?.seed_programs;
    let place = programs.iter().position(|seed| seed.id == *program)?;
    let earlier = before.nodes();
    let earlier =
        earlier.filter(|node| node.origin.is_none() && node.seed_program == Some(program));
    Some(Why::Seed {
        program: program.clone(),
        state: programs.get(place)?.state,
        place: place + 1,
        of: programs.len(),
        before: earlier.map(|node| node.id).collect(),
    })
}

#[cfg(test)]
mod tests;
