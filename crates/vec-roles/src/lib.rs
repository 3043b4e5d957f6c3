//! What the roles read and what their replies mean: prompt assembly, reply parsing, Engineer
//! briefs and the tables in them (RES, ANA, REV, ENG-08, MTH).
//!
//! Invariants: pure text in, pure text out; no I/O, no clock. Equal inputs give equal bytes. The
//! prompt texts themselves come from the run's code snapshot and are handed in ([`RoleTexts`]).
//! Replies are untrusted: every way in which one can be damaged is a typed error.

mod agent;
mod analyst;
mod brief;
mod context;
mod input;
mod json_reply;
mod method;
mod plan;
mod researcher;
mod reviewer;
mod section;
mod tables;
mod texts;

pub use agent::{AgentEvent, AgentLog};
pub use analyst::{Analysis, AnalysisError, AnalystInput, analyst_prompt, parse_analysis};
pub use brief::{BriefError, BriefFiles, BriefInput, PlaybookBrief, engineer_brief};
pub use context::{Context, ContextOutcome, ContextParent, Role};
pub use input::{
    BoardBrief, FamilyBrief, NodeSummary, ParentInput, ProgramText, RulerBrief, ViewBrief,
};
pub use json_reply::ReplyError;
pub use method::{
    AUTO_PREFIX, NO_CHANGE_PREFIX, first_line, is_no_change, method_placeholder, method_state,
};
pub use plan::{PlanError, parse_plan};
pub use researcher::{ResearcherInput, researcher_prompt};
pub use reviewer::{Review, ReviewError, ReviewerInput, parse_review, reviewer_prompt};
pub use section::Prompt;
pub use tables::{DeltaInput, Scores, delta_table, experiment_table, refuted_list};
pub use texts::{RoleTexts, TextError};
