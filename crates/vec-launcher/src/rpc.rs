//! The Launcher service: convert, call, convert. Work that changes something runs in a task of its
//! own, so that a client that hangs up does not leave it half-done.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use vec_proto::ProtocolError;
use vec_proto::pb::launcher::v1 as pb;
use vec_proto::pb::launcher::v1::launcher_server::Launcher as LauncherService;
use vec_types::RunId;

use crate::error::LauncherError;
use crate::launch::{ConfigSource, LaunchCall};
use crate::launcher::{Launcher, Listed};
use crate::preflight::Item;
use crate::requests::is_request_id;
use crate::watch::{WATCH_QUEUE_LEN, watch};

/// Most `--set` of one call.
const SETS_MAX: usize = 256;

/// The service.
#[derive(Debug, Clone)]
pub(crate) struct Rpc(pub(crate) Arc<Launcher>);

type WatchStream = Pin<Box<dyn Stream<Item = Result<pb::WatchEvent, Status>> + Send>>;

#[tonic::async_trait]
impl LauncherService for Rpc {
    async fn health(
        &self,
        _: Request<pb::HealthRequest>,
    ) -> Result<Response<pb::HealthReply>, Status> {
        Ok(Response::new(pb::HealthReply {}))
    }

    async fn launch(
        &self,
        request: Request<pb::LaunchRequest>,
    ) -> Result<Response<pb::LaunchReply>, Status> {
        let call = launch_call(request.into_inner(), &self.0)?;
        let launcher = Arc::clone(&self.0);
        let launched = detached(async move { launcher.launch(call).await }).await?;
        Ok(Response::new(pb::LaunchReply {
            run_id: launched.run.to_string(),
            run_dir: launched.run_dir.display().to_string(),
            submittable_reasons: launched.reasons,
        }))
    }

    async fn preflight(
        &self,
        request: Request<pb::PreflightRequest>,
    ) -> Result<Response<pb::PreflightReply>, Status> {
        let pb::PreflightRequest {
            config,
            data_root,
            root,
        } = request.into_inner();
        let call = LaunchCall {
            request_id: String::new(),
            config: config_source(config)?,
            root: optional_path("root", &root)?,
            data_root: data_root_of("data_root", &data_root, &self.0)?,
        };
        let launcher = Arc::clone(&self.0);
        let items = detached(async move { launcher.preflight(call).await }).await?;
        Ok(Response::new(pb::PreflightReply {
            items: items.into_iter().map(item).collect(),
        }))
    }

    async fn resume(
        &self,
        request: Request<pb::ResumeRequest>,
    ) -> Result<Response<pb::ResumeReply>, Status> {
        let pb::ResumeRequest {
            request_id: _,
            run_id,
            root,
        } = request.into_inner();
        let run = run_id_of(&run_id)?;
        let root = optional_path("root", &root)?;
        let launcher = Arc::clone(&self.0);
        let run_dir = detached(async move { launcher.resume(&run, root.as_deref()).await }).await?;
        Ok(Response::new(pb::ResumeReply {
            run_dir: run_dir.display().to_string(),
        }))
    }

    async fn stop(
        &self,
        request: Request<pb::StopRequest>,
    ) -> Result<Response<pb::StopReply>, Status> {
        let pb::StopRequest { run_id, why } = request.into_inner();
        self.0.stop(&run_id_of(&run_id)?, &why).await?;
        Ok(Response::new(pb::StopReply {}))
    }

    async fn status(
        &self,
        request: Request<pb::StatusRequest>,
    ) -> Result<Response<pb::StatusReply>, Status> {
        let pb::StatusRequest { run_id } = request.into_inner();
        let json = self.0.status(&run_id_of(&run_id)?).await?;
        Ok(Response::new(pb::StatusReply { json }))
    }

    async fn list(&self, _: Request<pb::ListRequest>) -> Result<Response<pb::ListReply>, Status> {
        let launcher = Arc::clone(&self.0);
        // Reads the ledger of every known run.
        let listed = tokio::task::spawn_blocking(move || launcher.list()).await;
        let listed = listed.map_err(|error| LauncherError::Task(error.to_string()))??;
        Ok(Response::new(pb::ListReply {
            runs: listed.into_iter().map(summary).collect(),
        }))
    }

    type WatchStream = WatchStream;

    async fn watch(
        &self,
        request: Request<pb::WatchRequest>,
    ) -> Result<Response<WatchStream>, Status> {
        let pb::WatchRequest { run_id, after_seq } = request.into_inner();
        let run = run_id_of(&run_id)?;
        let (watcher, events) = mpsc::channel(WATCH_QUEUE_LEN);
        let launcher = Arc::clone(&self.0);
        tokio::spawn(async move {
            if let Err(error) = watch(launcher, run, after_seq, watcher.clone()).await {
                // The watcher may have gone; nobody else needs to know.
                drop(watcher.send(Err(error.into())).await);
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(events))))
    }
}

async fn detached<T: Send + 'static>(
    work: impl Future<Output = Result<T, LauncherError>> + Send + 'static,
) -> Result<T, LauncherError> {
    tokio::spawn(work)
        .await
        .map_err(|error| LauncherError::Task(error.to_string()))?
}

fn launch_call(request: pb::LaunchRequest, launcher: &Launcher) -> Result<LaunchCall, Status> {
    let pb::LaunchRequest {
        request_id,
        config,
        root,
        data_root,
    } = request;
    if !is_request_id(&request_id) {
        return Err(
            ProtocolError::invalid("request_id", "1 to 128 visible ASCII characters").into(),
        );
    }
    Ok(LaunchCall {
        request_id,
        config: config_source(config)?,
        root: optional_path("root", &root)?,
        data_root: data_root_of("data_root", &data_root, launcher)?,
    })
}

fn config_source(config: Option<pb::ConfigSource>) -> Result<ConfigSource, ProtocolError> {
    let pb::ConfigSource { path, sets } = config.ok_or(ProtocolError::Missing("config"))?;
    if sets.len() > SETS_MAX {
        return Err(ProtocolError::invalid(
            "config.sets",
            format!("more than {SETS_MAX}"),
        ));
    }
    let path = optional_path("config.path", &path)?;
    Ok(ConfigSource {
        path: path.ok_or(ProtocolError::Missing("config.path"))?,
        sets,
    })
}

fn optional_path(field: &'static str, text: &str) -> Result<Option<PathBuf>, ProtocolError> {
    match text {
        "" => Ok(None),
        path if Path::new(path).is_absolute() => Ok(Some(PathBuf::from(path))),
        _ => Err(ProtocolError::invalid(field, "must be an absolute path")),
    }
}

fn data_root_of(
    field: &'static str,
    text: &str,
    launcher: &Launcher,
) -> Result<PathBuf, ProtocolError> {
    let given = optional_path(field, text)?;
    Ok(given.unwrap_or_else(|| launcher.deps.data_root.path().to_owned()))
}

fn run_id_of(text: &str) -> Result<RunId, ProtocolError> {
    text.parse()
        .map_err(|error| ProtocolError::invalid("run_id", error))
}

fn item(item: Item) -> pb::PreflightItem {
    let Item {
        name,
        ok,
        detail,
        wall_ms,
    } = item;
    pb::PreflightItem {
        name,
        ok,
        detail,
        wall_ms,
    }
}

fn summary(listed: Listed) -> pb::RunSummary {
    let Listed {
        run,
        run_dir,
        state,
        stop_reason,
    } = listed;
    pb::RunSummary {
        run_id: run.to_string(),
        run_dir: run_dir.display().to_string(),
        state: state.to_owned(),
        stop_reason: stop_reason
            .map(|reason| reason.as_str().to_owned())
            .unwrap_or_default(),
    }
}
