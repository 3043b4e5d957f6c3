//! Texts that all nodes repeat, kept once per run: names of views, rulers, metrics and families.
//! What a report of the scorer or of an execution names comes from the board, and a family from the
//! library; each pool is bounded all the same ([`Pool::LEN_MAX`]).

use vec_types::{FamilyId, PartName, Plan, Pool, RulerId, ScoreReport, ViewId};

use crate::node::PackedPlan;
use crate::{ExecReport, ExecResult};

/// Pools of one run. They change nothing but where texts stand.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Names {
    words: Pool<Box<str>>,
    views: Pool<Vec<ViewId>>,
    rulers: Pool<Vec<RulerId>>,
    parts: Pool<Vec<PartName>>,
}

impl Names {
    pub(super) fn family(&mut self, family: Option<&FamilyId>) -> Option<FamilyId> {
        let mut family = family.cloned();
        if let Some(family) = &mut family {
            family.share(&mut self.words);
        }
        family
    }

    pub(super) fn plan(&mut self, plan: &Plan) -> PackedPlan {
        let mut packed = PackedPlan::new(plan);
        if let Some(family) = packed.family_mut() {
            family.share(&mut self.words);
        }
        packed
    }

    pub(super) fn exec(&mut self, report: &ExecReport) -> ExecReport {
        let mut report = report.clone();
        report.wall_ms.share_keys(&mut self.views);
        if let ExecResult::Done { digests } = &mut report.result {
            digests.share_keys(&mut self.views);
        }
        report
    }

    pub(super) fn score(&mut self, report: &ScoreReport) -> ScoreReport {
        let mut report = report.clone();
        report.components.share_keys(&mut self.rulers);
        report.parts.share_names(&mut self.parts);
        report
    }
}
