//! SandboxPlan and the helper that applies it.
fn main() {}
