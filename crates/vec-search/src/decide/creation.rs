//! A new node: take up carried-over work, or draw an operator and find its parent or family (OPR,
//! SEL, DRF, CAR-13).

use vec_types::{Digest, FamilyId, NodeId, Operator, RunNode};

use crate::drafts::next_family;
use crate::inputs::tree_digest;
use crate::node::Node;
use crate::resume::{self, Next};
use crate::select::{Choice, debug_target, improve_parent};
use crate::state::Run;
use crate::{DraftMode, Event};

/// One batch per node: the draw, its fall-backs, the choice, the node. Empty while nothing can
/// be created; then no random number is used up (OPR-01). Carried-over work comes first and draws
/// nothing (O-OPR-3).
pub(super) fn new_node(run: &Run) -> Vec<Event> {
    match resume::next(run) {
        Some(Next::Refused(carried, work, why)) => vec![Event::ResumeRefused {
            node: carried.id,
            work: work.clone(),
            why: why.to_owned(),
        }],
        Some(Next::Taken(carried, work)) => taken_up(run, carried, work),
        None => drawn(run),
    }
}

fn taken_up(run: &Run, carried: &Node, work: &RunNode) -> Vec<Event> {
    let node = run.next_node();
    let picked = Event::ResumePick {
        node,
        carried: carried.id,
        work: work.clone(),
        inputs_digest: tree_digest(run),
    };
    let family = carried.family.clone();
    vec![
        picked,
        created(node, Operator::Resume, carried.parent, family),
    ]
}

fn created(
    node: NodeId,
    operator: Operator,
    parent: Option<NodeId>,
    family: Option<FamilyId>,
) -> Event {
    Event::NodeCreated {
        node,
        operator,
        parent,
        family,
        seed_program: None,
    }
}

/// Lengths of the intervals of a draw (OPR-01); improve has what is left.
#[derive(Debug, Clone, Copy)]
struct Shares {
    draft: f64,
    debug: f64,
    tune: f64,
}

impl Shares {
    /// During a plateau draft gets more, but never what belongs to debug and tune (PLT-02).
    fn of(run: &Run) -> Self {
        let policy = &run.policy;
        let (debug, tune) = (policy.debug_p, policy.tune_p);
        let draft = if run.plateau {
            let raised = policy.draft_p.max(policy.plateau.draft_p);
            raised.min(1.0 - debug - tune)
        } else {
            policy.draft_p
        };
        Self { draft, debug, tune }
    }

    /// Intervals in the order draft, debug, tune, improve (OPR-01).
    fn operator(self, u: f64) -> Operator {
        if u < self.draft {
            Operator::Draft
        } else if u < self.draft + self.debug {
            Operator::Debug
        } else if u < self.draft + self.debug + self.tune {
            Operator::Tune
        } else {
            Operator::Improve
        }
    }
}

fn drawn(run: &Run) -> Vec<Event> {
    let node = run.next_node();
    let shares = Shares::of(run);
    let u = run.rng.clone().random();
    let operator = shares.operator(u);
    let mut fallbacks = Vec::new();
    let Some((taken, origin)) = origin(run, node, operator, &mut fallbacks) else {
        return Vec::new();
    };
    let digest = tree_digest(run);
    let draw = Event::Draw {
        node,
        index: run.draws,
        u,
        draft_p: shares.draft,
        debug_p: shares.debug,
        tune_p: shares.tune,
        plateau: run.plateau,
        operator,
        inputs_digest: digest,
    };
    let mut batch = vec![draw];
    batch.extend(fallbacks);
    batch.extend(origin.events(run, node, taken, digest));
    batch
}

/// What a draw came to.
enum Origin {
    Child(Choice),
    Draft(FamilyId, DraftMode),
}

impl Origin {
    fn events(self, run: &Run, node: NodeId, operator: Operator, digest: Digest) -> [Event; 2] {
        let plateau = run.plateau;
        match self {
            Self::Child(choice) => {
                let parent = run.node(choice.parent);
                let family = parent.and_then(|parent| parent.family.clone());
                let made = created(node, operator, Some(choice.parent), family);
                let select = Event::Select {
                    node,
                    parent: choice.parent,
                    reason: choice.reason,
                    plateau,
                    pool: choice.pool,
                    standings: choice.standings,
                    inputs_digest: digest,
                };
                [select, made]
            }
            Self::Draft(family, mode) => {
                let made = created(node, operator, None, Some(family.clone()));
                let pick = Event::DraftPick {
                    node,
                    family,
                    mode,
                    plateau,
                    inputs_digest: digest,
                };
                [pick, made]
            }
        }
    }
}

/// Draft and debug fall back to improve (OPR-03); improve falls back to a draft only when nothing
/// runs that could bring a parent (O-STP-2).
fn origin(
    run: &Run,
    node: NodeId,
    drawn: Operator,
    fallbacks: &mut Vec<Event>,
) -> Option<(Operator, Origin)> {
    let draft = || {
        let (family, mode) = next_family(run, run.plateau)?;
        Some(Origin::Draft(family, mode))
    };
    let (found, why) = match drawn {
        Operator::Draft => (draft(), "the idea library has no family"),
        Operator::Debug => {
            let target = debug_target(run).map(Origin::Child);
            (target, "no failed node can be repaired")
        }
        Operator::Tune => (None, "there is no tune operator"),
        Operator::Improve | Operator::Seed | Operator::Resume => (None, ""),
    };
    if let Some(origin) = found {
        return Some((drawn, origin));
    }
    if drawn != Operator::Improve {
        fallbacks.push(Event::FallbackToImprove {
            node,
            from: drawn,
            why: why.to_owned(),
        });
    }
    if let Some(choice) = improve_parent(run, run.plateau) {
        return Some((Operator::Improve, Origin::Child(choice)));
    }
    if !run.running.is_empty() {
        return None;
    }
    fallbacks.push(Event::FallbackToDraft {
        node,
        from: Operator::Improve,
        why: "no node can be improved and nothing is in work".to_owned(),
    });
    draft().map(|origin| (Operator::Draft, origin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_follow_each_other() {
        let shares = Shares {
            draft: 0.30,
            debug: 0.15,
            tune: 0.25,
        };
        let cases = [
            (0.0, Operator::Draft),
            (0.299_999, Operator::Draft),
            (0.30, Operator::Debug),
            (0.449_999, Operator::Debug),
            (0.45, Operator::Tune),
            (0.699_999, Operator::Tune),
            (0.70, Operator::Improve),
            (0.999_999, Operator::Improve),
        ];
        for (u, operator) in cases {
            assert_eq!(shares.operator(u), operator, "{u}");
        }
    }

    #[test]
    fn an_empty_tune_interval_is_never_hit() {
        let shares = Shares {
            draft: 0.15,
            debug: 0.15,
            tune: 0.0,
        };
        assert_eq!(shares.operator(0.15 + 0.15), Operator::Improve);
    }
}
