//! Configuration, board definitions, and the types of the lock and the evaluation spec.
//!
//! What people write ([`load_config`], [`load_board`], [`load_ideas`]) goes through one figment loader: layers →
//! written form → validated form. Every unknown key, every wrong type and every bad value is
//! reported together, with the file, the key path and what would be right. What the machine
//! writes ([`Lock`], [`EvalSpec`]) is plain serde; unknown fields are refused there too.

mod board;
mod config;
mod evalspec;
mod fit;
mod hashes;
mod ideas;
mod load;
mod lock;
mod policy;

pub use board::{
    Board, Data, EnvironmentChoice, Halves, Limits, Metric, Ruler, RulerRole, SeedEntry, Split,
    SplitKind, TabularView, Task, TruthSampling, load_board,
};
pub use config::{
    Budget, Concurrency, Config, DebugOperator, DraftOperator, DraftPolicy, Endpoint, EndpointKind,
    Engineer, EngineerFramework, EngineerModel, EngineerStall, Execution, Fault, FaultPoint, Final,
    Gpu, GuardConfig, Mode, Models, Plateau, PlaybookTuning, Promotion, Restarts, Role, Scoring,
    SeedStates, SelectConfig, Timeline, TuneOperator, ViewCheck, load_config,
};
pub use evalspec::{
    Anchor, AnchorHalf, AnchorKey, AnchorKeyError, CandidateEnvironment, EvalSpec, ExecutionSpec,
    PythonFacts, RulerSpec, ScorerFacts, ScoringRules, TruthFacts, ViewSpec, effective_limits,
};
pub use fit::check_fit;
pub use hashes::{eval_hash, scoring_fingerprint, search_hash};
pub use ideas::{BoardFamily, IdeaLibrary, load_ideas};
pub use load::{ConfigError, Problem};
pub use lock::{
    Admission, BuildRecord, CodeSnapshot, Hashes, IsolationLevel, LOCK_VERSION, Lock, LockError,
    PinnedInput, Reason, SandboxBuild, SandboxRecord, SelfTest, Supervisor, TruthIsolation,
};
pub use policy::{policy, policy_of};
