//! Builders for real-process scenarios.
