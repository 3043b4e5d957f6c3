//! `cargo run --release -p vec-search --example futs_replay -- FILE…`: compares every case of the
//! files with our `futs`, bit for bit. Exits 1 at the first mismatch, naming file, line and field.

mod replay;

use std::process::ExitCode;

fn main() -> ExitCode {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        return report("usage: futs_replay FILE…", 2);
    }
    let mut cases = 0;
    for file in &files {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) => return report(&format!("{file}: {error}"), 2),
        };
        match replay::replay(&text) {
            Ok(count) => cases += count,
            Err(problem) => return report(&format!("{file}:{problem}"), 1),
        }
    }
    report(&format!("{cases} cases equal the reference bit for bit"), 0)
}

#[expect(
    clippy::print_stdout,
    reason = "the one place where this example prints"
)]
fn report(line: &str, code: u8) -> ExitCode {
    println!("{line}");
    ExitCode::from(code)
}
