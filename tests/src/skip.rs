//! Loud skips: `cargo xtask test` counts the lines.

/// Says why a test cannot run here.
#[expect(clippy::print_stderr, reason = "the test runner collects it")]
pub fn skip(reason: &str) {
    eprintln!("SKIPPED: {reason}");
}

/// Is this process root?
#[must_use]
pub fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uid.is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0"))
}
