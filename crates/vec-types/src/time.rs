//! Wall-clock time: milliseconds since 1970 in UTC, RFC 3339 with `Z` where people read.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMs(pub i64);

impl UnixMs {
    /// Later by `ms` milliseconds.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Later by `seconds`.
    #[must_use]
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        self.plus_ms(seconds.saturating_mul(1_000))
    }

    /// Milliseconds from `earlier` to this, negative if this is earlier.
    #[must_use]
    pub const fn since_ms(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// `YYYYMMDD-HHMMSS` for run ids.
    #[must_use]
    pub fn compact(self) -> String {
        self.timestamp().strftime("%Y%m%d-%H%M%S").to_string()
    }

    // Clamped: a stored time may be any i64, and text is only for people.
    fn timestamp(self) -> Timestamp {
        let clamp = || {
            if self.0 < 0 {
                Timestamp::MIN
            } else {
                Timestamp::MAX
            }
        };
        Timestamp::from_millisecond(self.0).unwrap_or_else(|_| clamp())
    }
}

impl fmt::Display for UnixMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.timestamp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_dates_match_known_points() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_798_761_599_999, "2026-12-31T23:59:59.999Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(UnixMs(ms).to_string(), text);
        }
        assert_eq!(UnixMs(951_782_461_000).compact(), "20000229-000101");
    }
}
