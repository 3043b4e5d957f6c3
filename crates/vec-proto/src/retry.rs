//! The one retry table: what may be tried again, how often and how long apart.

use std::error::Error as _;
use std::future::Future;
use std::time::Duration;

use tonic::{Code, Status};

/// May a call that ended so be repeated? Only where the peer was not there or did not answer in
/// time; every such call is idempotent by its request id (architecture §2).
#[must_use]
pub const fn is_retryable(code: Code) -> bool {
    match code {
        Code::Unavailable | Code::DeadlineExceeded => true,
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss
        | Code::Unauthenticated => false,
    }
}

/// Did the connection break under the call? Such a status was made on this side (it has a
/// source), never by the peer; tonic reports it as `Unknown`, `Cancelled` or `Internal`, we treat
/// it as `Unavailable`.
#[must_use]
pub fn is_lost(status: &Status) -> bool {
    let local_code = matches!(
        status.code(),
        Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal
    );
    local_code && status.source().is_some()
}

/// A bounded, doubling wait between tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Calls at most, at least 1.
    pub tries: u32,
    /// Wait before the second call.
    pub first: Duration,
    /// Longest single wait.
    pub longest: Duration,
}

impl Backoff {
    /// For a daemon that the launcher is restarting: 9 calls over about 12 s.
    pub const RESTART: Self = Self {
        tries: 9,
        first: Duration::from_millis(100),
        longest: Duration::from_secs(3),
    };

    /// Wait after the call number `tried` (from 1) has failed; `None` = give up.
    #[must_use]
    pub fn wait_after(&self, tried: u32) -> Option<Duration> {
        if tried >= self.tries {
            return None;
        }
        let factor = 1_u32
            .checked_shl(tried.saturating_sub(1))
            .unwrap_or(u32::MAX);
        Some(self.first.saturating_mul(factor).min(self.longest))
    }
}

/// Calls until success, a failure that must not be retried, or the end of `backoff`. The last
/// failure is returned.
///
/// # Errors
/// The status of the last call.
pub async fn with_retry<T, F, Fut>(backoff: Backoff, mut call: F) -> Result<T, Status>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, Status>>,
{
    let mut tried = 0;
    loop {
        let status = match call().await {
            Ok(value) => return Ok(value),
            Err(status) => status,
        };
        tried += 1;
        let again = is_retryable(status.code()) || is_lost(&status);
        match backoff.wait_after(tried) {
            Some(wait) if again => tokio::time::sleep(wait).await,
            _ => return Err(status),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pb::controller::v1::StatusRequest;
    use crate::pb::controller::v1::control_client::ControlClient;

    const FAST: Backoff = Backoff {
        tries: 3,
        first: Duration::from_millis(1),
        longest: Duration::from_millis(1),
    };

    async fn calls_until_given_up(code: Code) -> u32 {
        let mut calls = 0;
        let result: Result<(), Status> = with_retry(FAST, || {
            calls += 1;
            async move { Err(Status::new(code, "no")) }
        })
        .await;
        assert_eq!(result.expect_err("fails").code(), code);
        calls
    }

    #[tokio::test]
    async fn only_two_codes_are_tried_again() {
        for number in 1..=16 {
            let code = Code::from_i32(number);
            let expected = match code {
                Code::Unavailable | Code::DeadlineExceeded => 3,
                _ => 1,
            };
            assert_eq!(calls_until_given_up(code).await, expected, "{code:?}");
        }
    }

    #[tokio::test]
    async fn success_after_a_failure_is_success() {
        let mut calls = 0;
        let result = with_retry(FAST, || {
            calls += 1;
            let this = calls;
            async move {
                if this < 3 {
                    Err(Status::unavailable("not yet"))
                } else {
                    Ok(this)
                }
            }
        })
        .await;
        assert_eq!(result.expect("third"), 3);
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let backoff = Backoff::RESTART;
        let waits: Vec<u128> = (1..backoff.tries)
            .filter_map(|tried| backoff.wait_after(tried))
            .map(|wait| wait.as_millis())
            .collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3000, 3000, 3000]);
        assert_eq!(backoff.wait_after(backoff.tries), None);
    }

    #[tokio::test]
    async fn a_peer_that_hangs_up_in_mid_call_is_lost_not_wrong() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("s");
        let listener = tokio::net::UnixListener::bind(&path).expect("bind");
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut request = [0; 24];
                // Reads the client's preface, answers nothing, hangs up.
                let read = stream
                    .readable()
                    .await
                    .and_then(|()| stream.try_read(&mut request));
                drop((read, stream));
            }
        });
        let channel = crate::connect_lazy(&path).expect("path");
        let status = ControlClient::new(channel)
            .status(StatusRequest {})
            .await
            .expect_err("hung up");
        assert!(is_lost(&status), "{status:?}");
        assert!(!is_lost(&Status::unknown("said the peer")));
    }
}
