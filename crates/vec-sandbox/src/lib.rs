//! SandboxPlan and the helper that applies it.
