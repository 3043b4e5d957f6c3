//! Builds and hashes the lock and the evaluation spec; code snapshot, pinned inputs.
