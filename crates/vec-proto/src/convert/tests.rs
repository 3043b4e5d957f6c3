//! Tests of `convert`.

use vec_types::ProgramSeed;

use super::*;

fn report() -> ScoreReport {
    let ruler: RulerId = "main".parse().expect("ruler");
    let score = Score::new(61.25).expect("finite");
    ScoreReport {
        total: score,
        components: [(ruler.clone(), score)].into(),
        parts: vec![Part {
            ruler,
            metric: "rmse".to_owned(),
            raw: 54.5,
            skill: 0.6125,
            points: 61.25,
        }]
        .into(),
    }
}

#[test]
fn reports_round_trip() {
    let message = report_to_pb(report(), &Weights::new());
    assert!((message.parts[0].weight - 1.0).abs() < 1e-12);
    assert_eq!(ScoreReport::try_from(message), Ok(report()));
}

#[test]
fn locked_weights_stand_in_the_message() {
    let key = ("main".parse().expect("ruler"), "rmse".to_owned());
    let message = report_to_pb(report(), &Weights::from([(key, 0.25)]));
    assert!((message.parts[0].weight - 0.25).abs() < 1e-12);
}

#[test]
fn a_report_without_a_finite_score_is_refused() {
    type Break = fn(&mut pb::Report);
    let breaks: [(&str, Break); 9] = [
        ("report.total", |r| r.total = f64::NAN),
        ("component.score", |r| r.components[0].score = f64::INFINITY),
        ("report.components", |r| r.components.clear()),
        ("component.ruler", |r| {
            r.components.push(r.components[0].clone());
        }),
        ("ruler", |r| r.components[0].ruler = "../x".to_owned()),
        ("part.metric", |r| r.parts[0].metric.clear()),
        ("part.skill", |r| r.parts[0].skill = 1.5),
        ("part.weight", |r| r.parts[0].weight = -0.1),
        ("more than", |r| {
            r.parts = vec![r.parts[0].clone(); REPORT_ITEMS_MAX + 1];
        }),
    ];
    for (field, damage) in breaks {
        let mut message = report_to_pb(report(), &Weights::new());
        damage(&mut message);
        let error = ScoreReport::try_from(message).expect_err(field);
        assert!(error.to_string().contains(field), "{field}: {error}");
    }
}

#[test]
fn score_calls_round_trip_and_need_every_field() {
    let call = ScoreCall {
        request_id: "0a1b2c3d-3-fresh4".to_owned(),
        node: NodeId(3),
        exec: ExecName::Fresh(ProgramSeed(4)),
        scoring_seed: ScoringSeed(4),
        rows: RowSet::Guard,
    };
    let header = pb::ScoreHeader::from(call.clone());
    assert_eq!(ScoreCall::try_from(header.clone()), Ok(call));
    for (field, damage) in [
        (
            "request_id",
            (|h| h.request_id.clear()) as fn(&mut pb::ScoreHeader),
        ),
        ("exec", |h| h.exec = "seed01".to_owned()),
        ("rows", |h| h.rows = 0),
        ("rows", |h| h.rows = 9),
    ] {
        let mut broken = header.clone();
        damage(&mut broken);
        let error = ScoreCall::try_from(broken).expect_err(field);
        assert!(error.to_string().contains(field), "{field}: {error}");
    }
}
