//! What every daemon does: launch spec, logs, signals, sockets, exit codes.
