//! The format check of the answer, through a scoring client of our own with no quota: the same
//! check that Engineers call.

use vec_proto::pb::scorer::v1::client_client::ClientClient;
use vec_types::{NodeId, ViewId};

use crate::client::Client;
use crate::context::Context;
use crate::effects::EffectError;

const CHECK_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

/// `None`: in order. Otherwise what is wrong.
///
/// # Errors
/// When the scorer cannot be asked.
pub(crate) async fn check_format(
    context: &Context,
    node: NodeId,
    view: &ViewId,
    bytes: &[u8],
) -> Result<Option<String>, EffectError> {
    // A new client each time: a repeated check after a crash must not meet its closed predecessor.
    let name = format!("{node}-final-{}", context.clock.now().0);
    let client = Client::open(context, &name, 0).await?;
    let checked = ask(&client, view, bytes).await;
    client.close(context).await;
    checked
}

async fn ask(client: &Client, view: &ViewId, bytes: &[u8]) -> Result<Option<String>, EffectError> {
    let channel = vec_proto::connect(&client.dir().join("scorer.s"), CHECK_TIMEOUT)
        .await
        .map_err(|error| EffectError::failed("reach the scorer's client socket", &error))?;
    let pieces = tokio_stream::iter(vec_proto::pieces(view, bytes));
    let mut service = ClientClient::new(channel);
    let reply = tokio::time::timeout(CHECK_TIMEOUT, service.check(pieces))
        .await
        .map_err(|error| EffectError::failed("check the prediction", &error))?
        .map_err(|status| EffectError::Failed {
            what: "check the prediction",
            cause: status.message().to_owned(),
        })?
        .into_inner();
    let problem = reply.problem.map_or_else(
        || "refused without a reason".to_owned(),
        |problem| format!("{}: {}", problem.code, problem.detail),
    );
    Ok((!reply.ok).then_some(problem))
}
