//! Which events may follow: every refusal of [`CorruptRun`] is decided here, before anything
//! changes. Checks are about consistency; whether a decision is the right one is for replay.

use vec_types::{NodeId, NodeStatus, Operator, Phase, UnixMs};

use super::{Run, apply_tree, check_effect, check_final, check_import};
use crate::checks;
use crate::node::{Node, PromotionState};
use crate::planted::{self, Bug};
use crate::{CorruptRun, Event};

pub(super) fn check(run: Option<&Run>, at: UnixMs, event: &Event) -> Result<(), CorruptRun> {
    match (run, event) {
        (None, Event::RunStart { policy, .. }) => match policy.problems() {
            problems if problems.is_empty() => Ok(()),
            problems => Err(CorruptRun::Policy { problems }),
        },
        (Some(_), Event::RunStart { .. }) => Err(CorruptRun::StartedTwice),
        (None, _) => Err(CorruptRun::NotStarted { kind: event.kind() }),
        (Some(run), Event::RunResume { start }) => check_resume(run, at, *start),
        (Some(run), _) if run.outcome.is_some() => Err(CorruptRun::Stopped { kind: event.kind() }),
        (Some(run), _) => Check { run, event }.check(),
    }
}

fn check_resume(run: &Run, at: UnixMs, start: u32) -> Result<(), CorruptRun> {
    run.resumable(at).map_err(CorruptRun::Resume)?;
    if start > run.resumes {
        return Ok(());
    }
    Err(CorruptRun::ResumeNumber {
        found: start,
        last: run.resumes,
    })
}

struct Check<'a> {
    run: &'a Run,
    event: &'a Event,
}

impl Check<'_> {
    fn check(&self) -> Result<(), CorruptRun> {
        match self.event {
            Event::RunStart { .. } | Event::RunResume { .. } | Event::StopRequested { .. } => {
                Ok(())
            }
            Event::Imported { .. }
            | Event::EpochAdvance { .. }
            | Event::ResumePick { .. }
            | Event::ResumeRefused { .. }
            | Event::RescoreStart { .. }
            | Event::RescoreCut { .. } => check_import::check(self.run, self.event),
            Event::Plateau { active, .. } => self.plateau(*active),
            Event::FinalReserve { reserve_ms, .. } => self.reserve(*reserve_ms),
            Event::EffectStarted { effect } => check_effect::started(self.run, effect),
            Event::EffectEnded { effect, end } => check_effect::ended(self.run, effect, end),
            Event::PhaseChange { from, to } => self.phase_change(*from, *to),
            Event::Draw { node, index, u, .. } => self.draw(*node, *index, *u),
            Event::FallbackToImprove { node, from, .. }
            | Event::FallbackToDraft { node, from, .. } => self.fallback(*node, *from),
            Event::Select { node, parent, .. } => self.select(*node, *parent),
            Event::DraftPick { node, .. } => self.draft_pick(*node),
            Event::NodeCreated { .. } => self.created(),
            Event::NodeSettled { node, status, .. } => self.settled(*node, *status),
            Event::RefutedDirection { node, parent, .. } => self.refuted(*node, *parent),
            Event::AblationResult { node, .. } => self.ablation(*node),
            Event::ViewCheckResult { node, attempt, .. } => self.view_check(*node, *attempt),
            Event::PromotionStart { node, .. }
            | Event::PromotionDone { node, .. }
            | Event::PromotionFailed { node, .. } => self.promotion(*node),
            Event::Stop { .. } if !self.run.running.is_empty() => Err(CorruptRun::StopTooEarly {
                running: self.run.running.len(),
            }),
            Event::Stop { .. } => Ok(()),
            Event::FinalStart { .. }
            | Event::CandidateSkipped { .. }
            | Event::GuardStart { .. }
            | Event::GuardResult { .. }
            | Event::FinalGuardRefused { .. }
            | Event::WinnerChosen { .. } => check_final::check(self.run, self.event),
        }
    }

    fn kind(&self) -> String {
        self.event.kind()
    }

    fn plateau(&self, active: bool) -> Result<(), CorruptRun> {
        self.in_phase(self.run.phase == Phase::Search && self.run.plateau != active)
    }

    /// The reserve only grows (RSV-04).
    fn reserve(&self, reserve_ms: i64) -> Result<(), CorruptRun> {
        let is_open = matches!(self.run.phase, Phase::Search | Phase::Settling);
        self.in_phase(is_open && reserve_ms > self.run.reserve_ms)
    }

    fn node(&self, node: NodeId) -> Result<&Node, CorruptRun> {
        self.run.node(node).ok_or_else(|| CorruptRun::UnknownNode {
            kind: self.kind(),
            node,
        })
    }

    fn phase_change(&self, from: Phase, to: Phase) -> Result<(), CorruptRun> {
        let is_next = matches!(
            (from, to),
            (Phase::Launching, Phase::Seeding)
                | (Phase::Seeding, Phase::Search)
                | (Phase::Search, Phase::Settling)
                | (Phase::Settling, Phase::Final)
        );
        let imports = usize::try_from(self.run.policy.continuation.imports).unwrap_or(usize::MAX);
        let is_clear = match to {
            Phase::Seeding => self.run.nodes.len() == imports,
            Phase::Final => self.run.running.is_empty(),
            _ => true,
        };
        self.in_phase(is_next && is_clear && self.run.phase == from)
    }

    fn in_phase(&self, holds: bool) -> Result<(), CorruptRun> {
        if holds {
            return Ok(());
        }
        Err(CorruptRun::WrongPhase {
            kind: self.kind(),
            phase: self.run.phase,
        })
    }

    fn is_next_node(&self, found: NodeId) -> Result<(), CorruptRun> {
        let expected = self.run.next_node();
        if found == expected {
            return Ok(());
        }
        Err(CorruptRun::NodeOrder {
            kind: self.kind(),
            expected,
            found,
        })
    }

    fn draw(&self, node: NodeId, found: u64, found_u: f64) -> Result<(), CorruptRun> {
        self.in_phase(self.run.phase == Phase::Search)?;
        self.is_next_node(node)?;
        self.creation(node, self.run.drawn.is_none(), "it is drawn already")?;
        let (expected, expected_u) = (self.run.draws, self.run.rng.clone().random());
        if found == expected && found_u.to_bits() == expected_u.to_bits() {
            return Ok(());
        }
        Err(CorruptRun::Draw {
            expected,
            found,
            expected_u,
            found_u,
        })
    }

    fn creation(&self, node: NodeId, holds: bool, why: &'static str) -> Result<(), CorruptRun> {
        if holds {
            return Ok(());
        }
        Err(CorruptRun::Creation {
            kind: self.kind(),
            node,
            why,
        })
    }

    fn fallback(&self, node: NodeId, from: Operator) -> Result<(), CorruptRun> {
        self.is_next_node(node)?;
        let drawn = self.run.drawn.as_ref();
        let fits = drawn.is_some_and(|d| d.operator == from && d.parent.is_none());
        self.creation(node, fits, "another operator was drawn")
    }

    fn select(&self, node: NodeId, parent: NodeId) -> Result<(), CorruptRun> {
        self.is_next_node(node)?;
        let status = self.node(parent)?.status();
        let fits = match self.run.drawn.as_ref().map(|drawn| drawn.operator) {
            Some(Operator::Improve) => status == NodeStatus::Scored,
            Some(Operator::Debug) => status.is_candidate_fault(),
            _ => false,
        };
        self.creation(node, fits, "the parent does not fit the drawn operator")
    }

    fn draft_pick(&self, node: NodeId) -> Result<(), CorruptRun> {
        self.is_next_node(node)?;
        let drawn = self.run.drawn.as_ref();
        let fits = drawn.is_some_and(|d| d.operator == Operator::Draft);
        self.creation(node, fits, "no draft was drawn")
    }

    fn created(&self) -> Result<(), CorruptRun> {
        let Event::NodeCreated {
            node,
            operator,
            parent,
            family,
            seed_program,
        } = self.event
        else {
            return Ok(());
        };
        self.is_next_node(*node)?;
        if *operator == Operator::Seed {
            self.in_phase(self.run.phase == Phase::Seeding)?;
            let known = |seed: &crate::SeedProgram| Some(&seed.id) == seed_program.as_ref();
            let fits = self.run.policy.seed_programs.iter().any(known) && parent.is_none();
            return self.creation(*node, fits, "no such seed program, or it has a parent");
        }
        let fits = self.run.drawn.as_ref().is_some_and(|drawn| {
            let has_origin =
                drawn.parent.is_some() || matches!(operator, Operator::Draft | Operator::Resume);
            let same_family = *operator != Operator::Draft || drawn.family == *family;
            drawn.operator == *operator && drawn.parent == *parent && has_origin && same_family
        });
        let fits = fits && seed_program.is_none();
        self.creation(
            *node,
            fits,
            "operator, parent or family differ from its draw",
        )
    }

    fn settled(&self, node: NodeId, status: NodeStatus) -> Result<(), CorruptRun> {
        let found = self.node(node)?;
        if found.settled().is_some() {
            return Err(CorruptRun::SettledTwice { node });
        }
        let expected = apply_tree::expected_status(found);
        if status == expected {
            return Ok(());
        }
        Err(CorruptRun::Settlement {
            node,
            status,
            stage: found.stage.word(),
        })
    }

    fn refuted(&self, node: NodeId, parent: NodeId) -> Result<(), CorruptRun> {
        let found = self.node(node)?;
        let why = if found.settled().is_none() {
            "it is not settled"
        } else if found.parent != Some(parent) {
            "another parent"
        } else if found.refuted.is_some() {
            "a second time"
        } else {
            return Ok(());
        };
        Err(CorruptRun::Refuted { node, why })
    }

    fn ablation(&self, node: NodeId) -> Result<(), CorruptRun> {
        let found = self.node(node)?;
        let is_owed = self.run.policy.ablation && found.ablation.is_none();
        if is_owed && checks::takes_ablation(found) {
            return Ok(());
        }
        let why = "no result of a control run is due";
        Err(CorruptRun::Check {
            kind: self.kind(),
            node,
            why,
        })
    }

    fn view_check(&self, node: NodeId, attempt: u32) -> Result<(), CorruptRun> {
        let found = self.node(node)?;
        if self.run.checking.contains(&node) && attempt == found.view.attempts {
            return Ok(());
        }
        let why = "no such view check has begun";
        Err(CorruptRun::Check {
            kind: self.kind(),
            node,
            why,
        })
    }

    fn promotion(&self, node: NodeId) -> Result<(), CorruptRun> {
        let found = self.node(node)?;
        let (generation, epoch, starts) = match self.event {
            Event::PromotionStart {
                generation, epoch, ..
            } => (*generation, *epoch, true),
            Event::PromotionDone {
                generation, epoch, ..
            }
            | Event::PromotionFailed {
                generation, epoch, ..
            } => (*generation, *epoch, false),
            _ => return Ok(()),
        };
        let state_fits = match &found.promotion.state {
            PromotionState::Running { epoch: own, .. } => !starts && *own == epoch,
            PromotionState::Idle | PromotionState::Failed { .. } => {
                starts && self.run.promoting.is_none() && epoch == self.run.epoch
            }
        };
        let why = if generation != found.promotion.generation {
            "another generation"
        } else if !found.is_scored() {
            "it is not scored"
        } else if starts && !found.view.is_fit() && !planted::is(Bug::PromotionUnchecked) {
            "its view check has not passed"
        } else if !state_fits {
            "the promotion is in another state or epoch, or another one runs"
        } else {
            return Ok(());
        };
        Err(CorruptRun::Promotion {
            kind: self.kind(),
            node,
            why,
        })
    }
}
