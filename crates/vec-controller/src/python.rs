//! Python inside sandboxes: the locked interpreter and its read-only binds.

use std::path::Path;

use vec_sandbox::{PlanError, PythonBinds, RoBind, SandboxPlan};

use crate::context::Context;
use crate::effects::EffectError;

/// The interpreter's path inside.
pub(crate) fn argv0(context: &Context) -> String {
    context.python.argv0.display().to_string()
}

/// No binds of the plan's own: [`resolved`] adds the locked ones as they are.
pub(crate) fn binds(_: &Context) -> PythonBinds {
    PythonBinds {
        env: None,
        prefix: None,
    }
}

/// Adds the locked Python's binds to a plan and resolves its sources.
pub(crate) fn resolved(
    plan: Result<SandboxPlan, PlanError>,
    context: &Context,
) -> Result<SandboxPlan, EffectError> {
    let bad = |error: PlanError| EffectError::failed("plan the sandbox", &error);
    let mut plan = plan.map_err(bad)?;
    for (source, dest) in &context.python.ro_binds {
        add_bind(&mut plan, source, dest);
    }
    plan.resolve_sources().map_err(bad)?;
    Ok(plan)
}

/// Adds one read-only bind.
pub(crate) fn add_bind(plan: &mut SandboxPlan, source: &Path, dest: &Path) {
    plan.ro_binds.push(RoBind {
        source: source.to_owned(),
        dest: dest.to_owned(),
    });
}

/// Gigabytes as bytes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "limits are validated to lie between 0 and a few thousand gigabytes"
)]
pub(crate) fn memory_bytes(gb: f64) -> u64 {
    (gb * f64::from(1 << 30)) as u64
}
