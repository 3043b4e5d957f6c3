//! What the events say, written down as they come: an own fold of the few things that rules look at,
//! sharing no code with `vec_search`. Visits are kept incrementally and can be recomputed.

mod past;

use std::collections::{BTreeMap, BTreeSet};

use vec_search::{DraftMode, Effect, Event, Outcome, ViewVerdict};
use vec_types::{ExecName, FamilyId, InfraFault, NodeId, NodeStatus, Operator, RunNode, Score};

/// One node.
#[derive(Debug, Clone)]
pub struct Entry {
    /// How it came to be.
    pub operator: Operator,
    /// Parent.
    pub parent: Option<NodeId>,
    /// Family that it was drawn for, for drafts.
    pub drawn_family: Option<FamilyId>,
    /// `running` until it is settled.
    pub status: NodeStatus,
    /// From an earlier run.
    pub is_import: bool,
    /// Score elsewhere, of an import that waits to be scored again and was not tried yet.
    pub waiting: Option<Score>,
    /// Work that it carries.
    pub work: Option<RunNode>,
    /// Mean over all seeds and the epoch that it was measured in.
    pub mean: Option<(Score, u32)>,
    /// Epoch in which each execution started.
    pub epochs: BTreeMap<ExecName, u32>,
    /// Outcome of its view check, never `unknown`.
    pub view: Option<ViewVerdict>,
    /// Runs of its view checks that were cut for lack of time.
    pub cuts: BTreeSet<ExecName>,
    /// View checks without a result, cut ones apart.
    pub view_attempts: u32,
    /// Visits that it should have.
    pub visits: u64,
    /// Virtual visits that it should have.
    pub virtual_visits: u64,
}

/// The book of one run.
#[derive(Debug, Clone, Default)]
pub struct Book {
    /// Every node by id.
    pub nodes: Vec<Entry>,
    /// Nodes in the order of their settlement, imports included.
    pub settled: Vec<NodeId>,
    /// Data epoch.
    pub epoch: u32,
    /// Plateau, as announced.
    pub plateau: bool,
    /// Drafts that the bandit chose.
    pub bandit_picks: u32,
    /// Works that were resumed or refused in any run.
    pub works: BTreeSet<RunNode>,
    /// Works that this run took up.
    pub resumed: u32,
    /// Imports scored again at most.
    pub rescore_top_k: u32,
    /// Events so far.
    pub events: u64,
}

impl Entry {
    /// Found by a view check of this run to depend on the view's dress.
    #[must_use]
    pub fn is_view_dependent(&self) -> bool {
        self.view == Some(ViewVerdict::ViewDependent)
    }
}

impl Book {
    /// Writes one event down.
    pub fn write(&mut self, event: &Event) {
        self.events += 1;
        match event {
            Event::RunStart { policy, .. } => {
                self.rescore_top_k = policy.continuation.rescore_top_k;
            }
            Event::NodeCreated { .. } => self.create(event),
            Event::NodeSettled { node, status, .. } => self.settle(*node, *status),
            Event::EpochAdvance { epoch, .. } => self.epoch = *epoch,
            Event::Plateau { active, .. } => self.plateau = *active,
            Event::DraftPick { mode, .. } => {
                let is_bandit = matches!(mode, DraftMode::Explore | DraftMode::Exploit);
                self.bandit_picks += u32::from(is_bandit);
            }
            Event::EffectStarted {
                effect: Effect::Execute { node, exec },
            } => {
                let epoch = self.epoch;
                if let Some(entry) = self.entry_mut(*node) {
                    entry.epochs.insert(*exec, epoch);
                }
            }
            Event::PromotionDone {
                node, mean, epoch, ..
            } => {
                if let Some(entry) = self.entry_mut(*node) {
                    entry.mean = Some((*mean, *epoch));
                }
            }
            Event::EffectEnded {
                effect: Effect::Execute { node, exec },
                end:
                    Outcome::Interrupted {
                        fault: InfraFault::BudgetCut,
                        ..
                    },
            } => {
                if let Some(entry) = self.entry_mut(*node) {
                    entry.cuts.insert(*exec);
                }
            }
            Event::ViewCheckResult {
                node,
                attempt,
                verdict,
                ..
            } => {
                if let Some(entry) = self.entry_mut(*node) {
                    let is_unknown = *verdict == ViewVerdict::Unknown;
                    let attempt = *attempt;
                    let runs = [
                        ExecName::ViewCheck { attempt },
                        ExecName::ViewCheckConfirm { attempt },
                    ];
                    let is_cut = runs.iter().any(|exec| entry.cuts.contains(exec));
                    entry.view_attempts += u32::from(is_unknown && !is_cut);
                    entry.view = entry.view.or((!is_unknown).then_some(*verdict));
                }
            }
            other => self.write_past(other),
        }
    }

    fn create(&mut self, event: &Event) {
        let Event::NodeCreated {
            operator,
            parent,
            family,
            ..
        } = event
        else {
            return;
        };
        self.nodes.push(Entry {
            operator: *operator,
            parent: *parent,
            drawn_family: family.clone().filter(|_| *operator == Operator::Draft),
            status: NodeStatus::Running,
            is_import: false,
            waiting: None,
            work: None,
            mean: None,
            epochs: BTreeMap::new(),
            view: None,
            cuts: BTreeSet::new(),
            view_attempts: 0,
            visits: 0,
            virtual_visits: 0,
        });
        self.each_ancestor(*parent, |entry| entry.virtual_visits += 1);
    }

    fn settle(&mut self, node: NodeId, status: NodeStatus) {
        let counts = u64::from(status.is_in_tree());
        self.settled.push(node);
        let Some(entry) = self.entry_mut(node) else {
            return;
        };
        entry.status = status;
        entry.visits += counts;
        // Imports that are scored again never had virtual visits.
        let held = u64::from(!entry.is_import);
        let parent = entry.parent;
        self.each_ancestor(parent, |entry| {
            entry.virtual_visits -= held;
            entry.visits += counts;
        });
    }

    fn each_ancestor(&mut self, first: Option<NodeId>, change: impl Fn(&mut Entry)) {
        let mut at = first;
        while let Some(entry) = at.and_then(|id| self.entry_mut(id)) {
            change(entry);
            at = entry.parent;
        }
    }

    fn entry_mut(&mut self, node: NodeId) -> Option<&mut Entry> {
        self.nodes.get_mut(index(node))
    }

    /// One node.
    #[must_use]
    pub fn entry(&self, node: NodeId) -> Option<&Entry> {
        self.nodes.get(index(node))
    }

    /// The node and its ancestors, nearest first.
    #[must_use]
    pub fn chain(&self, node: NodeId) -> Vec<NodeId> {
        let mut chain = Vec::new();
        let mut at = Some(node);
        while let Some(id) = at {
            chain.push(id);
            at = self.entry(id).and_then(|entry| entry.parent);
        }
        chain
    }

    /// Visits and virtual visits of every node from nothing but parents and statuses.
    #[must_use]
    pub fn recount(&self) -> Vec<(u64, u64)> {
        let mut counts = vec![(0, 0); self.nodes.len()];
        for (position, entry) in self.nodes.iter().enumerate() {
            let is_running = entry.status == NodeStatus::Running && !entry.is_import;
            let real = u64::from(entry.status.is_in_tree());
            counts[position].0 += real;
            let chain = entry.parent.map(|parent| self.chain(parent));
            for ancestor in chain.unwrap_or_default() {
                counts[index(ancestor)].0 += real;
                counts[index(ancestor)].1 += u64::from(is_running);
            }
        }
        counts
    }
}

/// Position of a node.
#[must_use]
pub(crate) fn index(node: NodeId) -> usize {
    usize::try_from(node.0).unwrap_or(usize::MAX)
}
