//! Weights of one program on one view, before and after its run (PVW): the checkout is made ready,
//! the training lock taken; what was trained is collected and handed over for registration.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use vec_exec::{
    Artifacts, ExecError, Found, KeyParts, Registration, Training, TrainingLock, TrainingRules,
    place_fixed, place_registered, prepare_training,
};
use vec_sandbox::collect;
use vec_store::NewFile;
use vec_types::{Digest, ExecName, NodeId, TreeId, ViewId, WeightsMode};

use crate::context::Context;
use crate::effects::execute::OUT_INSIDE;
use crate::effects::{EffectError, Limits};
use crate::spool::{Spool, blocking};

/// Longest wait for a training lock where no deadline bounds it.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(24 * 3_600);

/// A checkout with its weights in place, or with room for them.
#[derive(Debug)]
pub(crate) struct Ready {
    /// The checkout.
    pub(crate) solution: PathBuf,
    /// What is done about weights.
    pub(crate) mode: WeightsMode,
    /// Key of the weights, where there are any.
    pub(crate) key: Option<Digest>,
    parts: Option<KeyParts>,
    training: Option<Training>,
    lock: Option<TrainingLock>,
}

/// Why there is none.
#[derive(Debug)]
pub(crate) enum NotReady {
    /// Given up while it waited.
    Cut,
    /// What the program declares, or the store holds, does not allow a run.
    Refused(ExecError),
    /// A failure of ours.
    Failed(EffectError),
}

impl From<ExecError> for NotReady {
    fn from(error: ExecError) -> Self {
        Self::Refused(error)
    }
}

impl From<EffectError> for NotReady {
    fn from(error: EffectError) -> Self {
        Self::Failed(error)
    }
}

/// What to make ready.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    /// Commit of the program.
    pub(crate) commit: &'a TreeId,
    /// Its tree.
    pub(crate) tree: &'a TreeId,
    /// Node and execution.
    pub(crate) node: NodeId,
    /// See `node`.
    pub(crate) exec: ExecName,
    /// The view.
    pub(crate) view: &'a ViewId,
    /// As [`super::manner::Manner`].
    pub(crate) extra_args: &'a [String],
    /// As [`super::manner::Manner`].
    pub(crate) fresh: bool,
    /// Host directory of what the work directory starts with.
    pub(crate) fill: &'a Path,
}

impl Wanted<'_> {
    /// Checks the program out and sees to its weights.
    pub(crate) async fn ready(
        &self,
        context: &Context,
        spool: &Spool,
        limits: &Limits,
    ) -> Result<Ready, NotReady> {
        let name = format!("solution-{}", self.view);
        let solution = spool.checkout(context, self.commit, &name).await?;
        let artifacts = Artifacts::read(&solution)?;
        let rules = TrainingRules::read(&solution)?;
        let mut ready = Ready {
            solution,
            mode: WeightsMode::None,
            key: None,
            parts: None,
            training: None,
            lock: None,
        };
        if !artifacts.fixed.is_empty() {
            let (solution, weights) = (ready.solution.clone(), context.weights.clone());
            let fixed = artifacts.fixed.clone();
            blocking("place artifacts", move || {
                place_fixed(&solution, &fixed, &weights)
            })
            .await??;
        }
        if artifacts.per_view.is_empty() {
            return Ok(ready);
        }
        let parts = KeyParts {
            tree: self.tree.clone(),
            train_seed: rules.seed(self.exec.program_seed()),
            view_content: view_content(context, self.view)?,
            environment: context.environment,
            extra_args: self.extra_args.to_vec(),
        };
        let key = parts.key()?;
        ready.key = Some(key);
        if self.fresh {
            ready.mode = WeightsMode::Fresh;
        } else {
            let lock = lock(context, key, limits).await?;
            if let Found::Registered(index) = context.weights.find(&parts, &artifacts.per_view)? {
                let (solution, layout) = (ready.solution.clone(), context.layout.clone());
                blocking("place weights", move || {
                    place_registered(&solution, &index, &layout)
                })
                .await??;
                ready.mode = WeightsMode::Replay;
                return Ok(ready);
            }
            context.weights.step("locked");
            ready.mode = WeightsMode::Train;
            ready.lock = Some(lock);
            ready.parts = Some(parts);
        }
        ready.training = Some(prepare_training(
            &ready.solution,
            self.fill,
            Path::new(OUT_INSIDE),
            &artifacts.per_view,
        )?);
        context.weights.step("prepared");
        Ok(ready)
    }
}

async fn lock(context: &Context, key: Digest, limits: &Limits) -> Result<TrainingLock, NotReady> {
    let waiting = context
        .weights
        .locks()
        .lock(key, limits.at_most(LOCK_WAIT_MAX));
    tokio::select! {
        lock = waiting => Ok(lock?),
        () = limits.cancel.cancelled() => Err(NotReady::Cut),
    }
}

fn view_content(context: &Context, view: &ViewId) -> Result<Digest, EffectError> {
    let spec = context.lock.eval_spec.views.get(view);
    spec.map(|spec| spec.content)
        .ok_or_else(|| EffectError::Failed {
            what: "name the weights",
            cause: format!("the lock does not know view {view}"),
        })
}

/// Weights of a first run that await registration.
#[derive(Debug, Default)]
pub(crate) struct Trained {
    /// For the store's batch; an index comes after its artifacts.
    pub(crate) files: Vec<NewFile>,
    /// Held until the batch is stored.
    pub(crate) locks: Vec<TrainingLock>,
}

impl Ready {
    /// Does the program train in this run?
    pub(crate) const fn trains(&self) -> bool {
        self.training.is_some()
    }

    /// After a run that succeeded, with everything inside dead: takes the trained weights out of
    /// the work directory and validates them (PVW-05).
    ///
    /// # Errors
    /// [`ExecError::Untrained`], the program's fault; [`ExecError::Io`].
    pub(crate) fn collect(
        &mut self,
        context: &Context,
        wanted: &Wanted<'_>,
        work: BorrowedFd<'_>,
        dest: &Path,
    ) -> Result<Trained, ExecError> {
        let Some(training) = &self.training else {
            return Ok(Trained::default());
        };
        let step = |name| {
            if self.lock.is_some() {
                context.weights.step(name);
            }
        };
        step("trained");
        let copy = |path: &_, dest: &Path, cap| collect::copy_file(work, path, dest, cap);
        let collected = training.collect(dest, copy)?;
        step("collected");
        let (Some(parts), Some(lock)) = (self.parts.take(), self.lock.take()) else {
            // Fresh: validated, then forgotten (PVW-10).
            return Ok(Trained::default());
        };
        let registration = Registration {
            parts,
            view: wanted.view.clone(),
            node: wanted.node,
            exec: wanted.exec,
            at: context.clock.now(),
        };
        context.weights.step("validated");
        let files = context.weights.files_of(registration, collected)?;
        context.weights.step("handed_over");
        Ok(Trained {
            files,
            locks: vec![lock],
        })
    }
}
