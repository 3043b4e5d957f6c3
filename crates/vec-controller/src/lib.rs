//! The search: one loop, one owner of the run's state.
