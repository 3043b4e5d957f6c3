//! Which truth rows score which seed. Choices depend on row *positions* (rows sorted by id), a
//! purpose and a seed only, never on a program: both sides of a pair see the same rows.
//!
//! Algorithm, version 1: a ChaCha20 stream keyed with
//! `sha256("vec/rows/<kind>/v1\n<purpose>\n<seed>\n<rows>")` drives a Fisher–Yates shuffle of
//! `0..rows` from the front (position i swaps with `i + below(rows − i)`); `below(n)` takes u64
//! words and rejects those at or above the largest multiple of n. A draw is the first k of the
//! shuffle, parts are its consecutive pieces; both are then sorted.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use vec_types::Digest;

/// Why rows cannot be split as asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SplitError {
    /// A share outside (0, 1].
    #[error("fraction {0} is outside (0, 1]")]
    Fraction(f64),
    /// More parts than rows, or none.
    #[error("{rows} rows cannot make {parts} parts")]
    Parts {
        /// Rows to divide.
        rows: usize,
        /// Parts asked for.
        parts: usize,
    },
    /// Nothing to draw from.
    #[error("no rows to draw from")]
    Empty,
}

/// Side of a row in a split by hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowShare {
    /// Rows that scoring seeds 0 to 2 draw from.
    Search,
    /// Rows of the final guard, which nothing else ever scores.
    Guard,
}

/// Draws `fraction` of `rows` positions without replacement (rounded, at least one), ascending.
///
/// # Errors
/// [`SplitError`] for a fraction outside (0, 1] and for no rows.
pub fn draw_fraction(
    rows: usize,
    fraction: f64,
    purpose: &str,
    seed: u32,
) -> Result<Vec<usize>, SplitError> {
    if !(fraction > 0.0 && fraction <= 1.0) {
        return Err(SplitError::Fraction(fraction));
    }
    if rows == 0 {
        return Err(SplitError::Empty);
    }
    let drawn = ((rows as f64 * fraction).round() as usize).clamp(1, rows);
    let mut order = shuffled(rows, drawn, "draw", purpose, seed);
    order.truncate(drawn);
    order.sort_unstable();
    Ok(order)
}

/// Divides `rows` positions into `parts` disjoint parts that cover all; sizes differ by at most 1.
///
/// # Errors
/// [`SplitError::Parts`] when a part would be empty.
pub fn disjoint_parts(
    rows: usize,
    parts: usize,
    purpose: &str,
    seed: u32,
) -> Result<Vec<Vec<usize>>, SplitError> {
    if parts == 0 || parts > rows {
        return Err(SplitError::Parts { rows, parts });
    }
    let order = shuffled(rows, rows, "parts", purpose, seed);
    let (size, larger) = (rows / parts, rows % parts);
    let mut rest = order.as_slice();
    let mut made = Vec::with_capacity(parts);
    for part in 0..parts {
        let (piece, tail) = rest.split_at(size + usize::from(part < larger));
        let mut piece = piece.to_vec();
        piece.sort_unstable();
        made.push(piece);
        rest = tail;
    }
    Ok(made)
}

/// Side of the row with `id`: guard where the first 8 bytes of `sha256("<seed>:<id>")`, read as a
/// big-endian fraction of 2^64, are below `guard_fraction`.
#[must_use]
pub fn hash_share(seed: u64, id: u64, guard_fraction: f64) -> RowShare {
    let digest = Digest::of(format!("{seed}:{id}").as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_bytes()[..8]);
    // 53 bits: exact in a double, so that the fraction is below 1.
    let fraction = (u64::from_be_bytes(first) >> 11) as f64 / (1_u64 << 53) as f64;
    if fraction < guard_fraction {
        RowShare::Guard
    } else {
        RowShare::Search
    }
}

fn shuffled(rows: usize, settled: usize, kind: &str, purpose: &str, seed: u32) -> Vec<usize> {
    let text = format!("vec/rows/{kind}/v1\n{purpose}\n{seed}\n{rows}");
    let mut random = ChaCha20Rng::from_seed(*Digest::of(text.as_bytes()).as_bytes());
    let mut order: Vec<usize> = (0..rows).collect();
    for position in 0..settled {
        let other = position + below(&mut random, (rows - position) as u64) as usize;
        order.swap(position, other);
    }
    order
}

fn below(random: &mut ChaCha20Rng, bound: u64) -> u64 {
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

    use proptest::prelude::*;

    use super::*;
    use crate::rmse;

    #[test]
    fn version_1_is_frozen() {
        // A change here makes scores of older runs incomparable: bump the version instead.
        assert_eq!(draw_fraction(12, 0.5, "B", 0), Ok(vec![1, 3, 4, 5, 7, 9]));
        assert_eq!(hash_share(12, 0, 0.5), RowShare::Guard);
    }

    #[test]
    fn impossible_splits_are_refused() {
        for fraction in [0.0, -0.1, 1.1, f64::NAN] {
            assert!(matches!(
                draw_fraction(5, fraction, "B", 0),
                Err(SplitError::Fraction(_))
            ));
        }
        assert_eq!(draw_fraction(0, 0.5, "B", 0), Err(SplitError::Empty));
        assert!(disjoint_parts(4, 5, "B", 0).is_err());
        assert!(disjoint_parts(4, 0, "B", 0).is_err());
        assert_eq!(draw_fraction(3, 0.01, "B", 0).map(|rows| rows.len()), Ok(1));
    }

    #[test]
    fn a_constant_prediction_varies_over_guard_parts_of_skewed_rows() {
        let truth: Vec<f64> = (0..45).map(|k| f64::from(k).powi(3)).collect();
        let parts = disjoint_parts(truth.len(), 5, "guard", 0).expect("parts");
        let scores: Vec<f64> = parts
            .iter()
            .map(|rows| {
                let rows: Vec<f64> = rows.iter().map(|row| truth[*row]).collect();
                rmse(&rows, &vec![1000.0; rows.len()]).expect("finite")
            })
            .collect();
        let mean = scores.iter().sum::<f64>() / 5.0;
        let variance = scores.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / 4.0;
        assert!(variance.sqrt() > 0.01 * mean, "{scores:?}");
    }

    #[test]
    fn draws_are_fair_enough() {
        let mut seen = [0_u32; 10];
        for seed in 0..2_000 {
            for row in draw_fraction(10, 0.5, "B", seed).expect("drawn") {
                seen[row] += 1;
            }
        }
        // Binomial(2000, 0.5): sd 22.4; five sd either way.
        assert!(seen.iter().all(|n| (888..=1112).contains(n)), "{seen:?}");
    }

    proptest! {
        #[test]
        fn parts_are_disjoint_covering_and_even(rows in 1_usize..400, parts in 1_usize..12, seed in any::<u32>()) {
            prop_assume!(parts <= rows);
            let made = disjoint_parts(rows, parts, "guard", seed).expect("parts");
            let all: Vec<usize> = made.concat();
            prop_assert_eq!(all.len(), rows);
            prop_assert_eq!(all.iter().copied().collect::<BTreeSet<_>>().len(), rows);
            let sizes: Vec<usize> = made.iter().map(Vec::len).collect();
            prop_assert!(sizes.iter().max().expect("one") - sizes.iter().min().expect("one") <= 1);
        }

        #[test]
        fn both_sides_of_a_pair_see_the_same_rows(rows in 1_usize..400, fraction in 0.01..1.0_f64, seed in any::<u32>()) {
            let first = draw_fraction(rows, fraction, "B", seed);
            prop_assert_eq!(&first, &draw_fraction(rows, fraction, "B", seed));
            let drawn = first.expect("drawn");
            prop_assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(drawn.iter().all(|row| *row < rows));
        }

        #[test]
        fn hash_shares_follow_the_fraction(seed in any::<u64>()) {
            let guard = (0..1_000).filter(|id| hash_share(seed, *id, 0.5) == RowShare::Guard).count();
            // sd 15.8; six sd.
            prop_assert!((405..=595).contains(&guard), "{}", guard);
            prop_assert!((0..100).all(|id| hash_share(seed, id, 0.0) == RowShare::Search));
            prop_assert!((0..100).all(|id| hash_share(seed, id, 1.0) == RowShare::Guard));
        }
    }
}
