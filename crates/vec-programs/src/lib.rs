//! Programs.git through gix.
