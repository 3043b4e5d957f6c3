//! Configuration, board definitions, the lock and evaluation-spec types.
