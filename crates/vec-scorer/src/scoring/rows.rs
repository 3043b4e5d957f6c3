//! Which truth rows each kind of scoring sees (`decisions.md`, Statistics). Chosen once at start
//! from truth and lock, so both sides of any pair see the same rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use vec_daemon::spec::ScoringSpec;
use vec_metrics::{SplitError, disjoint_parts, draw_fraction, rmse};

use super::PrepareError;
use crate::truth::{Row, TruthRows};

/// Scoring seeds that draw from the search rows.
pub const SEARCH_SEEDS: [u32; 3] = [0, 1, 2];

/// Fewest rows of half A, of one search draw and of one guard part.
const ROWS_MIN: usize = 2;

/// Floors at or below this make 50 points and 100 points the same (as in the skill formula).
const FLOOR_MIN: f64 = 1e-9;

/// Purposes of the two splits, part of the frozen algorithm.
const SEARCH_PURPOSE: &str = "search";
const GUARD_PURPOSE: &str = "guard";

/// A row set of the hidden truth. Its text is the anchor key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowChoice {
    /// All of half A: what agents query.
    HalfA,
    /// The draw of a search seed from half B's search rows.
    Search(u32),
    /// The part of a guard seed of half B's guard rows.
    Guard(u32),
}

impl fmt::Display for RowChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HalfA => f.write_str("A:s0"),
            Self::Search(seed) | Self::Guard(seed) => write!(f, "B:s{seed}"),
        }
    }
}

/// Rows of one set, by ascending id.
pub(super) struct RowSet {
    pub(super) ids: Vec<u64>,
    pub(super) targets: Vec<f64>,
    /// Metric of the floor prediction.
    pub(super) floor: f64,
}

pub(super) fn test_ids(truth: &TruthRows) -> Vec<u64> {
    let all = [&truth.a, &truth.search, &truth.guard];
    let mut ids: Vec<u64> = all.into_iter().flatten().map(|row| row.id).collect();
    ids.sort_unstable();
    ids
}

pub(super) fn choose(
    spec: &ScoringSpec,
    truth: &TruthRows,
) -> Result<BTreeMap<RowChoice, RowSet>, PrepareError> {
    let mut chosen = vec![(RowChoice::HalfA, truth.a.clone())];
    for seed in SEARCH_SEEDS {
        let rows = RowChoice::Search(seed);
        let drawn = draw_fraction(
            truth.search.len(),
            spec.truth_fraction,
            SEARCH_PURPOSE,
            seed,
        );
        chosen.push((
            rows,
            pick(&truth.search, drawn.map_err(|source| split(rows, source))?),
        ));
    }
    let mut seeds: BTreeSet<u32> = SEARCH_SEEDS.into();
    if let Some(seed) = spec.guard_seeds.iter().find(|seed| !seeds.insert(seed.0)) {
        return Err(PrepareError::GuardSeed(seed.0));
    }
    if let Some(first) = spec.guard_seeds.first() {
        let count = spec.guard_seeds.len();
        let parts = disjoint_parts(truth.guard.len(), count, GUARD_PURPOSE, 0)
            .map_err(|source| split(RowChoice::Guard(first.0), source))?;
        for (seed, part) in spec.guard_seeds.iter().zip(parts) {
            chosen.push((RowChoice::Guard(seed.0), pick(&truth.guard, part)));
        }
    }
    chosen
        .into_iter()
        .map(|(choice, rows)| Ok((choice, prepare(choice, &rows, spec.floor_prediction)?)))
        .collect()
}

fn split(rows: RowChoice, source: SplitError) -> PrepareError {
    PrepareError::Split { rows, source }
}

fn pick(rows: &[Row], positions: Vec<usize>) -> Vec<Row> {
    positions
        .into_iter()
        .filter_map(|position| rows.get(position).copied())
        .collect()
}

fn prepare(choice: RowChoice, rows: &[Row], floor_prediction: f64) -> Result<RowSet, PrepareError> {
    if rows.len() < ROWS_MIN {
        return Err(PrepareError::TooFewRows {
            rows: choice,
            found: rows.len(),
            least: ROWS_MIN,
        });
    }
    let (ids, targets): (Vec<u64>, Vec<f64>) = rows.iter().map(|row| (row.id, row.target)).unzip();
    if targets.windows(2).all(|pair| pair[0] == pair[1]) {
        return Err(PrepareError::ConstantTruth(choice));
    }
    match rmse(&targets, &vec![floor_prediction; targets.len()]) {
        Ok(floor) if floor > FLOOR_MIN => Ok(RowSet {
            ids,
            targets,
            floor,
        }),
        Ok(_) | Err(_) => Err(PrepareError::Floor(choice)),
    }
}
