//! What a start passes to the helper.

use std::os::fd::OwnedFd;

use tokio::sync::oneshot;
use vec_sandbox::{RunControl, RunOptions, SandboxError};

use crate::support::{Place, both_modes};

/// Files in place of `cgroup.procs`: the helper writes the pid into each, whatever they are.
fn groups(place: &Place, count: usize) -> Vec<OwnedFd> {
    let open = |number| std::fs::File::create(place.path(format!("group{number}"))).unwrap();
    (0..count).map(|number| open(number).into()).collect()
}

both_modes! {
    async fn init_enters_every_group_before_the_payload_starts(place) {
        for count in [0, 1, 8] {
            let (started, announced) = oneshot::channel();
            let options = RunOptions {
                groups: groups(&place, count),
                started: Some(started),
                ..RunOptions::default()
            };
            let plan = place.plan("pass", &[]);
            let run = place.runner.run_with(&plan, RunControl::new(), options).await.unwrap();
            assert!(run.report.succeeded(), "{:?}", run.report);
            let init = announced.await.unwrap().init.to_string();
            for number in 0..count {
                let text = std::fs::read_to_string(place.path(format!("group{number}"))).unwrap();
                assert_eq!(text, init, "group {number} of {count}");
            }
        }
    }
}

both_modes! {
    async fn more_groups_than_a_message_holds_start_nothing(place) {
        let options = RunOptions {
            groups: groups(&place, 9),
            ..RunOptions::default()
        };
        let plan = place.plan("open('/out/ran', 'w')", &[]);
        let error = place.runner.run_with(&plan, RunControl::new(), options).await.unwrap_err();
        assert!(matches!(error, SandboxError::HelperDied { .. }), "{error}");
        assert!(!place.path("out/ran").exists());
    }
}
