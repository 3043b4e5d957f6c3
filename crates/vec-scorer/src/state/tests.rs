//! Tests of `state`.

use vec_types::UnixMs;

use super::*;

const AT: UnixMs = UnixMs(1);

fn register(state: &mut State, name: &str, quota: u32) {
    assert_eq!(state.may_register(name, Path::new("/c"), quota), Ok(true));
    let (client, dir) = (name.to_owned(), PathBuf::from("/c"));
    state
        .apply(&Record::Register {
            at: AT,
            client,
            dir,
            quota,
        })
        .expect("register");
}

fn charge(client: &str, query: u32) -> Record {
    Record::Charge {
        at: AT,
        client: client.to_owned(),
        query,
        input: Digest::ZERO,
    }
}

fn refund(client: &str, query: u32) -> Record {
    Record::Refund {
        at: AT,
        client: client.to_owned(),
        query,
    }
}

fn close(client: &str) -> Record {
    Record::Close {
        at: AT,
        client: client.to_owned(),
        in_flight: 0,
        checks: 0,
        refused: 0,
    }
}

fn start() -> Record {
    Record::Start {
        at: AT,
        version: 1,
        run: "20261130-101010-tiny-abcd".parse().expect("run"),
        board: "tiny".parse().expect("board"),
        start: 1,
        fingerprint: Digest::ZERO,
    }
}

#[test]
fn quota_is_spent_refunded_and_ends() {
    let mut state = State::default();
    register(&mut state, "1-0", 2);
    assert_eq!(state.may_query("1-0"), Ok(0));
    state.apply(&charge("1-0", 0)).expect("first");
    state.apply(&charge("1-0", 1)).expect("second");
    assert_eq!(state.may_query("1-0"), Err(Refusal::Exhausted { quota: 2 }));
    assert!(state.apply(&charge("1-0", 2)).is_err());
    state.apply(&refund("1-0", 0)).expect("refund");
    assert!(state.apply(&refund("1-0", 0)).is_err(), "refunded twice");
    // Numbers are never used twice.
    assert_eq!(state.may_query("1-0"), Ok(2));
}

#[test]
fn a_restart_keeps_charges_and_forgets_flights() {
    let mut state = State::default();
    register(&mut state, "1-0", 3);
    state.apply(&charge("1-0", 0)).expect("charge");
    state.apply(&start()).expect("start");
    assert_eq!(state.in_flight("1-0"), Ok(0));
    assert_eq!(state.client("1-0").expect("client").used, 1);
    assert!(state.apply(&refund("1-0", 0)).is_err());
}

#[test]
fn closing_refuses_and_settling_waits() {
    let mut state = State::default();
    register(&mut state, "1-0", 3);
    state.apply(&charge("1-0", 0)).expect("charge");
    assert_eq!(
        state.settlement("1-0"),
        Err(Refusal::NotClosed("1-0".into()))
    );
    state.apply(&close("1-0")).expect("close");
    assert_eq!(state.may_query("1-0"), Err(Refusal::Closed("1-0".into())));
    assert!(state.apply(&charge("1-0", 1)).is_err());
    assert_eq!(state.settlement("1-0"), Ok(None));
    state.apply(&refund("1-0", 0)).expect("refund");
    assert_eq!(state.settlement("1-0"), Ok(Some((0, 0, false))));
    assert_eq!(
        state.may_register("1-0", Path::new("/c"), 3),
        Err(Refusal::Closed("1-0".into()))
    );
}

#[test]
fn registration_is_idempotent_and_bounded() {
    let mut state = State::default();
    for k in 0..CLIENTS_OPEN_MAX {
        register(&mut state, &format!("{k}-0"), 1);
    }
    assert_eq!(
        state.may_register("x", Path::new("/c"), 1),
        Err(Refusal::TooManyClients)
    );
    assert_eq!(state.may_register("0-0", Path::new("/c"), 1), Ok(false));
    assert_eq!(
        state.may_register("0-0", Path::new("/d"), 1),
        Err(Refusal::Differs("0-0".into()))
    );
    assert_eq!(
        state.may_register("0-0", Path::new("/c"), 2),
        Err(Refusal::Differs("0-0".into()))
    );
    state.apply(&close("0-0")).expect("close");
    assert_eq!(
        state.may_register("x", Path::new("/c"), QUOTA_MAX),
        Ok(true)
    );
    let above = QUOTA_MAX + 1;
    assert_eq!(
        state.may_register("x", Path::new("/c"), above),
        Err(Refusal::Quota(above))
    );
}

#[test]
fn lines_that_cannot_follow_are_refused() {
    let mut state = State::default();
    for record in [charge("1-0", 0), refund("1-0", 0), close("1-0")] {
        assert!(state.apply(&record).is_err(), "{record:?}");
    }
    register(&mut state, "1-0", 3);
    assert!(
        state.apply(&charge("1-0", 1)).is_err(),
        "a query number is skipped"
    );
    let settle = Record::Settle {
        at: AT,
        client: "1-0".into(),
        used: 0,
        score_bytes: 0,
    };
    assert!(state.apply(&settle).is_err(), "not closed");
}
