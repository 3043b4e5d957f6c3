//! Clock, SystemClock, ManualClock.
