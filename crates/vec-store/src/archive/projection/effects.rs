//! What starts and ends of effects change in the derived tables.

use sqlx::SqliteConnection;
use vec_search::{CommitInfo, Effect, ExecReport, ExecResult, Outcome, PlanResult, ScoreResult};
use vec_types::{ExecName, NodeId, UnixMs};

use super::{Done, json, meta};

pub(super) async fn effect_started(
    conn: &mut SqliteConnection,
    at: UnixMs,
    effect: &Effect,
) -> Done {
    sqlx::query(
        "INSERT INTO effects (id, kind, node, started_at) VALUES (?, ?, ?, ?) \
         ON CONFLICT (id) DO UPDATE SET started_at = excluded.started_at, ended_at = NULL, outcome = NULL",
    )
    .bind(effect.id().as_str())
    .bind(effect.kind())
    .bind(effect.node().0)
    .bind(at.0)
    .execute(&mut *conn)
    .await?;
    if let Effect::Execute { node, exec } = effect {
        sqlx::query(
            "INSERT INTO executions (node, exec, started_at) VALUES (?, ?, ?) \
             ON CONFLICT (node, exec) DO UPDATE SET started_at = excluded.started_at",
        )
        .bind(node.0)
        .bind(exec.to_string())
        .bind(at.0)
        .execute(conn)
        .await?;
    }
    Ok(())
}

pub(super) async fn effect_ended(
    conn: &mut SqliteConnection,
    at: UnixMs,
    effect: &Effect,
    end: &Outcome,
) -> Done {
    let outcome = json(end);
    let word = serde_json::from_str::<serde_json::Value>(&outcome)
        .ok()
        .and_then(|value| value["outcome"].as_str().map(str::to_owned));
    sqlx::query("UPDATE effects SET ended_at = ?, outcome = ? WHERE id = ?")
        .bind(at.0)
        .bind(word)
        .bind(effect.id().as_str())
        .execute(&mut *conn)
        .await?;
    let node = effect.node();
    match (effect, end) {
        (_, Outcome::Imported { commit: info }) => commit(conn, node, info).await,
        (_, Outcome::Engineered { session }) => match &session.commit {
            Some(info) => commit(conn, node, info).await,
            None => Ok(()),
        },
        (_, Outcome::Planned { result }) => match result {
            PlanResult::Valid { plan, .. } => {
                text(
                    conn,
                    "UPDATE nodes SET plan_json = ? WHERE node = ?",
                    node,
                    &json(plan),
                )
                .await
            }
            PlanResult::Invalid { .. } => Ok(()),
        },
        (_, Outcome::Reviewed { verdict }) => {
            text(
                conn,
                "UPDATE nodes SET review = ? WHERE node = ?",
                node,
                &json(verdict),
            )
            .await
        }
        (Effect::Execute { exec, .. }, Outcome::Executed { report }) => {
            executed(conn, at, node, *exec, report).await
        }
        (Effect::Execute { exec, .. }, Outcome::Interrupted { fault, detail }) => {
            execution_end(conn, at, (node, *exec), (&json(fault), detail)).await
        }
        (Effect::Score { exec, .. }, Outcome::Scored { result }) => {
            scored(conn, at, node, *exec, result).await
        }
        (_, Outcome::Placed { sha256: Some(file) }) => {
            meta(conn, "placed_sha256", &file.to_string()).await
        }
        _ => Ok(()),
    }
}

async fn text(conn: &mut SqliteConnection, sql: &'static str, node: NodeId, value: &str) -> Done {
    sqlx::query(sql)
        .bind(value)
        .bind(node.0)
        .execute(conn)
        .await?;
    Ok(())
}

async fn commit(conn: &mut SqliteConnection, node: NodeId, info: &CommitInfo) -> Done {
    sqlx::query("UPDATE nodes SET commit_id = ?, tree = ?, runtime_key = ? WHERE node = ?")
        .bind(info.commit.to_string())
        .bind(info.tree.to_string())
        .bind(info.runtime_key.to_string())
        .bind(node.0)
        .execute(conn)
        .await?;
    Ok(())
}

async fn execution_end(
    conn: &mut SqliteConnection,
    at: UnixMs,
    (node, exec): (NodeId, ExecName),
    (result, detail): (&str, &str),
) -> Done {
    sqlx::query(
        "INSERT INTO executions (node, exec, result, detail, ended_at) VALUES (?, ?, ?, ?, ?) \
         ON CONFLICT (node, exec) DO UPDATE SET result = excluded.result, \
         detail = excluded.detail, ended_at = excluded.ended_at",
    )
    .bind(node.0)
    .bind(exec.to_string())
    .bind(result)
    .bind(detail)
    .bind(at.0)
    .execute(conn)
    .await?;
    Ok(())
}

async fn executed(
    conn: &mut SqliteConnection,
    at: UnixMs,
    node: NodeId,
    exec: ExecName,
    report: &ExecReport,
) -> Done {
    let (result, detail, digests) = match &report.result {
        ExecResult::Done { digests } => ("done".to_owned(), "", Some(json(digests))),
        ExecResult::Fault { fault, detail } => (json(fault), detail.as_str(), None),
    };
    execution_end(conn, at, (node, exec), (&result, detail)).await?;
    sqlx::query(
        "UPDATE executions SET wall_json = ?, max_rss_kib = ?, harness_ms = ?, digests_json = ? \
         WHERE node = ? AND exec = ?",
    )
    .bind(json(&report.wall_ms))
    .bind(report.max_rss_kib.and_then(|kib| i64::try_from(kib).ok()))
    .bind(report.harness_ms)
    .bind(digests)
    .bind(node.0)
    .bind(exec.to_string())
    .execute(conn)
    .await?;
    Ok(())
}

async fn scored(
    conn: &mut SqliteConnection,
    at: UnixMs,
    node: NodeId,
    exec: ExecName,
    result: &ScoreResult,
) -> Done {
    let (total, components, parts, detail) = match result {
        ScoreResult::Done { report } => (
            Some(report.total.get()),
            Some(json(&report.components)),
            Some(json(&report.parts)),
            "",
        ),
        ScoreResult::InvalidFormat { detail } => (None, None, None, detail.as_str()),
    };
    sqlx::query(
        "INSERT INTO scores (node, exec, total, components_json, parts_json, detail, at) \
         VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (node, exec) DO UPDATE SET \
         total = excluded.total, components_json = excluded.components_json, \
         parts_json = excluded.parts_json, detail = excluded.detail, at = excluded.at",
    )
    .bind(node.0)
    .bind(exec.to_string())
    .bind(total)
    .bind(components)
    .bind(parts)
    .bind(detail)
    .bind(at.0)
    .execute(conn)
    .await?;
    Ok(())
}
