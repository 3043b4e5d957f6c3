//! The metric side, pure: prepared row sets with their anchors, the comparison of predictions
//! with them, and the scoring fingerprint. Sees flat matrices only, never untrusted bytes.

mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use vec_daemon::spec::{RulerSpec, ScoringSpec};
use vec_metrics::{
    Anchors, BoardError, Direction, MetricError, MetricSpec, SplitError, board_score, rmse,
    ruler_score,
};
use vec_types::{
    CanonicalError, Digest, Part, RulerId, Score, ScoreReport, ViewId, canonical_json,
};

use crate::matrix::Matrix;
use crate::problem::{FormatCode, FormatProblem};
use crate::truth::TruthRows;
use rows::RowSet;
pub use rows::{RowChoice, SEARCH_SEEDS};

/// The one metric of tabular boards.
const RMSE: &str = "rmse";

/// Predictions by view, as the parser processes returned them.
pub(crate) type Predictions = BTreeMap<ViewId, Matrix>;

/// What 50 and 100 points mean on one row set. Same JSON as the evaluation spec's anchors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// Metric of the floor prediction (skill 0.5).
    pub floor: f64,
    /// Metric of a perfect prediction (skill 1).
    pub ceiling: f64,
    /// Rows scored.
    pub rows: u32,
}

/// Why a board cannot be scored with this truth.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// A metric that this scorer does not have.
    #[error("ruler {ruler} wants metric {metric:?}; this scorer has `rmse`")]
    Metric {
        /// The ruler.
        ruler: RulerId,
        /// What it wants.
        metric: String,
    },
    /// No objective ruler, or weights that cannot be normalised.
    #[error("the weights of the objective rulers are not usable")]
    Weights(#[source] BoardError),
    /// Guard seeds repeat or are search seeds.
    #[error("guard seed {0} stands twice or is a search seed (0, 1, 2)")]
    GuardSeed(u32),
    /// A row set would be too small to mean anything.
    #[error("{rows} has {found} truth rows; at least {least} are needed")]
    TooFewRows {
        /// Anchor key of the row set.
        rows: RowChoice,
        /// Rows there are.
        found: usize,
        /// Rows needed.
        least: usize,
    },
    /// Rows cannot be drawn or divided.
    #[error("choose truth rows for {rows}")]
    Split {
        /// Anchor key of the row set.
        rows: RowChoice,
        /// Why.
        #[source]
        source: SplitError,
    },
    /// All targets of a row set are equal: nothing can be ranked on it.
    #[error("all truth values of {0} are equal")]
    ConstantTruth(RowChoice),
    /// The floor prediction is perfect or not a number on a row set.
    #[error("the floor of {0} is 0 or not a number")]
    Floor(RowChoice),
    /// The fingerprint cannot be written.
    #[error("write the scoring fingerprint")]
    Fingerprint(#[source] CanonicalError),
}

/// Why a well-formed prediction has no score: a fault of ours.
#[derive(Debug, thiserror::Error)]
pub enum ScoreFailure {
    /// The seed belongs to no row set.
    #[error("no truth rows for {0}")]
    UnknownRows(RowChoice),
    /// A prediction lacks what the format check had found.
    #[error("a checked prediction lacks view {view} or one of its rows")]
    Incomplete {
        /// The view.
        view: ViewId,
    },
    /// The metric has no value.
    #[error("metric rmse of ruler {ruler}")]
    Metric {
        /// The ruler.
        ruler: RulerId,
        /// Why.
        #[source]
        source: MetricError,
    },
    /// The values make no score.
    #[error("score of the board")]
    Board(#[source] BoardError),
    /// The score is not finite.
    #[error("the score is not finite")]
    NotFinite,
}

/// Prepared truth of one board.
pub struct Scoring {
    rulers: BTreeMap<RulerId, RulerSpec>,
    weights: BTreeMap<String, f64>,
    sets: BTreeMap<RowChoice, RowSet>,
    test_ids: Vec<u64>,
    fingerprint: Digest,
}

// Truth never reaches a log through a derived Debug.
impl fmt::Debug for Scoring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Scoring({} row sets, {})",
            self.sets.len(),
            self.fingerprint
        )
    }
}

impl Scoring {
    /// Chooses all row sets of a run (half A, search seeds 0–2, each guard part) and computes
    /// their anchors.
    ///
    /// # Errors
    /// [`PrepareError`] when the board or its truth cannot rank predictions.
    pub fn prepare(spec: &ScoringSpec, truth: &TruthRows) -> Result<Self, PrepareError> {
        let mut weights = BTreeMap::new();
        for (
            ruler,
            RulerSpec {
                view: _,
                weight,
                metric,
            },
        ) in &spec.rulers
        {
            if metric != RMSE {
                return Err(PrepareError::Metric {
                    ruler: ruler.clone(),
                    metric: metric.clone(),
                });
            }
            weights.insert(ruler.to_string(), *weight);
        }
        let zeros = weights.keys().map(|ruler| (ruler.clone(), 0.0)).collect();
        board_score(&weights, &zeros).map_err(PrepareError::Weights)?;
        let sets = rows::choose(spec, truth)?;
        let mut scoring = Self {
            rulers: spec.rulers.clone(),
            weights,
            sets,
            test_ids: rows::test_ids(truth),
            fingerprint: Digest::ZERO,
        };
        scoring.fingerprint = scoring.make_fingerprint(spec)?;
        Ok(scoring)
    }

    /// sha256 of everything on the scorer's side that gives a score its meaning (O-EVS-2).
    #[must_use]
    pub const fn fingerprint(&self) -> Digest {
        self.fingerprint
    }

    /// Views whose predictions are scored.
    #[must_use]
    pub fn views(&self) -> BTreeSet<ViewId> {
        self.rulers
            .values()
            .map(|ruler| ruler.view.clone())
            .collect()
    }

    /// Ids that a prediction must hold, ascending: those of halves A and B together.
    #[must_use]
    pub fn test_ids(&self) -> &[u64] {
        &self.test_ids
    }

    /// All row sets.
    pub fn choices(&self) -> impl Iterator<Item = RowChoice> {
        self.sets.keys().copied()
    }

    /// Anchors per ruler and row set, keyed `<half>:s<scoring seed>` (O-EVS-1).
    #[must_use]
    pub fn anchors(&self) -> BTreeMap<RulerId, BTreeMap<String, Anchor>> {
        let of_set = |(choice, set): (&RowChoice, &RowSet)| {
            let rows = u32::try_from(set.ids.len()).unwrap_or(u32::MAX);
            (
                choice.to_string(),
                Anchor {
                    floor: set.floor,
                    ceiling: 0.0,
                    rows,
                },
            )
        };
        let all: BTreeMap<String, Anchor> = self.sets.iter().map(of_set).collect();
        self.rulers
            .keys()
            .map(|ruler| (ruler.clone(), all.clone()))
            .collect()
    }

    /// Does `matrix` hold exactly the test ids? Must pass before any quota is charged (O-TOO-1).
    ///
    /// # Errors
    /// [`FormatProblem`] with counts and the first id concerned.
    pub fn check(&self, matrix: &Matrix) -> Result<(), FormatProblem> {
        let held: BTreeSet<u64> = matrix.ids().iter().copied().collect();
        let wanted: BTreeSet<u64> = self.test_ids.iter().copied().collect();
        if let Some(first) = held.difference(&wanted).next() {
            let count = held.difference(&wanted).count();
            let detail = format!("{count} ids are not test ids, the first is {first}");
            return Err(FormatProblem::new(FormatCode::ExtraRows, detail));
        }
        if let Some(first) = wanted.difference(&held).next() {
            let count = wanted.len() - held.len();
            let all = wanted.len();
            let detail = format!("{count} of {all} test ids are missing, the first is {first}");
            return Err(FormatProblem::new(FormatCode::MissingRows, detail));
        }
        Ok(())
    }

    /// Scores checked predictions on one row set.
    ///
    /// # Errors
    /// [`ScoreFailure`]; none of its variants is the prediction's fault.
    pub(crate) fn score(
        &self,
        rows: RowChoice,
        predictions: &Predictions,
    ) -> Result<ScoreReport, ScoreFailure> {
        let set = self
            .sets
            .get(&rows)
            .ok_or(ScoreFailure::UnknownRows(rows))?;
        let (mut components, mut parts) = (BTreeMap::new(), Vec::new());
        for (ruler, RulerSpec { view, .. }) in &self.rulers {
            let incomplete = || ScoreFailure::Incomplete { view: view.clone() };
            let matrix = predictions.get(view).ok_or_else(incomplete)?;
            let predicted: Option<Vec<f64>> = set.ids.iter().map(|id| matrix.get(*id)).collect();
            let predicted = predicted.ok_or_else(incomplete)?;
            let raw = rmse(&set.targets, &predicted).map_err(|source| ScoreFailure::Metric {
                ruler: ruler.clone(),
                source,
            })?;
            let scored = ruler_score(
                &[rmse_spec(set.floor)],
                &BTreeMap::from([(RMSE.to_owned(), raw)]),
            )
            .map_err(ScoreFailure::Board)?;
            components.insert(ruler.clone(), scored.score);
            parts.extend(scored.parts.into_iter().map(|part| Part {
                ruler: ruler.clone(),
                metric: part.metric,
                raw: part.raw,
                skill: part.skill,
                points: part.points,
            }));
        }
        let by_name = components
            .iter()
            .map(|(ruler, score)| (ruler.to_string(), *score))
            .collect();
        let total = board_score(&self.weights, &by_name).map_err(ScoreFailure::Board)?;
        let finite = |value: f64| Score::new(value).map_err(|_| ScoreFailure::NotFinite);
        let components = components
            .into_iter()
            .map(|(ruler, score)| Ok((ruler, finite(score)?)));
        Ok(ScoreReport {
            total: finite(total)?,
            components: components.collect::<Result<_, ScoreFailure>>()?,
            parts: parts.into(),
        })
    }

    /// Predictions for the rows of one set, made from their targets in id order. Holds truth, which
    /// is why it stays inside the scorer (self-test).
    pub(crate) fn predict(
        &self,
        rows: RowChoice,
        make: impl FnOnce(&[f64]) -> Vec<f64>,
    ) -> Predictions {
        let Some(set) = self.sets.get(&rows) else {
            return Predictions::new();
        };
        let pairs = set.ids.iter().copied().zip(make(&set.targets));
        let Ok(matrix) = Matrix::new(pairs) else {
            return Predictions::new();
        };
        self.views()
            .into_iter()
            .map(|view| (view, matrix.clone()))
            .collect()
    }

    /// Floor of one row set.
    pub(crate) fn floor(&self, rows: RowChoice) -> Option<f64> {
        self.sets.get(&rows).map(|set| set.floor)
    }

    fn make_fingerprint(&self, spec: &ScoringSpec) -> Result<Digest, PrepareError> {
        let scorer = vec_metrics::scorer_hash();
        let meaning = serde_json::json!({
            "anchors": self.anchors(), "scorer_hash": scorer, "scoring": spec,
        });
        let bytes = canonical_json(&meaning).map_err(PrepareError::Fingerprint)?;
        Ok(Digest::of(&bytes))
    }
}

fn rmse_spec(floor: f64) -> MetricSpec {
    MetricSpec {
        name: RMSE.to_owned(),
        weight: 1.0,
        direction: Direction::LowerIsBetter,
        anchors: Anchors {
            floor,
            ceiling: 0.0,
        },
    }
}

/// A report as agents see it: every number rounded to 4 decimals.
#[must_use]
pub(crate) fn rounded(report: ScoreReport) -> ScoreReport {
    let round = |value: f64| Score::new(value).map_or(value, Score::rounded);
    let round_score = |score: Score| Score::new(score.rounded()).unwrap_or(score);
    ScoreReport {
        total: round_score(report.total),
        components: report
            .components
            .into_iter()
            .map(|(ruler, score)| (ruler, round_score(score)))
            .collect(),
        parts: report
            .parts
            .into_iter()
            .map(|part| Part {
                raw: round(part.raw),
                skill: round(part.skill),
                points: round(part.points),
                ..part
            })
            .collect(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
