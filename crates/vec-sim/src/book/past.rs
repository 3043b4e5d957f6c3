//! What comes over from earlier runs: imports, re-scoring, carried-over work (CON, CAR).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use vec_search::{Event, Import, ImportEnd};
use vec_types::{NodeId, NodeStatus, Phase, Score};

use super::{Book, Entry, index};

impl Book {
    pub(super) fn write_past(&mut self, event: &Event) {
        match event {
            Event::Imported { node, import } => self.import(*node, import),
            Event::PhaseChange {
                from: Phase::Launching,
                ..
            } => self.close_imports(),
            Event::RescoreStart { node } => self.rescore(*node, NodeStatus::Running),
            Event::RescoreCut { node, .. } => self.rescore(*node, NodeStatus::ImportedUnscored),
            Event::ResumePick { work, .. } => {
                self.works.insert(work.clone());
                self.resumed += 1;
            }
            Event::ResumeRefused { work, .. } => {
                self.works.insert(work.clone());
            }
            _ => {}
        }
    }

    fn import(&mut self, node: NodeId, import: &Import) {
        let status = import.end.status();
        let (mut waiting, mut work, mut mean, mut epochs) = (None, None, None, BTreeMap::new());
        match &import.end {
            ImportEnd::Unscored { ranking, .. } => waiting = Some(*ranking),
            ImportEnd::CarriedOver { work: carried, .. } => work = Some(carried.clone()),
            ImportEnd::Scored {
                scores, mean: past, ..
            } => {
                mean = past.map(|score| (score, 0));
                epochs = scores.keys().map(|exec| (*exec, 0)).collect();
            }
            _ => {}
        }
        self.works.extend(import.resumed.clone());
        self.nodes.push(Entry {
            operator: import.operator,
            parent: import.parent,
            drawn_family: import.drawn_family.clone(),
            status: NodeStatus::Running,
            is_import: true,
            waiting,
            work,
            mean,
            epochs,
            view: None,
            cuts: BTreeSet::new(),
            view_attempts: 0,
            visits: 0,
            virtual_visits: 0,
        });
        if status == NodeStatus::ImportedUnscored {
            self.nodes[index(node)].status = status;
        } else {
            self.settle(node, status);
        }
    }

    fn rescore(&mut self, node: NodeId, status: NodeStatus) {
        if let Some(entry) = self.entry_mut(node) {
            entry.status = status;
            entry.waiting = None;
        }
    }

    /// Imports that wait to be scored again, best first.
    #[must_use]
    pub fn waiting(&self) -> Vec<NodeId> {
        let mut waiting: Vec<(Reverse<Score>, u32)> = (0..)
            .zip(&self.nodes)
            .filter_map(|(node, entry)| Some((Reverse(entry.waiting?), node)))
            .collect();
        waiting.sort_unstable();
        waiting.into_iter().map(|(_, node)| NodeId(node)).collect()
    }

    /// CON-02: beyond the best they are history.
    fn close_imports(&mut self) {
        let kept = usize::try_from(self.rescore_top_k).unwrap_or(usize::MAX);
        for node in self.waiting().into_iter().skip(kept) {
            self.settle(node, NodeStatus::HistoryOnly);
            self.nodes[index(node)].waiting = None;
        }
    }
}
