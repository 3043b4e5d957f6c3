//! Tests of `scoring`.

use vec_types::ProgramSeed;

use super::*;
use crate::truth::Row;

fn spec() -> ScoringSpec {
    let ruler = RulerSpec {
        view: "main".parse().expect("view"),
        weight: 1.0,
        metric: RMSE.to_owned(),
    };
    ScoringSpec {
        board: "tiny".parse().expect("board"),
        rulers: BTreeMap::from([("main".parse().expect("ruler"), ruler)]),
        truth_fraction: 0.5,
        guard_seeds: (3..8).map(ProgramSeed).collect(),
        truth_sha256: BTreeMap::new(),
        floor_prediction: 40.0,
    }
}

fn rows(ids: impl Iterator<Item = u64>) -> Vec<Row> {
    ids.map(|id| Row {
        id,
        target: ((id * 37) % 101) as f64,
    })
    .collect()
}

fn truth() -> TruthRows {
    TruthRows {
        a: rows((0..120).step_by(2)),
        search: rows((1..120).step_by(4)),
        guard: rows((3..120).step_by(4)),
    }
}

/// A scoring that can be used.
pub(crate) fn prepared() -> Scoring {
    Scoring::prepare(&spec(), &truth()).expect("prepared")
}

fn whole(value: impl Fn(u64) -> f64) -> Predictions {
    let matrix = Matrix::new((0..120).map(|id| (id, value(id)))).expect("matrix");
    BTreeMap::from([("main".parse().expect("view"), matrix)])
}

#[test]
fn perfect_is_100_the_floor_50_and_noise_less_than_perfect_on_every_row_set() {
    let scoring = prepared();
    assert_eq!(scoring.choices().count(), 1 + 3 + 5);
    for rows in scoring.choices() {
        let total = |value: &dyn Fn(u64) -> f64| {
            scoring
                .score(rows, &whole(value))
                .expect("scored")
                .total
                .get()
        };
        assert_eq!(total(&|id| ((id * 37) % 101) as f64), 100.0, "{rows}");
        assert_eq!(total(&|_| 40.0), 50.0, "{rows}");
        assert!(
            total(&|id| ((id * 37) % 101) as f64 + 1.0) < 100.0,
            "{rows}"
        );
        let wild = total(&|_| 1e300);
        assert!(wild > 0.0 && wild < 1e-200, "{rows} {wild}");
    }
}

#[test]
fn anchors_have_the_keys_of_the_evaluation_spec() {
    let scoring = prepared();
    let anchors = scoring.anchors();
    let keys: Vec<&str> = anchors
        .values()
        .flat_map(|a| a.keys())
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "A:s0", "B:s0", "B:s1", "B:s2", "B:s3", "B:s4", "B:s5", "B:s6", "B:s7"
        ]
    );
    let sizes: Vec<u32> = anchors
        .values()
        .flat_map(|a| a.values())
        .map(|a| a.rows)
        .collect();
    assert_eq!(sizes, [60, 15, 15, 15, 6, 6, 6, 6, 6]);
}

#[test]
fn the_fingerprint_moves_with_truth_and_spec() {
    let base = Scoring::prepare(&spec(), &truth())
        .expect("prepared")
        .fingerprint();
    assert_eq!(
        base,
        Scoring::prepare(&spec(), &truth())
            .expect("prepared")
            .fingerprint()
    );
    let mut other = truth();
    other.guard[0].target += 0.5;
    assert_ne!(
        base,
        Scoring::prepare(&spec(), &other)
            .expect("prepared")
            .fingerprint()
    );
    let mut other = spec();
    other.truth_fraction = 0.6;
    assert_ne!(
        base,
        Scoring::prepare(&other, &truth())
            .expect("prepared")
            .fingerprint()
    );
}

#[test]
fn boards_that_rank_nothing_are_refused() {
    let refused = |change: &dyn Fn(&mut ScoringSpec, &mut TruthRows)| {
        let (mut spec, mut truth) = (spec(), truth());
        change(&mut spec, &mut truth);
        Scoring::prepare(&spec, &truth)
            .expect_err("refused")
            .to_string()
    };
    assert!(
        refused(&|_, truth| truth.a.iter_mut().for_each(|row| row.target = 7.0)).contains("equal")
    );
    assert!(refused(&|_, truth| truth.a.truncate(1)).contains("A:s0 has 1 truth rows"));
    assert!(refused(&|_, truth| truth.guard.truncate(4)).contains("B:s3"));
    assert!(refused(&|_, truth| truth.search.clear()).contains("B:s0"));
    assert!(refused(&|spec, _| spec.guard_seeds[1] = ProgramSeed(2)).contains("guard seed 2"));
    assert!(refused(&|spec, _| spec.rulers.clear()).contains("weights"));
    assert!(refused(&|spec, _| spec.floor_prediction = f64::NAN).contains("floor"));
    assert!(refused(&|spec, _| spec.truth_fraction = 0.0).contains("B:s0"));
    let metric = refused(&|spec, _| {
        spec.rulers
            .values_mut()
            .for_each(|r| r.metric = "mae".into());
    });
    assert!(
        metric.contains("\"mae\"") && metric.contains("rmse"),
        "{metric}"
    );
}

#[test]
fn exactly_the_test_ids_must_be_there() {
    let scoring = prepared();
    let check = |ids: &mut dyn Iterator<Item = u64>| {
        let matrix = Matrix::new(ids.map(|id| (id, 0.0))).expect("matrix");
        scoring.check(&matrix).map_err(|p| (p.code, p.detail))
    };
    assert_eq!(check(&mut (0..120)), Ok(()));
    assert_eq!(
        check(&mut (2..120)),
        Err((
            FormatCode::MissingRows,
            "2 of 120 test ids are missing, the first is 0".into()
        ))
    );
    assert_eq!(
        check(&mut (0..122)),
        Err((
            FormatCode::ExtraRows,
            "2 ids are not test ids, the first is 120".into()
        ))
    );
}

#[test]
fn unknown_seeds_have_no_rows() {
    let scoring = prepared();
    for rows in [
        RowChoice::Search(3),
        RowChoice::Guard(0),
        RowChoice::Guard(8),
    ] {
        assert!(matches!(
            scoring.score(rows, &whole(|_| 1.0)),
            Err(ScoreFailure::UnknownRows(_))
        ));
    }
}

#[test]
fn reports_for_agents_are_rounded_everywhere() {
    let scoring = prepared();
    let report = scoring
        .score(RowChoice::HalfA, &whole(|id| id as f64 / 7.0))
        .expect("scored");
    let seen = rounded(report.clone());
    assert_ne!(seen, report);
    let four = |value: f64| (value * 1e4).round() / 1e4 == value;
    assert!(four(seen.total.get()));
    assert!(
        seen.parts
            .iter()
            .all(|p| four(p.raw) && four(p.skill) && four(p.points))
    );
}

#[test]
fn a_constant_prediction_varies_over_guard_seeds_of_skewed_truth() {
    let mut skewed = truth();
    for row in &mut skewed.guard {
        row.target = (row.id as f64).powi(3);
    }
    let scoring = Scoring::prepare(&spec(), &skewed).expect("prepared");
    let scores: BTreeSet<u64> = (3..8)
        .map(|seed| {
            scoring
                .score(RowChoice::Guard(seed), &whole(|_| 1e5))
                .expect("scored")
        })
        .map(|report| report.total.get().to_bits())
        .collect();
    assert!(scores.len() > 1, "sd is 0");
}
