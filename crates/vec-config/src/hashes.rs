//! The three hashes of an evaluation spec (EVS, O-EVS-2).

use serde_json::json;
use vec_types::{CanonicalError, Digest, ProgramSeed, canonical_json};

use crate::{AnchorKey, EvalSpec};

/// sha256 over the whole spec: describes the run itself.
///
/// # Errors
/// When the spec cannot be written canonically (an integer outside ±2^53).
pub fn eval_hash(spec: &EvalSpec) -> Result<Digest, CanonicalError> {
    Ok(Digest::of(&canonical_json(spec)?))
}

/// sha256 over the scorer's side: truth, rulers with anchors, rows and seeds, scorer.
///
/// # Errors
/// As [`eval_hash`].
pub fn scoring_fingerprint(spec: &EvalSpec) -> Result<Digest, CanonicalError> {
    // Exhaustive: a new part of the spec must be put on one side here.
    let EvalSpec {
        schema,
        board,
        views: _,
        truth,
        rulers,
        scoring,
        scorer,
        environment: _,
        execution: _,
    } = spec;
    let side = json!({
        "schema": schema,
        "board": board,
        "truth": truth,
        "rulers": rulers,
        "scoring": scoring,
        "scorer": scorer,
    });
    Ok(Digest::of(&canonical_json(&side)?))
}

/// sha256 over what the scores of search mean: the spec without the guard's seeds and without
/// anchors made only for them (EVS-06). Everything that a program can see or that may change its
/// output stays in (EVS-07).
///
/// # Errors
/// As [`eval_hash`].
pub fn search_hash(spec: &EvalSpec) -> Result<Digest, CanonicalError> {
    let mut search = spec.clone();
    let seeds = &search.scoring.search_seeds;
    let is_of_search = |key: &AnchorKey| {
        let seed = ProgramSeed(key.seed.0);
        seeds.contains(&seed) || !search.scoring.guard_seeds.contains(&seed)
    };
    for ruler in search.rulers.values_mut() {
        ruler.anchors.retain(|key, _| is_of_search(key));
    }
    search.scoring.guard_seeds.clear();
    eval_hash(&search)
}
