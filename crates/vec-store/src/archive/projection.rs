//! The tables derived from events: one small upsert per event, so that a rebuild gives the same
//! rows as the run did. No rule of the search lives here.

mod effects;

use serde::Serialize;
use sqlx::{Row as _, SqliteConnection};
use vec_search::{Event, Import, ImportEnd};
use vec_types::UnixMs;

use effects::{effect_ended, effect_started};

type Done = Result<(), sqlx::Error>;

// Words and JSON columns. These types always have a JSON form.
fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_value(value).map_or_else(
        |error| format!("unwritable: {error}"),
        |value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        },
    )
}

pub(super) async fn clear(conn: &mut SqliteConnection) -> Done {
    for sql in [
        "DELETE FROM effects",
        "DELETE FROM scores",
        "DELETE FROM executions",
        "DELETE FROM nodes",
        "DELETE FROM meta",
    ] {
        sqlx::query(sql).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Derives what `event` changes.
pub(super) async fn apply(conn: &mut SqliteConnection, at: UnixMs, event: &Event) -> Done {
    match event {
        Event::RunStart { run, .. } => {
            meta(conn, "run", run.as_str()).await?;
            meta(conn, "starts", "1").await
        }
        Event::RunResume { start } => meta(conn, "starts", &start.to_string()).await,
        Event::StopRequested { reason, detail } => {
            meta(conn, "stop_requested", reason.as_str()).await?;
            meta(conn, "stop_requested_detail", detail).await
        }
        Event::PhaseChange { to, .. } => meta(conn, "phase", &json(to)).await,
        Event::EffectStarted { effect } => effect_started(conn, at, effect).await,
        Event::EffectEnded { effect, end } => effect_ended(conn, at, effect, end).await,
        Event::FinalStart { baseline, .. } => meta(conn, "baseline", &baseline.to_string()).await,
        Event::GuardResult { .. } => meta(conn, "guard_json", &json(event)).await,
        Event::FinalGuardRefused { why } => meta(conn, "guard_refused", why).await,
        Event::WinnerChosen { node, is_baseline } => {
            meta(conn, "winner", &node.to_string()).await?;
            meta(conn, "winner_is_baseline", &is_baseline.to_string()).await
        }
        Event::Stop { reason, detail, .. } => {
            meta(conn, "stop_reason", reason.as_str()).await?;
            meta(conn, "stop_detail", detail).await
        }
        Event::EpochAdvance { epoch, .. } => meta(conn, "epoch", &epoch.to_string()).await,
        Event::FinalReserve { reserve_ms, .. } => {
            meta(conn, "final_reserve_ms", &reserve_ms.to_string()).await
        }
        Event::Imported { node, import } => imported(conn, at, node.0, import).await,
        Event::NodeCreated { .. }
        | Event::NodeSettled { .. }
        | Event::RefutedDirection { .. }
        | Event::PromotionStart { .. }
        | Event::PromotionDone { .. }
        | Event::PromotionFailed { .. } => node_event(conn, at, event).await,
        // Everything else is only of interest as an event.
        _ => Ok(()),
    }
}

async fn meta(conn: &mut SqliteConnection, key: &str, value: &str) -> Done {
    sqlx::query("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value")
        .bind(key)
        .bind(value)
        .execute(conn)
        .await?;
    Ok(())
}

async fn node_event(conn: &mut SqliteConnection, at: UnixMs, event: &Event) -> Done {
    let query = match event {
        Event::NodeCreated {
            node,
            operator,
            parent,
            family,
            seed_program,
        } => sqlx::query(
            "INSERT INTO nodes (node, operator, parent, family, seed_program, status, created_at) \
             VALUES (?, ?, ?, ?, ?, 'running', ?)",
        )
        .bind(node.0)
        .bind(operator.as_str())
        .bind(parent.map(|p| p.0))
        .bind(family.as_ref().map(json))
        .bind(seed_program.as_ref().map(json))
        .bind(at.0),
        Event::NodeSettled {
            node,
            status,
            no_progress,
            same_as_parent,
            budget_cut,
            epoch,
            detail,
            ..
        } => sqlx::query(
            "UPDATE nodes SET status = ?, no_progress = ?, same_as_parent = ?, budget_cut = ?, \
             epoch = ?, detail = ?, settled_at = ? WHERE node = ?",
        )
        .bind(status.as_str())
        .bind(no_progress)
        .bind(same_as_parent)
        .bind(budget_cut)
        .bind(epoch)
        .bind(detail)
        .bind(at.0)
        .bind(node.0),
        Event::RefutedDirection { node, text, .. } => {
            sqlx::query("UPDATE nodes SET refuted = ? WHERE node = ?")
                .bind(text)
                .bind(node.0)
        }
        Event::PromotionStart { node, .. } => {
            sqlx::query("UPDATE nodes SET promotion = 'running' WHERE node = ?").bind(node.0)
        }
        Event::PromotionDone {
            node, epoch, mean, ..
        } => sqlx::query("UPDATE nodes SET promotion = 'done', mean = ?, epoch = ? WHERE node = ?")
            .bind(mean.get())
            .bind(epoch)
            .bind(node.0),
        Event::PromotionFailed { node, .. } => {
            sqlx::query("UPDATE nodes SET promotion = 'failed' WHERE node = ?").bind(node.0)
        }
        _ => return Ok(()),
    };
    query.execute(conn).await?;
    Ok(())
}

/// An import is a node that was settled elsewhere, with the scores that came along (CON-06).
async fn imported(conn: &mut SqliteConnection, at: UnixMs, node: u32, import: &Import) -> Done {
    let commit = match &import.end {
        ImportEnd::Scored { commit, .. }
        | ImportEnd::Unscored { commit, .. }
        | ImportEnd::Faulty { commit, .. } => Some(commit),
        ImportEnd::GenFailed | ImportEnd::GenEmpty | ImportEnd::CarriedOver { .. } => None,
    };
    let program = import.seed_program.as_ref().map(|(id, _)| json(id));
    sqlx::query(
        "INSERT INTO nodes (node, operator, parent, family, seed_program, status, no_progress, \
         same_as_parent, commit_id, tree, runtime_key, refuted, epoch, origin, created_at, \
         settled_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?)",
    )
    .bind(node)
    .bind(import.operator.as_str())
    .bind(import.parent.map(|p| p.0))
    .bind(import.family.as_ref().map(json))
    .bind(program)
    .bind(import.end.status().as_str())
    .bind(import.no_progress)
    .bind(import.same_as_parent)
    .bind(commit.map(|commit| commit.commit.to_string()))
    .bind(commit.map(|commit| commit.tree.to_string()))
    .bind(commit.map(|commit| commit.runtime_key.to_string()))
    .bind(import.refuted.as_deref())
    .bind(import.origin.to_string())
    .bind(at.0)
    .bind(at.0)
    .execute(conn)
    .await?;
    Ok(())
}

/// Every row as `table|value|value…`, values as SQL literals.
pub(super) async fn dump(conn: &mut SqliteConnection) -> Result<Vec<String>, sqlx::Error> {
    const DUMPS: [&str; 5] = [
        "SELECT 'meta|' || concat_ws('|', quote(key), quote(value)) FROM meta ORDER BY key",
        "SELECT 'nodes|' || concat_ws('|', quote(node), quote(operator), quote(parent), \
         quote(family), quote(seed_program), quote(status), quote(no_progress), \
         quote(same_as_parent), quote(budget_cut), quote(detail), quote(commit_id), quote(tree), \
         quote(runtime_key), quote(plan_json), quote(review), quote(promotion), quote(mean), \
         quote(refuted), quote(epoch), quote(origin), quote(created_at), quote(settled_at)) FROM nodes ORDER BY node",
        "SELECT 'executions|' || concat_ws('|', quote(node), quote(exec), quote(result), \
         quote(detail), quote(wall_json), quote(max_rss_kib), quote(harness_ms), \
         quote(digests_json), quote(started_at), quote(ended_at)) FROM executions ORDER BY node, exec",
        "SELECT 'scores|' || concat_ws('|', quote(node), quote(exec), quote(total), \
         quote(components_json), quote(parts_json), quote(detail), quote(at)) \
         FROM scores ORDER BY node, exec",
        "SELECT 'effects|' || concat_ws('|', quote(id), quote(kind), quote(node), \
         quote(started_at), quote(ended_at), quote(outcome)) FROM effects ORDER BY id",
    ];
    let mut rows = Vec::new();
    for sql in DUMPS {
        for row in sqlx::query(sql).fetch_all(&mut *conn).await? {
            rows.push(row.try_get::<String, _>(0)?);
        }
    }
    Ok(rows)
}
