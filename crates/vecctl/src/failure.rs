//! Which exit code an error means.

use tonic::{Code, Status};
use vec_daemon::Exit;

/// A call that the launcher refused: its own words, without gRPC's.
#[derive(Debug, thiserror::Error)]
#[error("{}", words(.0))]
pub(crate) struct Refused(Box<Status>);

impl From<Status> for Refused {
    fn from(status: Status) -> Self {
        Self(Box::new(status))
    }
}

impl Refused {
    /// Nobody answered, or the connection broke.
    pub(crate) fn is_lost(&self) -> bool {
        vec_proto::is_lost(&self.0) || self.0.code() == Code::Unavailable
    }
}

fn words(status: &Status) -> String {
    match status.code() {
        Code::DeadlineExceeded => "the launcher did not answer in time".to_owned(),
        _ => status.message().to_owned(),
    }
}

/// Wrong arguments that clap cannot see.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// The exit code for an error, from whichever of its causes says most.
pub(crate) fn exit_of(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if cause.is::<vec_config::ConfigError>() {
            return Exit::Config;
        }
        if cause.is::<Usage>() {
            return Exit::Usage;
        }
        if let Some(Refused(status)) = cause.downcast_ref::<Refused>()
            && status.code() == Code::InvalidArgument
        {
            return Exit::Config;
        }
    }
    Exit::Failure
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn exit_codes_follow_the_cause() {
        let refused = |code| anyhow::Error::from(Refused::from(Status::new(code, "no")));
        assert_eq!(exit_of(&refused(Code::InvalidArgument)), Exit::Config);
        assert_eq!(exit_of(&refused(Code::FailedPrecondition)), Exit::Failure);
        let usage = Err::<(), _>(Usage("bad".to_owned()))
            .context("outer")
            .expect_err("usage");
        assert_eq!(exit_of(&usage), Exit::Usage);
        assert_eq!(exit_of(&anyhow::anyhow!("other")), Exit::Failure);
        assert_eq!(refused(Code::NotFound).to_string(), "no");
    }
}
