//! Score: one execution's predictions on half B, through the scorer's daemon socket. Idempotent
//! by request id, so a restart of either side repeats nothing.

use std::time::{Duration, Instant};

use vec_proto::pb::scorer::v1 as pb;
use vec_proto::pb::scorer::v1::scorer_client::ScorerClient;
use vec_proto::{Backoff, RowSet, ScoreCall};
use vec_search::{Outcome, RunState, ScoreResult};
use vec_types::{ExecName, InfraFault, NodeId, ScoreReport, ScoringSeed};

use crate::context::Context;
use crate::effects::execute::prediction_file;
use crate::effects::{Done, EffectError, Limits};

/// Longest wait for one scoring, beside what the phase leaves.
const SCORE_TIMEOUT: Duration = Duration::from_secs(120);

/// What to score.
#[derive(Debug)]
pub(crate) struct Input {
    node: NodeId,
    exec: ExecName,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every effect's prepare has one shape"
)]
pub(crate) fn prepare(_: &RunState, node: NodeId, exec: ExecName) -> Result<Input, EffectError> {
    Ok(Input { node, exec })
}

pub(crate) async fn perform(
    context: &Context,
    input: Input,
    limits: &Limits,
) -> Result<Done, EffectError> {
    let messages = messages(context, &input).await?;
    let began = Instant::now();
    let call = vec_proto::with_retry(Backoff::RESTART, || {
        let mut client = ScorerClient::new(context.scorer.clone());
        let messages = messages.clone();
        async move { client.score(tokio_stream::iter(messages)).await }
    });
    let reply = tokio::select! {
        reply = tokio::time::timeout(limits.at_most(SCORE_TIMEOUT), call) => reply,
        () = limits.cancel.cancelled() => return Ok(limits.cut()),
    };
    let scored = match reply {
        Err(_) => Done::interrupted(InfraFault::ScoreError, "the scorer did not answer in time"),
        Ok(Err(status)) => Done::interrupted(
            InfraFault::ScoreError,
            &format!("scorer: {:?}: {}", status.code(), status.message()),
        ),
        Ok(Ok(reply)) => Done::new(outcome(reply.into_inner())?),
    };
    Ok(scored.with_span("score.harness", began.elapsed()))
}

fn outcome(reply: pb::ScoreReply) -> Result<Outcome, EffectError> {
    let result = match reply.result {
        Some(pb::score_reply::Result::Report(report)) => {
            let report = ScoreReport::try_from(report)
                .map_err(|error| EffectError::failed("read the scorer's reply", &error))?;
            ScoreResult::Done { report }
        }
        Some(pb::score_reply::Result::InvalidFormat(invalid)) => ScoreResult::InvalidFormat {
            detail: format!("{}: {}", invalid.code, invalid.detail),
        },
        None => {
            return Ok(Outcome::Interrupted {
                fault: InfraFault::ScoreError,
                detail: "the scorer's reply is empty".to_owned(),
            });
        }
    };
    Ok(Outcome::Scored { result })
}

async fn messages(context: &Context, input: &Input) -> Result<Vec<pb::ScoreRequest>, EffectError> {
    let Input { node, exec } = *input;
    let seed = exec.program_seed();
    let header = ScoreCall {
        request_id: format!("{}-{node}-{exec}", context.lock.run_id.run8()),
        node,
        exec,
        scoring_seed: ScoringSeed(seed.0),
        rows: if matches!(exec, ExecName::Fresh(_)) {
            RowSet::Guard
        } else {
            RowSet::Search
        },
    };
    let mut messages = vec![pb::ScoreRequest {
        item: Some(pb::score_request::Item::Header(header.into())),
    }];
    for view in context.objective_views() {
        let path = prediction_file(context, node, exec, &view)?;
        let bytes = tokio::fs::read(&path)
            .await
            .map_err(|error| EffectError::io("read", &path, error))?;
        messages.extend(vec_proto::pieces(&view, &bytes).into_iter().map(|upload| {
            pb::ScoreRequest {
                item: Some(pb::score_request::Item::Upload(upload)),
            }
        }));
    }
    Ok(messages)
}
