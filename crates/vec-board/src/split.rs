//! Rows into training and test rows, test rows into halves A and B, half B into search and guard
//! rows (`decisions.md`, Statistics).
//!
//! Permutation, version 1: a ChaCha8 stream keyed with
//! `sha256("vec/board/permutation/v1\n<purpose>\n<seed>\n<rows>")` drives a Fisher–Yates shuffle of
//! `0..rows` from the front (position i swaps with `i + below(rows − i)`); `below(n)` takes u64
//! words and rejects those at or above the largest multiple of n. Every share keeps file order.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use vec_config::{Halves, Split, SplitKind};
use vec_metrics::{RowShare, hash_share};
use vec_types::Digest;

/// Row positions of each share, ascending.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// With target, in the view.
    pub(crate) train: Vec<usize>,
    /// Without target, in the view.
    pub(crate) test: Vec<usize>,
    /// Truth half A.
    pub(crate) half_a: Vec<usize>,
    /// Truth half B with what each row is for.
    pub(crate) half_b: Vec<(usize, RowShare)>,
}

/// Divides rows with these ids.
pub(crate) fn shares(split: &Split, halves: &Halves, ids: &[u64]) -> Shares {
    let rows = ids.len();
    let train_rows = (rows as f64 * split.train_fraction).round() as usize;
    let order = match split.kind {
        SplitKind::Head => (0..rows).collect(),
        SplitKind::Permutation => permutation("split", split.seed, rows),
    };
    let (train, test) = sorted_parts(&order, train_rows.min(rows));
    let order: Vec<usize> = permutation("halves", halves.seed, test.len())
        .into_iter()
        .map(|position| test[position])
        .collect();
    let (half_a, half_b) = sorted_parts(&order, test.len() / 2);
    let share = |row: usize| hash_share(u64::from(halves.seed), ids[row], halves.guard_fraction);
    Shares {
        train,
        test,
        half_a,
        half_b: half_b.into_iter().map(|row| (row, share(row))).collect(),
    }
}

fn sorted_parts(order: &[usize], first: usize) -> (Vec<usize>, Vec<usize>) {
    let (left, right) = order.split_at(first);
    let sorted = |part: &[usize]| {
        let mut part = part.to_vec();
        part.sort_unstable();
        part
    };
    (sorted(left), sorted(right))
}

fn permutation(purpose: &str, seed: u32, rows: usize) -> Vec<usize> {
    let text = format!("vec/board/permutation/v1\n{purpose}\n{seed}\n{rows}");
    let mut random = ChaCha8Rng::from_seed(*Digest::of(text.as_bytes()).as_bytes());
    let mut order: Vec<usize> = (0..rows).collect();
    for position in 0..rows {
        let other = position + below(&mut random, (rows - position) as u64) as usize;
        order.swap(position, other);
    }
    order
}

fn below(random: &mut ChaCha8Rng, bound: u64) -> u64 {
    let limit = u64::MAX - u64::MAX % bound;
    loop {
        let word = random.next_u64();
        if word < limit {
            return word % bound;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn split(kind: SplitKind) -> Split {
        Split {
            kind,
            train_fraction: 0.6,
            seed: 11,
        }
    }

    const HALVES: Halves = Halves {
        seed: 12,
        guard_fraction: 0.5,
    };

    #[test]
    fn version_1_is_frozen() {
        // A change here changes every board: bump the version instead. The numbers are from an
        // independent ChaCha8 in Python.
        assert_eq!(permutation("split", 11, 10), FROZEN);
    }

    const FROZEN: [usize; 10] = [5, 7, 8, 0, 4, 6, 2, 3, 9, 1];

    #[test]
    fn shares_are_disjoint_and_cover_everything() {
        let ids: Vec<u64> = (0..442).collect();
        for kind in [SplitKind::Head, SplitKind::Permutation] {
            let shares = shares(&split(kind), &HALVES, &ids);
            assert_eq!((shares.train.len(), shares.test.len()), (265, 177));
            assert_eq!((shares.half_a.len(), shares.half_b.len()), (88, 89));
            let b: Vec<usize> = shares.half_b.iter().map(|(row, _)| *row).collect();
            let parts = [&shares.train, &shares.half_a, &b];
            let all: BTreeSet<usize> = parts.into_iter().flatten().copied().collect();
            assert_eq!(all.len(), 442);
            let test: BTreeSet<&usize> = shares.half_a.iter().chain(&b).collect();
            assert_eq!(test, shares.test.iter().collect());
        }
    }

    #[test]
    fn head_takes_the_first_rows_and_seeds_matter() {
        let ids: Vec<u64> = (0..50).collect();
        let head = shares(&split(SplitKind::Head), &HALVES, &ids);
        assert_eq!(head.train, (0..30).collect::<Vec<_>>());
        let one = permutation("split", 1, 50);
        assert_ne!(one, permutation("split", 2, 50));
        assert_ne!(one, permutation("halves", 1, 50));
        assert_eq!(one.iter().collect::<BTreeSet<_>>().len(), 50);
    }
}
