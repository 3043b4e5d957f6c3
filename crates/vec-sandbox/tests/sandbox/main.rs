//! The sandbox with real payloads, started by root and by an ordinary user. Each refusal has a
//! positive control: the same act succeeds where it is allowed.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod ending;
mod engineer;
mod groups;
mod hangs;
mod isolation;
mod kills;
mod live;
mod memory;
mod output;
mod refusal;
mod results;
mod starting;
mod support;
