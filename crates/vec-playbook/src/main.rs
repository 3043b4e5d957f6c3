//! The scripted model and Engineer: a shipped, named offline double.
fn main() {}
