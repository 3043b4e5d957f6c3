//! Effects: one module each. An effect takes what it needs from the state when it starts, works
//! on its own, and ends as one outcome with the files that it made. Nothing here decides.

mod analyze;
mod ask;
mod comply;
mod engineer;
mod execute;
mod import_seed;
mod place;
mod plan;
mod review;
mod score;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use vec_exec::TrainingLock;
use vec_search::{Effect, ExecResult, Outcome, ReviewVerdict, RunState};
use vec_store::NewFile;
use vec_types::{InfraFault, UnixMs};

use crate::context::Context;
use crate::spans::Span;
use crate::spool::Spool;

/// What an effect leaves.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    pub(crate) files: Vec<NewFile>,
    pub(crate) spans: Vec<Span>,
    /// Removed once the files are stored.
    pub(crate) scratch: Option<PathBuf>,
    /// Held until the files are stored: whoever waits for one finds the registered weights.
    pub(crate) locks: Vec<TrainingLock>,
}

impl Done {
    /// An outcome without files.
    pub(crate) const fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            files: Vec::new(),
            spans: Vec::new(),
            scratch: None,
            locks: Vec::new(),
        }
    }

    /// Cut short through no fault of the candidate.
    pub(crate) fn interrupted(fault: InfraFault, detail: &str) -> Self {
        let detail = detail.chars().take(2_000).collect();
        Self::new(Outcome::Interrupted { fault, detail })
    }

    /// Did something go wrong, whosever fault it was?
    pub(crate) const fn failed(&self) -> bool {
        match &self.outcome {
            Outcome::Interrupted { .. } | Outcome::Placed { sha256: None } => true,
            Outcome::Executed { report } => matches!(report.result, ExecResult::Fault { .. }),
            Outcome::Engineered { session } => session.commit.is_none(),
            Outcome::Reviewed { verdict } => matches!(verdict, ReviewVerdict::Error),
            Outcome::Analyzed { written, .. } => !*written,
            _ => false,
        }
    }

    /// What went wrong, in words.
    pub(crate) fn detail(&self) -> String {
        match &self.outcome {
            Outcome::Interrupted { detail, .. } => detail.clone(),
            Outcome::Executed { report } => match &report.result {
                ExecResult::Fault { detail, .. } => detail.clone(),
                ExecResult::Done { .. } => String::new(),
            },
            _ => "an effect failed on a full disk".to_owned(),
        }
    }

    /// The same with a span of time that was not the harness's.
    pub(crate) fn with_span(mut self, name: &'static str, length: Duration) -> Self {
        self.spans.push(Span { name, length });
        self
    }

    /// The same with a scratch directory to remove.
    pub(crate) fn with_scratch(mut self, spool: Spool) -> Self {
        self.scratch = Some(spool.into_path());
        self
    }

    /// The same with training locks to hold until the files are stored.
    pub(crate) fn with_locks(mut self, locks: Vec<TrainingLock>) -> Self {
        self.locks = locks;
        self
    }

    /// The same with files.
    pub(crate) fn with_files(mut self, files: Vec<NewFile>) -> Self {
        self.files = files;
        self
    }
}

/// How long an effect may take.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// Cancelled when the effect is no longer wanted or late.
    pub(crate) cancel: CancellationToken,
    /// When it will be cut.
    pub(crate) deadline: Option<UnixMs>,
    /// When it started.
    pub(crate) now: UnixMs,
    /// The same moment on the clock that no one sets.
    pub(crate) started: Instant,
}

impl Limits {
    /// What is left until the deadline; `None`: there is none.
    pub(crate) fn left(&self) -> Option<Duration> {
        let deadline = self.deadline?;
        let whole = deadline.since_ms(self.now).max(0).unsigned_abs();
        Some(Duration::from_millis(whole).saturating_sub(self.started.elapsed()))
    }

    /// `wanted`, or what is left until the deadline if that is less.
    pub(crate) fn at_most(&self, wanted: Duration) -> Duration {
        self.left().map_or(wanted, |left| wanted.min(left))
    }

    /// Why an effect that was cancelled ended.
    pub(crate) fn cut(&self) -> Done {
        Done::interrupted(
            InfraFault::BudgetCut,
            "cut at the phase's end or given up by the run",
        )
    }
}

/// A failure of ours inside an effect: shelved, never counted against a candidate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EffectError {
    /// An operating-system call failed.
    #[error("{what}")]
    Io {
        /// What was tried, with its path.
        what: String,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// Another part of the system refused.
    #[error("{what}: {cause}")]
    Failed {
        /// What was tried.
        what: &'static str,
        /// Why it failed, with all its causes.
        cause: String,
    },
}

impl EffectError {
    /// Wraps another crate's error with its sources.
    pub(crate) fn failed(what: &'static str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::Failed {
            what,
            cause: vec_daemon::chain(error).to_string(),
        }
    }

    /// Wraps an I/O error with what was tried.
    pub(crate) fn io(what: &str, path: &std::path::Path, source: std::io::Error) -> Self {
        Self::Io {
            what: format!("{what} {}", path.display()),
            source,
        }
    }
}

type Performing = Pin<Box<dyn Future<Output = Done> + Send>>;

/// Starts an effect. Inputs are read from the state now; the future owns them.
pub(crate) fn perform(
    effect: &Effect,
    state: &RunState,
    context: &Arc<Context>,
    limits: Limits,
) -> Performing {
    let context = Arc::clone(context);
    match effect {
        Effect::ImportSeed { node, program } => {
            let (node, program) = (*node, program.clone());
            boxed(async move { import_seed::perform(&context, node, &program).await })
        }
        Effect::Plan { node } => {
            let input = plan::prepare(state, &context, *node);
            boxed(async move { plan::perform(&context, input?, &limits).await })
        }
        Effect::Comply { node } => {
            let input = comply::prepare(state, *node);
            boxed(async move { comply::perform(&context, &input?) })
        }
        Effect::Engineer { node } => {
            let input = engineer::prepare(state, &context, *node);
            boxed(async move { engineer::perform(&context, input?, &limits).await })
        }
        Effect::Execute { node, exec } => {
            let input = execute::prepare(state, &context, *node, *exec);
            boxed(async move { execute::perform(&context, input?, &limits).await })
        }
        Effect::Score { node, exec } => {
            let input = score::prepare(state, *node, *exec);
            boxed(async move { score::perform(&context, input?, &limits).await })
        }
        Effect::Analyze { node } => {
            let input = analyze::prepare(state, &context, *node);
            boxed(async move { analyze::perform(&context, input?, &limits).await })
        }
        Effect::Review { node, attempt } => {
            let input = review::prepare(state, &context, *node, *attempt);
            boxed(async move { review::perform(&context, input?, &limits).await })
        }
        Effect::Place { node, provisional } => {
            let input = place::prepare(state, &context, *node, *provisional);
            boxed(async move { place::perform(&context, input?).await })
        }
    }
}

fn boxed<F>(body: F) -> Performing
where
    F: Future<Output = Result<Done, EffectError>> + Send + 'static,
{
    Box::pin(async move {
        body.await.unwrap_or_else(|error| {
            Done::interrupted(
                InfraFault::Interrupted,
                &vec_daemon::chain(&error).to_string(),
            )
        })
    })
}
