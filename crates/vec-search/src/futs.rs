//! Flat UCB tree search, bit for bit as the public reference (EXT-04, SEL-01): stable ascending
//! sort, ties ranked by age, first maximum wins, a visit to the new node and to all its ancestors.
//!
//! Iterative, so depth is bounded by memory only. The wrapper (`select.rs`) shares
//! [`puct`] and adds everything that a run needs on top; nothing here knows about a run.

/// The tree: parents, scores and visits, all indexed by age. A failed node scores −∞.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tree {
    parents: Vec<Option<usize>>,
    scores: Vec<f64>,
    visits: Vec<u64>,
}

/// What selection computed for every node, and which node it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// rank/(n−1) by ascending score; 0.5 for a single node.
    pub rank_scores: Vec<f64>,
    /// rank score + exploration term.
    pub pucts: Vec<f64>,
    /// First maximum of `pucts`.
    pub selected: usize,
}

/// Why a node cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// The parent does not exist.
    #[error("parent {parent} does not exist: the tree has {nodes} nodes")]
    Parent {
        /// The parent named.
        parent: usize,
        /// Nodes in the tree.
        nodes: usize,
    },
    /// NaN has no rank.
    #[error("a score must be a number")]
    NotANumber,
}

impl Tree {
    /// An empty tree.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A whole search begins with a root that has no visit yet; only expansions are visited.
    ///
    /// # Errors
    /// [`TreeError::NotANumber`] for NaN.
    pub fn with_root(score: f64) -> Result<Self, TreeError> {
        let mut tree = Self::new();
        tree.push(None, score)?;
        Ok(tree)
    }

    /// Adds a node without visiting anything.
    ///
    /// # Errors
    /// [`TreeError`] for an unknown parent or NaN.
    pub fn push(&mut self, parent: Option<usize>, score: f64) -> Result<usize, TreeError> {
        let nodes = self.scores.len();
        if let Some(parent) = parent.filter(|parent| *parent >= nodes) {
            return Err(TreeError::Parent { parent, nodes });
        }
        if score.is_nan() {
            return Err(TreeError::NotANumber);
        }
        self.parents.push(parent);
        self.scores.push(score);
        self.visits.push(0);
        Ok(nodes)
    }

    /// One visit to `node` and to all its ancestors.
    pub fn back_propagate(&mut self, node: usize) {
        let mut at = Some(node);
        while let Some(index) = at {
            self.visits[index] += 1;
            at = self.parents[index];
        }
    }

    /// Adds a node and visits it and its ancestors.
    ///
    /// # Errors
    /// As [`Tree::push`].
    pub fn expand(&mut self, parent: Option<usize>, score: f64) -> Result<usize, TreeError> {
        let node = self.push(parent, score)?;
        self.back_propagate(node);
        Ok(node)
    }

    /// Visits of every node.
    #[must_use]
    pub fn visits(&self) -> &[u64] {
        &self.visits
    }

    /// Picks the next parent; absent for an empty tree.
    #[must_use]
    pub fn select(&self, c_puct: f64) -> Option<Selection> {
        let rank_scores = rank_scores_by_age(&self.scores);
        let total = self.visits.iter().sum();
        let n = self.scores.len();
        let pucts: Vec<f64> = rank_scores
            .iter()
            .zip(&self.visits)
            .map(|(rank, visits)| puct(*rank, *visits, total, n, c_puct))
            .collect();
        let selected = first_maximum(&pucts)?;
        Some(Selection {
            rank_scores,
            pucts,
            selected,
        })
    }
}

/// `rank + c·(1/n)·sqrt(Σ visits)/(1 + visits)`, in the reference's order of operations.
#[must_use]
pub fn puct(rank_score: f64, visits: u64, total_visits: u64, n: usize, c_puct: f64) -> f64 {
    let prior = 1.0 / count(n as u64);
    rank_score + c_puct * prior * count(total_visits).sqrt() / (1.0 + count(visits))
}

/// Index of the first largest value; NaN never wins.
#[must_use]
pub fn first_maximum(values: &[f64]) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (index, value) in values.iter().enumerate() {
        if best.is_none_or(|(_, largest)| *value > largest) {
            best = Some((index, *value));
        }
    }
    best.map(|(index, _)| index)
}

/// Ranks of the reference: stable ascending sort, so that equal scores rank by age.
#[must_use]
pub fn rank_scores_by_age(scores: &[f64]) -> Vec<f64> {
    let n = scores.len();
    if n == 1 {
        return vec![0.5];
    }
    let mut ranks = vec![0.0; n];
    for (rank, index) in ascending(scores).into_iter().enumerate() {
        ranks[index] = count(rank as u64) / count(n as u64 - 1);
    }
    ranks
}

/// Mean of the ranks `first..=last` among `n` nodes, scaled to 0..=1; 0.5 for a single node. The
/// wrapper gives it to equal scores (SEL-07); with `first == last` it is the reference's rank.
#[must_use]
pub fn mean_rank(first: usize, last: usize, n: usize) -> f64 {
    if n == 1 {
        return 0.5;
    }
    let mean = (count(first as u64) + count(last as u64)) / 2.0;
    mean / count(n as u64 - 1)
}

// `sort_by` is stable. Scores are never NaN; −0.0 and 0.0 are one score, so no total_cmp.
fn ascending(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| {
        scores[*a]
            .partial_cmp(&scores[*b])
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    order
}

// Node and visit counts are far below 2^53, so this is exact.
const fn count(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_computed_two_nodes() {
        // n = 2, visits 2 and 1: U0 = 0 + 1·½·√3/3, U1 = 1 + 1·½·√3/2.
        let mut tree = Tree::new();
        tree.expand(None, 1.0).expect("root");
        tree.expand(Some(0), 2.0).expect("child");
        let selection = tree.select(1.0).expect("not empty");
        assert_eq!(tree.visits(), [2, 1]);
        assert_eq!(selection.rank_scores, [0.0, 1.0]);
        assert_eq!(selection.pucts[0], 0.5 * 3.0_f64.sqrt() / 3.0);
        assert_eq!(selection.pucts[1], 1.0 + 0.5 * 3.0_f64.sqrt() / 2.0);
        assert_eq!(selection.selected, 1);
    }

    #[test]
    fn ties_rank_by_age_here_and_by_mean_in_the_wrapper() {
        let scores = [f64::NEG_INFINITY, 2.0, f64::NEG_INFINITY, 2.0, 2.0];
        assert_eq!(rank_scores_by_age(&scores), [0.0, 0.5, 0.25, 0.75, 1.0]);
        assert_eq!((mean_rank(0, 1, 5), mean_rank(2, 4, 5)), (0.125, 0.75));
        assert_eq!((mean_rank(3, 3, 5), mean_rank(0, 0, 1)), (0.75, 0.5));
    }

    #[test]
    fn an_empty_tree_selects_nothing_and_bad_input_is_refused() {
        assert_eq!(Tree::new().select(1.0), None);
        let mut tree = Tree::new();
        assert_eq!(tree.expand(None, f64::NAN), Err(TreeError::NotANumber));
        assert!(tree.expand(Some(0), 1.0).is_err());
    }

    #[test]
    fn a_chain_of_100_000_does_not_recurse() {
        let mut tree = Tree::with_root(0.0).expect("root");
        for node in 0..100_000 {
            tree.push(Some(node), 0.0).expect("child");
        }
        tree.back_propagate(100_000);
        assert_eq!(tree.visits()[0], 1);
    }
}
