//! Time as a constructor argument: `SystemClock` for products, `ManualClock` for tests.

use std::sync::atomic::{AtomicI64, Ordering};

use vec_types::UnixMs;

/// Wall-clock time. Waits use the runtime's monotonic clock, never this.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Now.
    fn now(&self) -> UnixMs;
}

/// The operating system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the system clock"
    )]
    fn now(&self) -> UnixMs {
        let since_1970 = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        UnixMs(i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that moves only when told.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Starts at `at`.
    #[must_use]
    pub const fn new(at: UnixMs) -> Self {
        Self(AtomicI64::new(at.0))
    }

    /// Moves forward by `ms`.
    pub fn advance_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UnixMs {
        UnixMs(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_time_moves_only_when_told() {
        let clock = ManualClock::new(UnixMs(5));
        assert_eq!(clock.now(), UnixMs(5));
        clock.advance_ms(7);
        assert_eq!(clock.now(), UnixMs(12));
    }

    #[test]
    fn system_time_is_after_2026() {
        assert!(SystemClock.now() > UnixMs(1_767_225_600_000));
    }
}
