//! One small multi-call binary bound into sandboxes: vec-score, vec-check.
fn main() {}
