//! Where a node's wall time goes: named spans, of which those ending in `.harness` are ours. The
//! median of the harness's share over all settled nodes is printed and kept in run_meta.json.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;
use vec_types::NodeId;

/// One named stretch of time inside an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// `<effect>.harness` is ours; every other name is work that was asked for.
    pub(crate) name: &'static str,
    /// Its length.
    pub(crate) length: Duration,
}

#[derive(Debug)]
struct NodeSpans {
    created: Instant,
    by_name: BTreeMap<&'static str, Duration>,
}

/// Spans of the nodes in work and figures of those settled, in this start of the controller.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    open: BTreeMap<NodeId, NodeSpans>,
    overheads_ms: Vec<f64>,
    unaccounted: Vec<f64>,
    totals: BTreeMap<&'static str, Duration>,
}

/// Figures for run_meta.json.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Overhead {
    /// Nodes measured from creation to settlement in one start.
    pub(crate) nodes: usize,
    /// Median of a node's own harness time in milliseconds.
    pub(crate) median_ms: Option<f64>,
    /// Median share of a node's wall time that no span covers, in 0..=1.
    pub(crate) unaccounted_share: Option<f64>,
    /// Mean of every named span per measured node in milliseconds.
    pub(crate) mean_ms: BTreeMap<&'static str, f64>,
}

impl Spans {
    /// A node was created.
    pub(crate) fn created(&mut self, node: NodeId) {
        self.open.insert(
            node,
            NodeSpans {
                created: Instant::now(),
                by_name: BTreeMap::new(),
            },
        );
    }

    /// Adds time to a node in work; settled and unknown nodes are ignored.
    pub(crate) fn add(&mut self, node: NodeId, span: Span) {
        if let Some(spans) = self.open.get_mut(&node) {
            *spans.by_name.entry(span.name).or_default() += span.length;
        }
    }

    /// Adds all the time since a node's creation.
    pub(crate) fn add_since_creation(&mut self, node: NodeId, name: &'static str) {
        let age = self.open.get(&node).map(|spans| spans.created.elapsed());
        if let Some(length) = age {
            self.add(node, Span { name, length });
        }
    }

    /// A node is settled: its figures count from now on.
    pub(crate) fn settled(&mut self, node: NodeId) {
        let Some(spans) = self.open.remove(&node) else {
            return;
        };
        let wall = spans.created.elapsed().as_secs_f64();
        let named: f64 = spans.by_name.values().map(Duration::as_secs_f64).sum();
        let ours: f64 = spans
            .by_name
            .iter()
            .filter(|(name, _)| name.ends_with(".harness"))
            .map(|(_, length)| length.as_secs_f64())
            .sum();
        for (name, length) in &spans.by_name {
            *self.totals.entry(name).or_default() += *length;
        }
        self.overheads_ms.push(ours * 1e3);
        self.unaccounted.push(if wall > 0.0 {
            ((wall - named) / wall).max(0.0)
        } else {
            0.0
        });
    }

    /// The figures so far.
    pub(crate) fn overhead(&self) -> Overhead {
        Overhead {
            nodes: self.overheads_ms.len(),
            median_ms: median(&self.overheads_ms),
            unaccounted_share: median(&self.unaccounted),
            mean_ms: self
                .totals
                .iter()
                .map(|(name, total)| (*name, self.per_node_ms(*total)))
                .collect(),
        }
    }
}

impl Spans {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a run has fewer than 2^52 nodes"
    )]
    fn per_node_ms(&self, total: Duration) -> f64 {
        total.as_secs_f64() * 1e3 / self.overheads_ms.len().max(1) as f64
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harness_spans_count_as_overhead() {
        let mut spans = Spans::default();
        let node = NodeId(3);
        spans.created(node);
        spans.add(
            node,
            Span {
                name: "execute.program",
                length: Duration::from_millis(500),
            },
        );
        spans.add(
            node,
            Span {
                name: "execute.harness",
                length: Duration::from_millis(20),
            },
        );
        spans.add(
            NodeId(9),
            Span {
                name: "execute.harness",
                length: Duration::from_secs(9),
            },
        );
        spans.settled(node);
        let overhead = spans.overhead();
        assert_eq!(overhead.nodes, 1);
        let median = overhead.median_ms.expect("one node");
        assert!((median - 20.0).abs() < 1e-6, "{median}");
    }

    #[test]
    fn no_nodes_no_figures() {
        assert_eq!(Spans::default().overhead().median_ms, None);
    }
}
