//! The self-test's plans: this program as payload, bound wherever a plan has a place for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::{OrRefuse, Refusal, inside};
use crate::host::HostLayout;
use crate::plan::{
    EngineerInputs, ExecInputs, Limits, OutputCaps, PlanError, PythonBinds, SandboxPlan,
    TimeLimits, TmpfsSize, WorkKind, WorkerInputs,
};
use crate::report::SetupStep;

/// Room for one file.
const WORK_SIZE: TmpfsSize = TmpfsSize {
    bytes: 1 << 20,
    inodes: 16,
};
const TIME: TimeLimits = TimeLimits {
    deadline_ms: 10_000,
    grace_ms: 0,
};
/// Where an `exec` plan's program lies inside.
const SOLUTION: &str = "/solution";

fn limits() -> Limits {
    Limits::of_memory(256 << 20, 1 << 20, 1)
}

fn work() -> WorkKind {
    WorkKind::Memory {
        size: WORK_SIZE,
        fill: None,
    }
}

fn argv(program: &Path, profile: &str) -> Vec<String> {
    let program = program.to_string_lossy().into_owned();
    vec![program, inside::FLAG.to_owned(), profile.to_owned()]
}

fn own_path() -> Result<PathBuf, Refusal> {
    std::env::current_exe().or_refuse(SetupStep::Plan, || {
        "cannot find the helper's own path".to_owned()
    })
}

fn host() -> Result<HostLayout, Refusal> {
    HostLayout::detect().or_refuse(SetupStep::Plan, || "cannot look at the host".to_owned())
}

fn checked(plan: Result<SandboxPlan, PlanError>) -> Result<SandboxPlan, Refusal> {
    let resolved = plan.and_then(|mut plan| {
        plan.resolve_sources()?;
        plan.check()?;
        Ok(plan)
    });
    resolved.map_err(|error| Refusal::plain(SetupStep::Plan, error.to_string()))
}

pub(super) fn exec() -> Result<SandboxPlan, Refusal> {
    let program = own_path()?;
    let inside = Path::new(SOLUTION).join(program.file_name().unwrap_or_default());
    let inputs = ExecInputs {
        solution: program,
        views: Vec::new(),
        out: work(),
        python: PythonBinds::default(),
        argv: argv(&inside, "exec"),
        env: BTreeMap::new(),
        limits: limits(),
        time: TIME,
        output: OutputCaps::standard(),
    };
    let mut plan = SandboxPlan::exec(&inputs, &host()?);
    // The builder binds the program's file at the solution's place: move it one level down.
    for bind in plan.iter_mut().flat_map(|plan| &mut plan.ro_binds) {
        if bind.dest == Path::new(SOLUTION) {
            bind.dest.clone_from(&inside);
        }
    }
    checked(plan)
}

pub(super) fn engineer() -> Result<SandboxPlan, Refusal> {
    let program = own_path()?;
    let name = program.file_name().unwrap_or_default();
    let inputs = EngineerInputs {
        work: work(),
        brief: program.clone(),
        views: Vec::new(),
        client_dir: program.clone(),
        tool: program.clone(),
        tool_names: Vec::new(),
        argv: argv(&Path::new("/opt/vec/agent").join(name), "engineer"),
        agent: program,
        python: PythonBinds::default(),
        listeners: Vec::new(),
        env: BTreeMap::new(),
        limits: limits(),
        time: TIME,
        output: OutputCaps::standard(),
    };
    checked(SandboxPlan::engineer(&inputs, &host()?))
}

pub(super) fn worker() -> Result<SandboxPlan, Refusal> {
    let inputs = WorkerInputs {
        program: own_path()?,
        inputs: Vec::new(),
        out: WORK_SIZE,
        args: vec![inside::FLAG.to_owned(), "worker".to_owned()],
        env: BTreeMap::new(),
        limits: limits(),
        time: TIME,
        output: OutputCaps::standard(),
    };
    checked(SandboxPlan::worker(&inputs, &host()?))
}
