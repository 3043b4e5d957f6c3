//! A scoring client of one Engineer session: its directory, its socket, its quota, and its final
//! count (TOO-05, SCO-08).

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use vec_proto::Backoff;
use vec_proto::pb::scorer::v1 as pb;
use vec_proto::pb::scorer::v1::scorer_client::ScorerClient;

use crate::context::Context;
use crate::effects::EffectError;

/// Longest wait for one call about a client, restarts of the scorer included.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// An open client.
#[derive(Debug)]
pub(crate) struct Client {
    name: String,
    dir: PathBuf,
}

impl Client {
    /// Makes the client's directory and registers it.
    pub(crate) async fn open(
        context: &Context,
        name: &str,
        quota: u32,
    ) -> Result<Self, EffectError> {
        let dir = context.clients_dir.join(name);
        std::fs::create_dir_all(&dir)
            .and_then(|()| std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)))
            .map_err(|error| EffectError::io("make the client directory", &dir, error))?;
        let request = pb::RegisterClientRequest {
            client: name.to_owned(),
            dir: dir.display().to_string(),
            quota,
        };
        let call = vec_proto::with_retry(Backoff::RESTART, || {
            let mut client = ScorerClient::new(context.scorer.clone());
            let request = request.clone();
            async move { client.register_client(request).await }
        });
        bounded("register the scoring client", call).await?;
        Ok(Self {
            name: name.to_owned(),
            dir,
        })
    }

    /// Its name: node and ordinal.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The directory that the sandbox sees.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Closes and settles. `None`: closing or settling could not be proven, so the count is
    /// unknown.
    pub(crate) async fn close(self, context: &Context) -> Option<u32> {
        let used = self.settled(context).await;
        if let Err(error) = &used {
            tracing::warn!(client = self.name, error = %vec_daemon::chain(error), "query count is unknown");
        }
        if let Err(error) = std::fs::remove_dir_all(&self.dir) {
            tracing::warn!(client = self.name, %error, "client directory could not be removed");
        }
        used.ok().flatten()
    }

    async fn settled(&self, context: &Context) -> Result<Option<u32>, EffectError> {
        let close = vec_proto::with_retry(Backoff::RESTART, || {
            let mut client = ScorerClient::new(context.scorer.clone());
            let request = pb::CloseClientRequest {
                client: self.name.clone(),
            };
            async move { client.close_client(request).await }
        });
        bounded("close the scoring client", close).await?;
        let wait = context.lock.config.scoring.settle_wait_s;
        let settle = vec_proto::with_retry(Backoff::RESTART, || {
            let mut client = ScorerClient::new(context.scorer.clone());
            let request = pb::SettleClientRequest {
                client: self.name.clone(),
                wait_ms: wait.saturating_mul(1_000).min(90_000),
            };
            async move { client.settle_client(request).await }
        });
        let reply = bounded("settle the scoring client", settle).await?;
        Ok(reply.settled.then_some(reply.used))
    }
}

async fn bounded<T>(
    what: &'static str,
    call: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
) -> Result<T, EffectError> {
    match tokio::time::timeout(CALL_TIMEOUT, call).await {
        Ok(Ok(reply)) => Ok(reply.into_inner()),
        Ok(Err(status)) => Err(EffectError::Failed {
            what,
            cause: format!("{:?}: {}", status.code(), status.message()),
        }),
        Err(_) => Err(EffectError::Failed {
            what,
            cause: "no answer in time".to_owned(),
        }),
    }
}
