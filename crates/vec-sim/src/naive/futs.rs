//! Rank and U by counting (SEL-02, SEL-07, SEL-13, EXT-04).

use vec_types::NodeId;

use super::Naive;
use crate::row::Row;

impl Naive<'_> {
    /// The first of the largest, each row with the rank of another one.
    pub(super) fn largest_u<'a>(
        &self,
        rows: impl Iterator<Item = (&'a Row, &'a Row)>,
    ) -> Option<NodeId> {
        let best = rows
            .map(|(row, ranked)| (row.id, self.u(row, ranked)))
            .reduce(|best, next| if next.1 > best.1 { next } else { best });
        best.map(|(id, _)| id)
    }

    fn u(&self, row: &Row, ranked: &Row) -> f64 {
        let tree = self.1.iter().filter(|row| row.status.is_in_tree());
        let n = tree.clone().count() as f64;
        let total: f64 = tree.map(|row| row.visits).sum();
        self.rank(ranked) + self.0.select.c_puct * (1.0 / n) * total.sqrt() / (1.0 + row.visits)
    }

    /// Mean position among the scores of its epoch, over n − 1.
    fn rank(&self, of: &Row) -> f64 {
        let tree = self.1.iter().filter(|row| row.status.is_in_tree());
        let epoch = tree.filter(|row| row.epoch == of.epoch);
        let below = epoch.clone().filter(|row| row.score < of.score).count() as f64;
        let equal = epoch.clone().filter(|row| row.score == of.score).count() as f64;
        match epoch.count() {
            1 => 0.5,
            n => (below + (equal - 1.0) / 2.0) / (n as f64 - 1.0),
        }
    }
}
