//! `futs` equals the public reference bit for bit, on an excerpt of the shared vectors
//! (`futs_excerpt.jsonl`); the comparer is that of the example `futs_replay`.

#[path = "../examples/futs_replay/replay.rs"]
mod replay;

const EXCERPT: &str = include_str!("futs_excerpt.jsonl");

#[test]
fn the_excerpt_is_equal_bit_for_bit() {
    assert_eq!(replay::replay(EXCERPT), Ok(EXCERPT.lines().count()));
}

#[test]
fn every_field_is_compared() {
    for (field, changed) in [
        ("visits", "\"visits\": [1"),
        ("rank_scores", "\"rank_scores\": [0.001"),
        ("pucts", "\"pucts\": [0.001"),
        ("selected", "\"selected\": 1"),
        ("best", "\"best\": 9"),
        ("parents", "\"parents\": [null, 0, 2"),
    ] {
        let start = &changed[..changed.rfind(' ').expect("a value") + 1];
        let seen = EXCERPT.lines().any(|line| {
            let Some(at) = line.find(start) else {
                return false;
            };
            let rest = &line[at + start.len()..];
            let end = rest.find(['}', ']']).expect("the value ends");
            let tail = &rest[if changed.contains('[') {
                rest.find(',').unwrap_or(end)
            } else {
                end
            }..];
            let forged = format!("{}{changed}{tail}", &line[..at]);
            replay::replay(&forged).is_err_and(|problem| problem.contains(field))
        });
        assert!(seen, "a change of {field} is not noticed");
    }
}
