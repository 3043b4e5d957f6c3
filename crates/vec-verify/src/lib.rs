//! Check a run directory: chains, hashes, replay.
