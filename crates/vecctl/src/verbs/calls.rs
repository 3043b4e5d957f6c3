//! Verbs that are one call to the launcher each.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use tonic::Request;
use vec_launcher::{Listed, list_known};
use vec_proto::pb::launcher::v1 as pb;
use vec_types::Digest;

use crate::args::ConfigArguments;
use crate::context::Context;
use crate::failure::Refused;
use crate::output;
use crate::render::{Align, table};

/// Deadline of a launch or a resume: self-test, snapshot, daemons.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(300);

/// Deadline of every other call.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// A message with its deadline.
pub(crate) fn request<T>(message: T, deadline: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(deadline);
    request
}

fn config_source(arguments: ConfigArguments) -> Result<pb::ConfigSource> {
    let ConfigArguments { config, sets } = arguments;
    let path =
        std::path::absolute(&config).with_context(|| format!("find {}", config.display()))?;
    Ok(pb::ConfigSource {
        path: words(&path),
        sets,
    })
}

fn words(path: &Path) -> String {
    path.display().to_string()
}

fn root_words(context: &Context) -> String {
    context.root.as_deref().map(words).unwrap_or_default()
}

// Fresh for every call of vecctl: only a lost reply of this call is tried again.
fn request_id() -> Result<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).context("read random bytes")?;
    Ok(Digest::of(&random).short(32))
}

/// `vecctl launch`.
pub(crate) async fn launch(context: &Context, config: ConfigArguments, watch: bool) -> Result<()> {
    let message = pb::LaunchRequest {
        request_id: request_id()?,
        config: Some(config_source(config)?),
        root: root_words(context),
        data_root: words(context.data.path()),
    };
    let reply = match launch_call(context, &message).await {
        // The same request id: a launch that went through is not done again.
        Err(refused) if refused.is_lost() => launch_call(context, &message).await?,
        other => other?,
    };
    let pb::LaunchReply {
        run_id,
        run_dir,
        submittable_reasons,
    } = reply;
    output::line(&format!("run         {run_id}"));
    output::line(&format!("files       {run_dir}"));
    for (index, reason) in submittable_reasons.iter().enumerate() {
        let word = if index == 0 { "not submittable" } else { "" };
        output::line(&format!("{word:<16}{reason}"));
    }
    if watch {
        return super::watch::watch(context, &run_dir, 0).await;
    }
    Ok(())
}

async fn launch_call(
    context: &Context,
    message: &pb::LaunchRequest,
) -> Result<pb::LaunchReply, Refused> {
    let unreachable = |error: anyhow::Error| {
        Refused::from(tonic::Status::failed_precondition(format!("{error:#}")))
    };
    let mut client = context.launcher().await.map_err(unreachable)?;
    let reply = client
        .launch(request(message.clone(), LAUNCH_TIMEOUT))
        .await?;
    Ok(reply.into_inner())
}

/// `vecctl preflight`.
pub(crate) async fn preflight(context: &Context, config: ConfigArguments) -> Result<()> {
    let message = pb::PreflightRequest {
        config: Some(config_source(config)?),
        data_root: words(context.data.path()),
        root: root_words(context),
    };
    let mut client = context.launcher().await?;
    let reply = client.preflight(request(message, LAUNCH_TIMEOUT)).await;
    let items = reply.map_err(Refused::from)?.into_inner().items;
    if context.json {
        let items: Vec<_> = items
            .iter()
            .map(|item| {
                json!({"name": item.name, "ok": item.ok, "detail": item.detail, "wall_ms": item.wall_ms})
            })
            .collect();
        output::json(&items)?;
    } else {
        let rows: Vec<Vec<String>> = items
            .iter()
            .map(|item| {
                let verdict = if item.ok { "ok" } else { "FAILED" };
                vec![
                    item.name.clone(),
                    verdict.to_owned(),
                    item.wall_ms.to_string(),
                    item.detail.clone(),
                ]
            })
            .collect();
        let head = [
            ("check", Align::Left),
            ("result", Align::Left),
            ("ms", Align::Right),
            ("detail", Align::Left),
        ];
        table(&head, &rows)
            .iter()
            .for_each(|line| output::line(line));
    }
    let failed: Vec<&str> = items
        .iter()
        .filter(|item| !item.ok)
        .map(|item| item.name.as_str())
        .collect();
    if !failed.is_empty() {
        bail!("preflight failed: {}", failed.join(", "));
    }
    Ok(())
}

/// `vecctl resume`.
pub(crate) async fn resume(context: &Context, run: &str) -> Result<()> {
    let run = context.run(run)?;
    let root = run.dir.as_deref().and_then(Path::parent).map(words);
    let message = pb::ResumeRequest {
        request_id: request_id()?,
        run_id: run.id.to_string(),
        root: root.unwrap_or_else(|| root_words(context)),
    };
    let mut client = context.launcher().await?;
    let reply = client.resume(request(message, LAUNCH_TIMEOUT)).await;
    let reply = reply.map_err(Refused::from)?.into_inner();
    output::line(&format!("run {} goes on: {}", run.id, reply.run_dir));
    Ok(())
}

/// `vecctl stop`.
pub(crate) async fn stop(context: &Context, run: &str, why: &str) -> Result<()> {
    let run = context.run(run)?;
    let message = pb::StopRequest {
        run_id: run.id.to_string(),
        why: why.to_owned(),
    };
    let mut client = context.launcher().await?;
    client
        .stop(request(message, CALL_TIMEOUT))
        .await
        .map_err(Refused::from)?;
    output::line(&format!("run {} was told to stop", run.id));
    Ok(())
}

/// `vecctl list`.
pub(crate) async fn list(context: &Context) -> Result<()> {
    let rows: Vec<[String; 4]> = match context.launcher_if_needed().await? {
        Some(mut client) => {
            let reply = client.list(request(pb::ListRequest {}, CALL_TIMEOUT)).await;
            let runs = reply.map_err(Refused::from)?.into_inner().runs;
            runs.into_iter()
                .map(|run| [run.run_id, run.state, run.stop_reason, run.run_dir])
                .collect()
        }
        None => list_known(&context.data)?.into_iter().map(listed).collect(),
    };
    if context.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|[run, state, reason, dir]| {
                json!({"run": run, "state": state, "stop_reason": reason, "run_dir": dir})
            })
            .collect();
        return output::json(&rows);
    }
    if rows.is_empty() {
        output::line("no runs are known; start one with: vecctl launch CONFIG");
        return Ok(());
    }
    let head = [
        ("run", Align::Left),
        ("state", Align::Left),
        ("stop reason", Align::Left),
        ("files", Align::Left),
    ];
    let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
    table(&head, &rows)
        .iter()
        .for_each(|line| output::line(line));
    Ok(())
}

fn listed(listed: Listed) -> [String; 4] {
    let Listed {
        run,
        run_dir,
        state,
        stop_reason,
    } = listed;
    let reason = stop_reason.map(|reason| reason.as_str().to_owned());
    [
        run.to_string(),
        state.to_owned(),
        reason.unwrap_or_default(),
        words(&run_dir),
    ]
}
