//! Whether a launcher lives behind a socket.

use std::path::Path;
use std::time::Duration;

use tonic::Code;
use tonic::transport::Channel;
use vec_proto::pb::launcher::v1::HealthRequest;
use vec_proto::pb::launcher::v1::launcher_client::LauncherClient;

/// A client of the launcher at `socket` that has answered a call within `timeout`.
///
/// A connection alone proves nothing: the kernel accepts it for a process that is dying or stuck.
pub async fn answering(socket: &Path, timeout: Duration) -> Option<LauncherClient<Channel>> {
    let asked = async {
        let channel = vec_proto::connect(socket, timeout).await.ok()?;
        let mut client = LauncherClient::new(channel);
        let health = client.health(HealthRequest {}).await;
        let answered = match &health {
            Ok(_) => true,
            // A refusal is an answer; the verb itself then says who is refused.
            Err(status) => status.code() == Code::PermissionDenied,
        };
        answered.then_some(client)
    };
    tokio::time::timeout(timeout, asked).await.ok().flatten()
}
