//! `cargo run -p vec-verify --example flips -- RUN_DIR`: changes every value of every stored event
//! of a closed run, one at a time, rebuilds every chain and wants `verify --replay` to name it.
//! Prints a table; exits 1 if a single change goes unnoticed.

mod flips;
mod leaves;
mod matrix;
mod rebuild;

use std::path::Path;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [run_dir] = arguments.as_slice() else {
        return say("usage: flips RUN_DIR", 2);
    };
    match flips::flips(Path::new(run_dir)).await {
        Ok(flips) => say(&flips::table(&flips), u8::from(!flips.is_ok())),
        Err(error) => say(&format!("flips: {error}"), 2),
    }
}

#[expect(
    clippy::print_stdout,
    reason = "the one place where this example prints"
)]
fn say(text: &str, code: u8) -> ExitCode {
    println!("{}", text.trim_end());
    ExitCode::from(code)
}
