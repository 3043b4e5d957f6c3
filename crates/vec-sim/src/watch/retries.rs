//! Pauses: what an infrastructure fault has ended is not tried again before a while has passed, longer
//! each time; a run that was only cut for lack of time counts for no attempt (O-PRO-1, O-VCK-2).

use std::collections::BTreeMap;

use vec_search::{Effect, Event, Outcome, ReviewVerdict, ViewVerdict};
use vec_types::{ExecName, InfraFault, NodeId, NodeStatus, SeedProgramId, UnixMs};

use crate::Invariant::Retries as Spaced;
use crate::must;

/// Seconds after the first fault, the second, and all others.
const PAUSES_S: [i64; 4] = [30, 120, 480, 600];

/// Ends of pauses, worked out from the events alone.
#[derive(Debug, Default)]
pub(super) struct Retries {
    losses: BTreeMap<(NodeId, ExecName), InfraFault>,
    promotions: BTreeMap<NodeId, (u32, Vec<ExecName>)>,
    /// Promotions lost in an epoch.
    lost: BTreeMap<NodeId, (u32, usize)>,
    /// View checks without a verdict that count.
    unknown: BTreeMap<NodeId, usize>,
    reviews: BTreeMap<NodeId, usize>,
    seeds: BTreeMap<SeedProgramId, (Vec<NodeId>, UnixMs)>,
    runs_end: BTreeMap<NodeId, UnixMs>,
    reviews_end: BTreeMap<NodeId, UnixMs>,
}

impl Retries {
    /// Must the node's next run wait?
    pub(super) fn is_paused(&self, node: NodeId, at: UnixMs) -> bool {
        self.runs_end.get(&node).is_some_and(|end| at < *end)
    }

    pub(super) fn saw(&mut self, at: UnixMs, event: &Event) {
        match event {
            Event::EffectStarted { effect } => self.starts(effect, at),
            Event::EffectEnded { effect, end } => self.ends(effect, end, at),
            Event::PromotionStart {
                node, epoch, execs, ..
            } => {
                self.run_is_due(*node, at);
                self.promotions.insert(*node, (*epoch, execs.clone()));
            }
            Event::PromotionFailed { node, .. } => self.promotion_failed(*node, at),
            Event::ViewCheckResult {
                node,
                attempt,
                verdict: ViewVerdict::Unknown,
                ..
            } => self.unknown(*node, *attempt, at),
            Event::NodeCreated {
                node,
                seed_program: Some(seed),
                ..
            } => self.seed(*node, seed, at),
            Event::NodeSettled { node, status, .. } => self.settled(*node, *status, at),
            _ => {}
        }
    }

    fn starts(&self, effect: &Effect, at: UnixMs) {
        match effect {
            Effect::Execute {
                node,
                exec: ExecName::ViewCheck { .. },
            } => self.run_is_due(*node, at),
            Effect::Review { node, .. } => {
                let end = self.reviews_end.get(node).copied();
                due(end, at, || format!("review of node {node}"));
            }
            _ => {}
        }
    }

    fn run_is_due(&self, node: NodeId, at: UnixMs) {
        due(self.runs_end.get(&node).copied(), at, || {
            format!("node {node}")
        });
    }

    fn ends(&mut self, effect: &Effect, end: &Outcome, at: UnixMs) {
        match (effect, end) {
            (Effect::Review { node, .. }, end) => {
                let count = self.reviews.entry(*node).or_default();
                *count += 1;
                let is_verdict = matches!(
                    end,
                    Outcome::Reviewed {
                        verdict: ReviewVerdict::Pass | ReviewVerdict::Fail
                    }
                );
                if !is_verdict {
                    self.reviews_end.insert(*node, after(at, *count));
                }
            }
            (
                Effect::Execute { node, exec } | Effect::Score { node, exec },
                Outcome::Interrupted { fault, .. },
            ) => {
                self.losses.insert((*node, *exec), *fault);
            }
            _ => {}
        }
    }

    fn promotion_failed(&mut self, node: NodeId, at: UnixMs) {
        let Some((epoch, execs)) = self.promotions.remove(&node) else {
            return;
        };
        let losses = execs
            .iter()
            .filter_map(|exec| self.losses.get(&(node, *exec)));
        let losses: Vec<&InfraFault> = losses.collect();
        if losses.is_empty() {
            return;
        }
        let is_fault = losses.iter().any(|fault| **fault != InfraFault::BudgetCut);
        let count = if is_fault {
            let lost = self.lost.entry(node).or_default();
            *lost = if lost.0 == epoch {
                (epoch, lost.1 + 1)
            } else {
                (epoch, 1)
            };
            lost.1
        } else {
            1
        };
        self.runs_end.insert(node, after(at, count));
    }

    fn unknown(&mut self, node: NodeId, attempt: u32, at: UnixMs) {
        let names = [
            ExecName::ViewCheck { attempt },
            ExecName::ViewCheckConfirm { attempt },
        ];
        let fault = names
            .iter()
            .find_map(|exec| self.losses.get(&(node, *exec)));
        let count = self.unknown.entry(node).or_default();
        *count += usize::from(fault != Some(&InfraFault::BudgetCut));
        if fault.is_some() {
            self.runs_end.insert(node, after(at, *count));
        }
    }

    fn seed(&mut self, node: NodeId, seed: &SeedProgramId, at: UnixMs) {
        let (nodes, end) = self
            .seeds
            .entry(seed.clone())
            .or_insert((Vec::new(), UnixMs(0)));
        due(Some(*end), at, || format!("seed {seed}"));
        nodes.push(node);
    }

    fn settled(&mut self, node: NodeId, status: NodeStatus, at: UnixMs) {
        let mut seeds = self.seeds.values_mut();
        if let Some((nodes, end)) = seeds.find(|(nodes, _)| nodes.contains(&node))
            && status.is_shelved()
        {
            *end = after(at, nodes.len());
        }
    }
}

fn after(at: UnixMs, count: usize) -> UnixMs {
    let place = count.saturating_sub(1).min(PAUSES_S.len() - 1);
    at.plus_ms(PAUSES_S[place] * 1_000)
}

fn due(end: Option<UnixMs>, at: UnixMs, what: impl FnOnce() -> String) {
    must(end.is_none_or(|end| at >= end), Spaced, || {
        format!("{} again at {at}, its pause ends at {end:?}", what())
    });
}
