//! Tracing: one JSON object per line.

use std::fs::File;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

/// Sends tracing to `log`, or to stderr where there is none. Level INFO, WARN for libraries.
/// A second call is ignored.
pub fn init_tracing(log: Option<File>) {
    let writer = match log {
        Some(file) => BoxMakeWriter::new(Mutex::new(file)),
        None => BoxMakeWriter::new(std::io::stderr),
    };
    let filter = EnvFilter::new(
        "warn,vec_controller=info,vec_scorer=info,vec_egress=info,vec_launcher=info,vec_playbook=info,vec_daemon=info,vec_store=info",
    );
    let installed = tracing_subscriber::fmt()
        .json()
        // A log that cannot be written must not end the daemon: reporting that on stderr would
        // panic where stderr is on the same full disk.
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_writer(writer)
        .try_init();
    if installed.is_err() {
        tracing::debug!("tracing was set up already");
    }
}
