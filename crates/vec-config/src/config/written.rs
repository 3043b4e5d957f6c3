//! The configuration as written: every key optional, no value checked. `check` turns it into a
//! [`super::Config`].

use std::collections::BTreeMap;

use serde::Deserialize;
use vec_search::GuardKind;

use super::{DraftPolicy, EngineerFramework, Mode, Role};

macro_rules! written {
    ($name:ident { $($(#[$meta:meta])* $field:ident: $type:ty),* $(,)? }) => {
        #[derive(Deserialize, Default)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $($(#[$meta])* pub(super) $field: Option<$type>,)*
        }
    };
}

written!(WrittenConfig {
    mode: Mode,
    board: String,
    search_seed: u32,
    concurrency: WrittenConcurrency,
    draft: WrittenDraft,
    debug: WrittenDebug,
    tune: WrittenTune,
    select: WrittenSelect,
    plateau: WrittenPlateau,
    seed_states: WrittenSeedStates,
    budget: WrittenBudget,
    #[serde(rename = "final")]
    final_selection: WrittenFinal,
    promotion: WrittenPromotion,
    guard: WrittenGuard,
    scoring: WrittenScoring,
    execution: WrittenExecution,
    ablation: WrittenAblation,
    viewcheck: WrittenViewCheck,
    gpu: WrittenGpu,
    engineer: WrittenEngineer,
    engineer_stall: WrittenEngineerStall,
    models: WrittenModels,
    playbook: WrittenPlaybook,
    restarts: WrittenRestarts,
    fault: WrittenFault,
    purpose: String,
    hypothesis: String,
});
written!(WrittenConcurrency { nodes: u32 });
written!(WrittenDraft {
    p: f64,
    policy: DraftPolicy,
    failed_cap: u32,
    min_explore: f64,
});
written!(WrittenDebug {
    p: f64,
    max_attempts: u32
});
written!(WrittenTune {
    p: f64,
    seeds: Vec<u32>
});
written!(WrittenSelect {
    c_puct: f64,
    streak_counts_gen: bool,
    streak_len: u32,
    reserve_improve: bool,
    reserve_margin: f64,
});
written!(WrittenPlateau {
    enabled: bool,
    window: u32,
    top_k: u32,
    draft_p: f64,
});
written!(WrittenSeedStates { max_children: u32 });
written!(WrittenBudget {
    wall_hours: f64,
    max_nodes: u32,
    node_tail_minutes: f64,
    final_reserve_minutes: f64,
    settle_extra_s: u32,
    settle_guard_s: u32,
    max_cost_usd: f64,
});
written!(WrittenFinal {
    top_k: u32,
    place_room_s: u32,
    reserve_margin_s: u32
});
written!(WrittenPromotion {
    top_k: u32,
    seeds: Vec<u32>
});
written!(WrittenGuard {
    kind: GuardKind,
    fresh_seeds: Vec<u32>
});
written!(WrittenScoring {
    workers: u32,
    worker_memory_gb: f64,
    queue_estimate_s: u32,
    settle_wait_s: u32,
    client_quota: u32,
});
written!(WrittenExecution {
    term_grace_s: u32,
    threads: u32,
    output_max_gb: f64,
    time_limit_s: u32,
});
written!(WrittenAblation { enabled: bool });
written!(WrittenViewCheck {
    sample: f64,
    lock_wait_s: u32
});
written!(WrittenGpu { slots: u32 });
written!(WrittenEngineer {
    minutes: f64,
    memory_gb: f64,
    work_gb: f64
});
written!(WrittenEngineerStall {
    seconds: u32,
    strikes: u32
});
written!(WrittenModels {
    roles: BTreeMap<Role, Vec<String>>,
    engineer: WrittenEngineerModel,
    endpoints: BTreeMap<String, WrittenEndpoint>,
});
written!(WrittenEngineerModel {
    framework: EngineerFramework,
    endpoint: String
});
written!(WrittenEndpoint {
    kind: WrittenEndpointKind,
    playbook: String,
    models: Vec<String>
});
written!(WrittenPlaybook { trials: u32 });
written!(WrittenRestarts {
    max: u32,
    window_minutes: u32
});
written!(WrittenFault {
    kill_controller: Vec<String>
});

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
pub(super) enum WrittenEndpointKind {
    Playbook,
}
