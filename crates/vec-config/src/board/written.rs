//! The board definition as written: every key optional, no value checked.

use std::collections::BTreeMap;

use serde::Deserialize;
use vec_types::SeedState;

use super::{Metric, RulerRole, SplitKind, Task};

macro_rules! written {
    ($name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        #[derive(Deserialize, Default)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $(pub(super) $field: Option<$type>,)*
        }
    };
}

written!(WrittenBoard {
    board: String,
    title: String,
    source: String,
    task: Task,
    data: WrittenData,
    split: WrittenSplit,
    halves: WrittenHalves,
    views: BTreeMap<String, WrittenView>,
    rulers: BTreeMap<String, WrittenRuler>,
    final_view: String,
    limits: WrittenLimits,
    scoring: WrittenScoring,
    baseline: String,
    seed_programs: Vec<WrittenSeedProgram>,
    seeds_dir: String,
    idea_library: String,
    environment: WrittenEnvironment,
});
written!(WrittenData {
    file: String,
    target: String,
    features: Vec<String>,
    id: String,
});
written!(WrittenSplit {
    kind: SplitKind,
    train_fraction: f64,
    seed: u32,
});
written!(WrittenHalves {
    seed: u32,
    guard_fraction: f64,
});
written!(WrittenView {});
written!(WrittenRuler {
    view: String,
    role: RulerRole,
    weight: f64,
    metric: Metric,
});
written!(WrittenLimits {
    memory_gb: f64,
    time_limit_s: u32,
    threads: u32,
    output_max_mb: u32,
});
written!(WrittenScoring {
    truth_fraction: f64
});
written!(WrittenSeedProgram {
    id: String,
    state: SeedState,
    family: String,
});
written!(WrittenEnvironment {
    kind: WrittenEnvironmentKind,
    lock: String,
});

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
pub(super) enum WrittenEnvironmentKind {
    Stdlib,
    Venv,
}
