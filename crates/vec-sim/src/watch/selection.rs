//! Draws and selections: the naive decider's answer, carried-over work, re-scored imports, plateaus.
//! What a selection shows is looked at in `standings`.

use vec_search::{DraftMode, Event, RunState, SelectReason};
use vec_types::{FamilyId, NodeId, Operator, SeedState};

use super::standings;
use crate::Invariant::{self, Draws, Plateau};
use crate::book::Book;
use crate::must;
use crate::naive::{Naive, Next};
use crate::row::Row;
use crate::rules::{Rule, Tally};

/// What is due between a draw and the node.
#[derive(Debug, Default)]
pub(super) struct Selection {
    pub(super) is_idle: bool,
    rows: Vec<Row>,
    due: Option<Next>,
    parent: Option<(NodeId, SelectReason)>,
    family: Option<(FamilyId, DraftMode)>,
    resumes: Option<NodeId>,
}

impl Selection {
    /// Sees an event before it is in the book; the state has it already, but no decision about the
    /// next node changes what decides about it.
    pub(super) fn saw(&mut self, state: &RunState, book: &Book, event: &Event, tally: &mut Tally) {
        match event {
            Event::Draw { u, plateau, .. } => self.draw(state, book, (*u, *plateau)),
            Event::ResumePick { carried, node, .. } => {
                self.take_up(state, book, (*carried, true));
                self.resumes = Some(*node);
            }
            Event::ResumeRefused { node, .. } => self.take_up(state, book, (*node, false)),
            Event::RescoreStart { node } => {
                let due = book.waiting().first().copied();
                must(due == Some(*node), Invariant::Naive, || {
                    format!("node {node} is scored again; the best that waits is {due:?}")
                });
            }
            Event::Plateau { active, .. } => {
                self.look(state, book);
                let due = self.naive(state, book).is_some_and(|n| n.is_plateau());
                must(*active == due && *active != book.plateau, Plateau, || {
                    format!("announced {active}, but the nodes say {due}")
                });
            }
            Event::Select { parent, reason, .. } => {
                self.parent = Some((*parent, *reason));
                standings::check(state, &self.rows, event);
                if self.is_idle {
                    tally.add(Rule::Idle);
                    standings::reference(state, book, &self.rows, event);
                }
                self.count(state, event, tally);
            }
            Event::DraftPick { family, mode, .. } => self.family = Some((family.clone(), *mode)),
            Event::NodeCreated { .. } => self.created(event),
            _ => {}
        }
    }

    fn look(&mut self, state: &RunState, book: &Book) {
        let Some(policy) = state.policy() else { return };
        let nodes = state.nodes().zip(&book.nodes);
        self.rows = nodes
            .map(|(node, entry)| Row::of(policy, &node, entry))
            .collect();
    }

    fn naive<'a>(&'a self, state: &'a RunState, book: &'a Book) -> Option<Naive<'a>> {
        Some(Naive(state.policy()?, &self.rows, book))
    }

    fn draw(&mut self, state: &RunState, book: &Book, (u, plateau): (f64, bool)) {
        self.look(state, book);
        let naive = self.naive(state, book);
        let carried = naive.as_ref().and_then(Naive::carried);
        must(carried.is_none(), Draws, || {
            format!("a draw while {carried:?} waits to be taken up")
        });
        let due = naive.as_ref().is_some_and(Naive::is_plateau);
        must(plateau == due, Plateau, || {
            format!("drawn with plateau {plateau}, but the nodes say {due}")
        });
        self.due = naive.and_then(|naive| naive.next(u));
        (self.parent, self.family) = (None, None);
    }

    fn take_up(&mut self, state: &RunState, book: &Book, found: (NodeId, bool)) {
        self.look(state, book);
        let due = self.naive(state, book).and_then(|naive| naive.carried());
        must(due == Some(found), Invariant::Naive, || {
            format!("carried-over work {found:?}; the rules give {due:?}")
        });
    }

    fn created(&mut self, event: &Event) {
        let Event::NodeCreated { node, operator, .. } = event else {
            return;
        };
        if *operator == Operator::Resume {
            let picked = self.resumes.take();
            return must(picked == Some(*node), Draws, || {
                format!("node {node} resumes, but {picked:?} was picked")
            });
        }
        if *operator == Operator::Seed {
            return;
        }
        let found = Some((*operator, self.parent.take(), self.family.take()));
        let due = self.due.take();
        must(found == due, Invariant::Naive, || {
            format!("node {node} is {found:?}; the rules give {due:?}")
        });
    }

    /// Counts what the pool left out, seen from the rows.
    fn count(&self, state: &RunState, event: &Event, tally: &mut Tally) {
        let Event::Select {
            reason,
            plateau,
            standings,
            ..
        } = event
        else {
            return;
        };
        if self.rows.iter().any(|row| row.is_promoting) {
            tally.add(Rule::PromotionBeside);
        }
        if *reason == SelectReason::DebugTarget {
            return;
        }
        standings::tally(&self.rows, standings, tally);
        let seed_max_children = state.policy().map_or(0, |policy| policy.seed_max_children);
        for row in self.rows.iter().filter(|row| row.is_scored()) {
            let children = self.rows.iter().filter(|r| r.parent == Some(row.id));
            let live = children.clone().filter(|c| !c.status.is_shelved());
            let is_full = u32::try_from(live.count()).is_ok_and(|n| n >= seed_max_children);
            let is_capped = row.seed == Some(SeedState::Exploration) && is_full;
            let is_in = standings.iter().any(|standing| standing.node == row.id);
            tally.add(match (is_in, is_capped) {
                (true, true) if *plateau => Rule::CapLifted,
                (true, _) => continue,
                (false, true) if !plateau => Rule::Blocked,
                (false, _) if row.seed == Some(SeedState::ReferenceOnly) => Rule::Blocked,
                (false, _) if row.is_view_dependent => Rule::ViewDependent,
                (false, _) if row.is_refused => continue,
                (false, _) if children.clone().any(Row::is_running) => Rule::BusyAvoided,
                (false, _) => Rule::Suspended,
            });
        }
    }
}
