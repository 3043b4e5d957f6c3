//! `vecctl watch`: one line per event, then the summary.

use anyhow::{Context as _, Result};
use tonic::transport::Channel;
use vec_launcher::run_view;
use vec_proto::Backoff;
use vec_proto::pb::launcher::v1 as pb;
use vec_proto::pb::launcher::v1::launcher_client::LauncherClient;
use vec_search::Event;
use vec_store::RunLayout;
use vec_types::UnixMs;

use crate::context::Context;
use crate::failure::Refused;
use crate::output;
use crate::render::{event_line, summary};
use crate::run_ref::RunRef;

/// Follows a run to its end; exits with success whatever the run's outcome is.
pub(crate) async fn watch(context: &Context, run: &str, after: u64) -> Result<()> {
    let run = context.run(run)?;
    let mut seen = after;
    let mut failed = 0;
    loop {
        let before = seen;
        let Some(client) = context.launcher_if_needed().await? else {
            stored(&run, seen).await?;
            break;
        };
        match follow(client, &run, &mut seen).await? {
            Ok(()) => break,
            // The launcher went away: another one takes the run over.
            Err(refused) if refused.is_lost() => {
                failed = if seen > before { 1 } else { failed + 1 };
                let Some(wait) = Backoff::RESTART.wait_after(failed) else {
                    return Err(refused.into());
                };
                tokio::time::sleep(wait).await;
            }
            Err(refused) => return Err(refused.into()),
        }
    }
    end(context, run).await
}

// Shows live events after `seen` until the run is over. A connection that breaks is a `Refused`.
async fn follow(
    mut client: LauncherClient<Channel>,
    run: &RunRef,
    seen: &mut u64,
) -> Result<Result<(), Refused>> {
    let message = pb::WatchRequest {
        run_id: run.id.to_string(),
        after_seq: *seen,
    };
    // No deadline: a run takes as long as it takes.
    let mut events = match client.watch(message).await {
        Ok(reply) => reply.into_inner(),
        Err(status) => return Ok(Err(status.into())),
    };
    loop {
        match events.message().await {
            Ok(Some(event)) => {
                show(event.seq, UnixMs(event.at_ms), &event.event_json)?;
                *seen = (*seen).max(event.seq);
            }
            Ok(None) => return Ok(Ok(())),
            Err(status) => return Ok(Err(status.into())),
        }
    }
}

async fn stored(run: &RunRef, after: u64) -> Result<()> {
    let layout = RunLayout::of_run_dir(run.dir()?)?;
    for event in run_view::events(&layout, after).await? {
        show(event.seq, event.at, &event.json)?;
    }
    Ok(())
}

fn show(seq: u64, at: UnixMs, json: &str) -> Result<()> {
    let event: Event = serde_json::from_str(json).with_context(|| format!("read event {seq}"))?;
    output::line(&event_line(seq, at, &event));
    Ok(())
}

// The directory may be known only now, if the launcher has a root that we have not.
async fn end(context: &Context, run: RunRef) -> Result<()> {
    let run = match run.dir {
        Some(_) => run,
        None => context.run(run.id.as_str())?,
    };
    let finish = super::show::finish(run.dir()?).await?;
    output::line("");
    summary(&finish).iter().for_each(|line| output::line(line));
    let dir = run.dir()?.display().to_string();
    output::line("");
    output::line("next:");
    for (command, what) in [
        (format!("vecctl show {dir}"), "the tree, node by node"),
        (format!("vecctl explain {dir} 3"), "why a node exists"),
        (format!("vecctl package {dir}"), "pack it for others"),
        (
            format!("vecctl verify --replay {dir}"),
            "check every byte and every decision",
        ),
    ] {
        output::line(&format!("  {command}  # {what}"));
    }
    Ok(())
}
