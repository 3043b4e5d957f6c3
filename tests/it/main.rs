//! Real-process scenarios.
