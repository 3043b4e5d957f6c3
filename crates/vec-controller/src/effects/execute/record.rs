//! What is recorded about an execution beside its result (EXE-10): `report.json` in its directory.

use std::collections::BTreeMap;

use serde::Serialize;
use vec_scope::Accounting;
use vec_search::ExecReport;
use vec_types::{Digest, ViewId, WeightsMode};

/// One view's part.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ViewRecord {
    /// What was done about weights.
    pub(crate) weights: WeightsMode,
    /// Key of the weights, where there are any.
    pub(crate) weights_key: Option<Digest>,
    /// Name under which the view was shown.
    pub(crate) shown_as: ViewId,
    /// Beside name and order of keys, what the disguise changed; absent: no disguise.
    pub(crate) disguise: Option<Vec<&'static str>>,
    /// The group's account of the whole tree, with its source.
    pub(crate) accounting: Accounting,
    /// Wall time of the program.
    pub(crate) wall_ms: u64,
    /// CPU time as the sandbox's helper was told by wait4.
    pub(crate) cpu_ms: u64,
    /// Largest resident set of a single process.
    pub(crate) max_rss_kib: u64,
}

/// The whole document.
#[derive(Debug, Serialize)]
pub(crate) struct ExecutionRecord<'a> {
    /// The result, as in the event.
    #[serde(flatten)]
    pub(crate) report: &'a ExecReport,
    /// Arguments beyond the usual ones.
    pub(crate) extra_args: &'a [String],
    /// Data epoch of the views.
    pub(crate) data_epoch: u32,
    /// Per view, as far as it came.
    pub(crate) views: &'a BTreeMap<ViewId, ViewRecord>,
}
