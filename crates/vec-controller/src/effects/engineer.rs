//! Engineer: one session in its sandbox, its client socket and quota, and the commit of what it
//! leaves (ENG, MTH). The order at the end: everything dead, client closed and settled, files
//! collected, commit.

mod declared;

use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use tokio::sync::mpsc;
use vec_exec::{Artifacts, place_copies};
use vec_roles::{
    AgentLog, BoardBrief, BriefInput, NodeSummary, PlaybookBrief, engineer_brief,
    method_placeholder, method_state,
};
use vec_sandbox::{
    EngineerInputs, Limits as SandboxLimits, OutputCaps, RunControl, SandboxPlan, TimeLimits,
    TmpfsSize, ViewBind, WorkKind, collect,
};
use vec_scope::GroupLimits;
use vec_search::{EngineerEnd, MethodState, Outcome, RunState, SessionReport};
use vec_store::{NewFile, rel};
use vec_types::{InfraFault, NodeId, Operator, Plan};

use crate::client::Client;
use crate::commit::{commit, program_name};
use crate::context::{Context, PLAYBOOKS_INSIDE};
use crate::effects::{Done, EffectError, Limits};
use crate::portrait::{self, Parent};
use crate::python;
use crate::spool::{Spool, blocking};
use crate::supervised::{self, Supervised};

/// Caps on what a session may leave in `solution/`: what programs.git takes, so that a session
/// that leaves more loses files instead of ending as a fault of ours.
const SOLUTION_CAPS: collect::TreeCaps = collect::TreeCaps {
    files: vec_programs::FILES_MAX as u64,
    depth: vec_programs::DEPTH_MAX as u32 - 1,
    file_bytes: vec_programs::FILE_BYTES_MAX,
    total_bytes: vec_programs::TOTAL_BYTES_MAX,
};
/// Files and directories of a session's work directory.
const WORK_INODES: u64 = 1 << 18;
/// Longest session where neither the configuration nor the phase bounds it.
const SESSION_MAX: Duration = Duration::from_secs(24 * 3600);
/// Room for stdout lines on their way to the stall watch.
const LINE_QUEUE_LEN: usize = 256;

/// What a session starts from.
#[derive(Debug)]
pub(crate) struct Input {
    node: NodeId,
    operator: Operator,
    board: BoardBrief,
    parent: Option<Parent>,
    tree: Vec<NodeSummary>,
    plan: Plan,
}

pub(crate) fn prepare(
    state: &RunState,
    context: &Context,
    node: NodeId,
) -> Result<Input, EffectError> {
    let failed = |cause: String| EffectError::Failed {
        what: "start a session",
        cause,
    };
    let view = state
        .node(node)
        .ok_or_else(|| failed(format!("node {node} does not exist")))?;
    let plan = portrait::plan(context, node)
        .ok_or_else(|| failed(format!("node {node} has no readable PLAN.json")))?;
    Ok(Input {
        node,
        operator: view.operator,
        board: context.board_brief(state),
        parent: portrait::parent(state, context, node),
        tree: portrait::tree(state, context, view.parent),
        plan,
    })
}

pub(crate) async fn perform(
    context: &Context,
    input: Input,
    limits: &Limits,
) -> Result<Done, EffectError> {
    let began = Instant::now();
    let node = input.node;
    let spool = Spool::make(context, &format!("engineer-{node}")).await?;
    let parent_commit = input
        .parent
        .as_ref()
        .and_then(|parent| parent.commit().cloned());
    let plan_name = program_name(&input.plan.name);
    let desk = Desk::lay(context, input, &spool).await?;
    let quota = context.lock.config.scoring.client_quota;
    let client = Client::open(context, &format!("{node}-0"), quota).await?;
    let session = run_session(context, node, &desk, &client, limits).await;
    // Whatever the session did, its client is closed before anything is read (TOO-05).
    let queries_used = client.close(context).await;
    let (mut done, end) = session?;
    let wall = Duration::from_millis(done.run.report.wall_ms);
    let mut files = trajectory(node, &done)?;
    if let Some(fault) = provider_fault(&done, end) {
        return Ok(Done::interrupted(InfraFault::Interrupted, &fault)
            .with_files(files)
            .with_scratch(spool)
            .with_span("engineer.session", wall));
    }
    let (solution, artifacts) = collected(&spool, done.run.work.take()).await?;
    let left = Left::of(&solution)?;
    let info = if left.is_committable() {
        files.extend(artifacts);
        Some(
            commit(
                context,
                node,
                solution,
                parent_commit,
                format!("node {node}: {plan_name}"),
            )
            .await?,
        )
    } else {
        None
    };
    let report = SessionReport {
        end,
        method: left.method,
        has_run_py: left.has_run_py,
        commit: info,
        queries_used,
        wall_ms: i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX),
    };
    Ok(Done::new(Outcome::Engineered { session: report })
        .with_files(files)
        .with_scratch(spool)
        .with_span("engineer.session", wall))
}

/// The session's directories on the host.
#[derive(Debug)]
struct Desk {
    work: PathBuf,
    brief: PathBuf,
}

impl Desk {
    async fn lay(context: &Context, input: Input, spool: &Spool) -> Result<Self, EffectError> {
        let work = spool.directory("box")?;
        let solution = match input.parent.as_ref().and_then(Parent::commit) {
            Some(commit) => spool.checkout(context, commit, "box/solution").await?,
            None => spool.directory("box/solution")?,
        };
        give_artifacts(context, &solution)?;
        write(
            &solution.join("METHOD.md"),
            method_placeholder(&input.plan).as_bytes(),
        )?;
        let parent = match input.parent {
            Some(parent) => Some(parent.with_program(context).await?),
            None => None,
        };
        let config = &context.lock.config;
        let files = engineer_brief(&BriefInput {
            texts: &context.texts,
            run: &context.lock.run_id,
            board: &input.board,
            node: input.node,
            operator: input.operator,
            plan: &input.plan,
            parent: parent.as_ref(),
            tree: &input.tree,
            python: &python::argv0(context),
            score_quota: config.scoring.client_quota,
            playbook: context.playbook_inside().map(|file| PlaybookBrief {
                file,
                search_seed: config.search_seed.0,
                trials: config.playbook.trials,
            }),
        })
        .map_err(|error| EffectError::failed("write the brief", &error))?;
        let brief = spool.directory("brief")?;
        for (name, bytes) in files.files {
            write(&brief.join(name), &bytes)?;
        }
        Ok(Self { work, brief })
    }

    fn plan(
        &self,
        context: &Context,
        client: &Client,
        time: Duration,
    ) -> Result<SandboxPlan, EffectError> {
        let config = &context.lock.config;
        let bin = context.layout.code().join("bin");
        let view_limits = context.limits(&context.board().final_view);
        let inputs = EngineerInputs {
            work: WorkKind::Memory {
                size: TmpfsSize {
                    bytes: python::memory_bytes(config.engineer.work_gb),
                    inodes: WORK_INODES,
                },
                fill: Some(self.work.clone()),
            },
            listeners: Vec::new(),
            brief: self.brief.clone(),
            views: context
                .objective_views()
                .into_iter()
                .map(|id| ViewBind {
                    source: context.layout.view(&id),
                    id,
                })
                .collect(),
            client_dir: client.dir().to_owned(),
            tool: bin.join("vec-tool"),
            tool_names: vec!["vec-score".to_owned(), "vec-check".to_owned()],
            agent: bin.join("vec-playbook"),
            python: python::binds(context),
            argv: vec![
                "/opt/vec/agent/vec-playbook".to_owned(),
                "engineer".to_owned(),
            ],
            env: context.lock.eval_spec.environment.variables.clone(),
            limits: SandboxLimits::of_memory(
                python::memory_bytes(config.engineer.memory_gb),
                u64::from(view_limits.output_max_mb) << 20,
                view_limits.threads,
            ),
            time: TimeLimits {
                deadline_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
                grace_ms: u64::try_from(context.term_grace.as_millis()).unwrap_or(u64::MAX),
            },
            output: OutputCaps::standard(),
        };
        let mut plan = python::resolved(SandboxPlan::engineer(&inputs, &context.host), context)?;
        let playbooks = context.layout.code().join("configs/playbooks");
        python::add_bind(&mut plan, &playbooks, Path::new(PLAYBOOKS_INSIDE));
        Ok(plan)
    }
}

/// A parent's fixed artifacts, as copies of the session's own.
fn give_artifacts(context: &Context, solution: &Path) -> Result<(), EffectError> {
    // A declaration that is not valid is the parent's; the session may repair it.
    let Ok(artifacts) = Artifacts::read(solution) else {
        return Ok(());
    };
    place_copies(solution, &artifacts.fixed, &context.weights)
        .map_err(|error| EffectError::failed("give a session its artifacts", &error))
}

async fn run_session(
    context: &Context,
    node: NodeId,
    desk: &Desk,
    client: &Client,
    limits: &Limits,
) -> Result<(Supervised, EngineerEnd), EffectError> {
    let cap = context.lock.config.engineer.minutes;
    let cap = cap.map_or(SESSION_MAX, |minutes| {
        Duration::from_secs_f64(minutes * 60.0)
    });
    let plan = desk.plan(context, client, limits.at_most(cap))?;
    let control = RunControl::new();
    let (lines, mut activity) = mpsc::channel(LINE_QUEUE_LEN);
    let name = supervised::session_name(context, node);
    let memory = context.lock.config.engineer.memory_gb;
    let group = GroupLimits {
        memory_bytes: Some(python::memory_bytes(memory)),
        tasks: Some(plan.limits.processes),
    };
    let running = supervised::run(context, &name, group, &plan, control.clone(), Some(lines));
    tokio::pin!(running);
    let stall = &context.lock.config.engineer_stall;
    let quiet = Duration::from_secs(u64::from(stall.seconds));
    let mut strikes = 0;
    let mut end = EngineerEnd::Finished;
    let mut cut = false;
    let mut is_open = true;
    let finished = loop {
        tokio::select! {
            finished = &mut running => break finished,
            line = activity.recv(), if is_open => {
                is_open = line.is_some();
                strikes = 0;
            }
            () = tokio::time::sleep(quiet), if end == EngineerEnd::Finished => {
                strikes += 1;
                tracing::warn!(client = client.name(), strikes, "engineer session is silent");
                if strikes >= stall.strikes {
                    end = EngineerEnd::Stalled;
                    control.terminate();
                }
            }
            () = limits.cancel.cancelled(), if !cut => {
                cut = true;
                end = EngineerEnd::HandOff;
                control.terminate();
            }
        }
    };
    let done = finished?;
    if done.run.report.timed_out && end == EngineerEnd::Finished {
        end = EngineerEnd::HandOff;
    }
    Ok((done, end))
}

// rc 0 without the final event is a provider fault too: the agent died in a way of its own.
fn provider_fault(done: &Supervised, end: EngineerEnd) -> Option<String> {
    let run = &done.run;
    let report = &run.report;
    if let Some(error) = &report.setup_error {
        return Some(format!(
            "sandbox set-up: {:?}: {}. {}",
            error.step, error.message, error.advice
        ));
    }
    if !done.is_gone() {
        return Some("processes of the session could not be ended".to_owned());
    }
    if end != EngineerEnd::Finished {
        return None;
    }
    let log = AgentLog::parse(&run.stdout.bytes);
    if report.succeeded() && (log.finished || run.stdout.truncated) {
        return None;
    }
    let stderr = String::from_utf8_lossy(&run.stderr.bytes);
    let tail: String = stderr.chars().take(500).collect();
    Some(format!(
        "the agent ended with {:?}, finished: {}; {tail}",
        report.exit, log.finished
    ))
}

/// Takes `solution/` out of the work directory, once everything inside is dead.
async fn collected(
    spool: &Spool,
    work: Option<OwnedFd>,
) -> Result<(PathBuf, Vec<NewFile>), EffectError> {
    let dest = spool.path().join("collected");
    let (to, room) = (dest.clone(), spool.path().to_owned());
    let artifacts = blocking("collect the solution", move || {
        // A session may have removed or replaced its own directory: then it left nothing.
        let Some(from) = work.as_ref().and_then(solution_of) else {
            std::fs::create_dir(&to).map_err(|error| EffectError::io("make", &to, error))?;
            return Ok(Vec::new());
        };
        let collected = collect::copy_tree(from.as_fd(), &to, &SOLUTION_CAPS)
            .map_err(|error| EffectError::failed("collect the solution", &error))?;
        if !collected.rejected.is_empty() {
            tracing::warn!(rejected = ?collected.rejected, "files of a session were not collected");
        }
        remove_unwanted(&to)?;
        declared::settle(from.as_fd(), &to, &room)
    })
    .await??;
    Ok((dest, artifacts))
}

// Beneath the work directory and through no link, whatever the session made of it.
fn solution_of(work: &OwnedFd) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    openat2(work, "solution", flags, Mode::empty(), resolve).ok()
}

/// Names that never belong to a program: Python's caches, and what git would take for its own.
fn remove_unwanted(dir: &Path) -> Result<(), EffectError> {
    let entries = std::fs::read_dir(dir).map_err(|error| EffectError::io("list", dir, error))?;
    for entry in entries {
        let path = entry
            .map_err(|error| EffectError::io("list", dir, error))?
            .path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().to_lowercase());
        let unwanted = name.is_some_and(|name| name == "__pycache__" || name.starts_with(".git"));
        let removed = match (unwanted, path.is_dir()) {
            (true, true) => std::fs::remove_dir_all(&path),
            (true, false) => std::fs::remove_file(&path),
            (false, true) => {
                remove_unwanted(&path)?;
                Ok(())
            }
            (false, false) => Ok(()),
        };
        removed.map_err(|error| EffectError::io("remove", &path, error))?;
    }
    Ok(())
}

/// What a session left in `solution/`.
#[derive(Debug)]
struct Left {
    method: MethodState,
    has_run_py: bool,
}

impl Left {
    fn of(solution: &Path) -> Result<Self, EffectError> {
        let path = solution.join("METHOD.md");
        let method = match std::fs::read(&path) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            // A directory of that name is no METHOD either.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => {
                None
            }
            Err(error) => return Err(EffectError::io("read", &path, error)),
        };
        Ok(Self {
            method: method_state(method.as_deref()),
            has_run_py: solution.join("run.py").is_file(),
        })
    }

    fn is_committable(&self) -> bool {
        self.has_run_py && !matches!(self.method, MethodState::Missing)
    }
}

fn trajectory(node: NodeId, done: &Supervised) -> Result<Vec<NewFile>, EffectError> {
    let run = &done.run;
    let bad = |error: vec_types::PathError| EffectError::failed("name a trajectory file", &error);
    let directory = rel::trajectory(node, "engineer", 0).map_err(bad)?;
    let report = vec_types::pretty_json(&run.report)
        .map_err(|error| EffectError::failed("write the session's report", &error))?;
    let accounting = vec_types::pretty_json(&done.accounting)
        .map_err(|error| EffectError::failed("write the session's accounting", &error))?;
    let file = |name: &str, bytes: Vec<u8>| {
        Ok(NewFile::create(
            rel::join(&directory, name).map_err(bad)?,
            bytes,
        ))
    };
    Ok(vec![
        file("events.jsonl", run.stdout.bytes.clone())?,
        file("stderr", run.stderr.bytes.clone())?,
        file("report.json", report)?,
        file("accounting.json", accounting)?,
    ])
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), EffectError> {
    std::fs::write(path, bytes).map_err(|error| EffectError::io("write", path, error))
}
