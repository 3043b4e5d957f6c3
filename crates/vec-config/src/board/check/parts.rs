//! Data, split, halves, views, rulers, limits.

use std::collections::BTreeMap;

use vec_types::{RulerId, ViewId};

use crate::board::written::{
    WrittenData, WrittenHalves, WrittenLimits, WrittenRuler, WrittenScoring, WrittenSplit,
    WrittenView,
};
use crate::board::{
    Data, Halves, Limits, Ruler, RulerRole, Split, SplitKind, TabularView, TruthSampling,
};
use crate::load::{Checker, Numbers};

/// Longest column name in bytes.
const COLUMN_LEN_MAX: usize = 96;
/// Most feature columns of a tabular board.
const FEATURES_MAX: usize = 10_000;
const MEMORY_GB_MAX: f64 = 1_024.0;
/// Seven days.
const TIME_LIMIT_S_MAX: u32 = 7 * 24 * 60 * 60;
const OUTPUT_MB_MAX: u32 = 1 << 20;
/// Largest seed of a split; keeps seeds exact in every JSON reader.
const SEED_MAX: u32 = u32::MAX;

pub(super) fn data(written: Option<WrittenData>, check: &mut Checker<'_>) -> Option<Data> {
    let WrittenData {
        file,
        target,
        features,
        id,
    } = Checker::block(written);
    let file = check.required("data.file", file, "the CSV's file name");
    if let Some(file) = &file
        && (file.is_empty() || file.contains('/') || file.starts_with('.'))
    {
        check.refuse("data.file", "must be a file name without directory");
    }
    let target = check.required("data.target", target, "the column to predict");
    let features = features.unwrap_or_default();
    if features.is_empty() || features.len() > FEATURES_MAX {
        check.refuse("data.features", format!("give 1 to {FEATURES_MAX} columns"));
    }
    let mut seen: Vec<&str> = Vec::new();
    let columns = features.iter().map(|column| ("data.features", column));
    let columns = columns
        .chain(target.iter().map(|column| ("data.target", column)))
        .chain(id.iter().map(|column| ("data.id", column)));
    for (key, column) in columns {
        if !is_column(column) {
            check.refuse(
                key,
                format!("column `{column}` must be 1 to {COLUMN_LEN_MAX} of a-z A-Z 0-9 _ . -"),
            );
        }
        if seen.contains(&column.as_str()) {
            check.refuse(key, format!("column `{column}` is named twice"));
        }
        // `id` heads the id column of every file that the board writes.
        if column == "id" && key != "data.id" {
            check.refuse(key, "`id` is the name of the id column");
        }
        seen.push(column);
    }
    Some(Data {
        file: file?,
        target: target?,
        features,
        id,
    })
}

fn is_column(text: &str) -> bool {
    (1..=COLUMN_LEN_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

pub(super) fn split(written: Option<WrittenSplit>, check: &mut Checker<'_>) -> Option<Split> {
    let WrittenSplit {
        kind,
        train_fraction,
        seed,
    } = Checker::block(written);
    let kind = check.required("split.kind", kind, "`permutation` or `head`");
    let train_fraction = check.number("split.train_fraction", train_fraction, Numbers::Share);
    let seed = match (kind, seed) {
        (Some(SplitKind::Head), None) => 0,
        (Some(SplitKind::Head), Some(_)) => {
            check.refuse("split.seed", "`head` has no seed; leave it out");
            0
        }
        (_, seed) => check.whole("split.seed", seed, 0..=SEED_MAX),
    };
    Some(Split {
        kind: kind?,
        train_fraction,
        seed,
    })
}

pub(super) fn halves(written: Option<WrittenHalves>, check: &mut Checker<'_>) -> Halves {
    let WrittenHalves {
        seed,
        guard_fraction,
    } = Checker::block(written);
    Halves {
        seed: check.whole("halves.seed", seed, 0..=SEED_MAX),
        guard_fraction: check.number("halves.guard_fraction", guard_fraction, Numbers::Share),
    }
}

pub(super) fn views(
    written: Option<BTreeMap<String, WrittenView>>,
    check: &mut Checker<'_>,
) -> BTreeMap<ViewId, TabularView> {
    let written = written.unwrap_or_default();
    if written.len() != 1 {
        check.refuse("views", "a tabular board has exactly one view");
    }
    written
        .into_iter()
        .filter_map(|(id, WrittenView {})| {
            Some((check.parse(&format!("views.{id}"), &id)?, TabularView {}))
        })
        .collect()
}

pub(super) fn final_view(
    written: Option<String>,
    views: &BTreeMap<ViewId, TabularView>,
    check: &mut Checker<'_>,
) -> Option<ViewId> {
    let view = check.parse_required("final_view", written, "a view's id")?;
    known_view("final_view", view, views, check)
}

fn known_view(
    key: &str,
    view: ViewId,
    views: &BTreeMap<ViewId, TabularView>,
    check: &mut Checker<'_>,
) -> Option<ViewId> {
    if views.contains_key(&view) {
        return Some(view);
    }
    let known: Vec<&str> = views.keys().map(ViewId::as_str).collect();
    check.refuse(
        key,
        format!("no view `{view}`; views are: {}", known.join(", ")),
    );
    None
}

pub(super) fn rulers(
    written: Option<BTreeMap<String, WrittenRuler>>,
    views: &BTreeMap<ViewId, TabularView>,
    check: &mut Checker<'_>,
) -> BTreeMap<RulerId, Ruler> {
    let mut rulers = BTreeMap::new();
    let mut refused = false;
    for (id, written) in written.unwrap_or_default() {
        let key = format!("rulers.{id}");
        match ruler(&key, &id, written, views, check) {
            Some((id, ruler)) => {
                rulers.insert(id, ruler);
            }
            None => refused = true,
        }
    }
    let objective = |ruler: &&Ruler| ruler.role == RulerRole::Objective;
    let total: f64 = rulers.values().filter(objective).map(|r| r.weight).sum();
    if total > 0.0 {
        for ruler in rulers.values_mut() {
            ruler.weight /= total;
        }
    } else if !refused {
        check.refuse(
            "rulers",
            "the weights of the objective rulers sum to 0; give at least one a weight above 0",
        );
    }
    rulers
}

fn ruler(
    key: &str,
    id: &str,
    written: WrittenRuler,
    views: &BTreeMap<ViewId, TabularView>,
    check: &mut Checker<'_>,
) -> Option<(RulerId, Ruler)> {
    let WrittenRuler {
        view,
        role,
        weight,
        metric,
    } = written;
    let id = check.parse(key, id);
    let view_key = format!("{key}.view");
    let view = check
        .parse_required(&view_key, view, "a view's id")
        .and_then(|view| known_view(&view_key, view, views, check));
    let role = check.required(&format!("{key}.role"), role, "`objective`");
    let metric = check.required(&format!("{key}.metric"), metric, "`rmse`");
    let weight = check.number(&format!("{key}.weight"), weight, Numbers::UpTo(1e6));
    Some((
        id?,
        Ruler {
            view: view?,
            role: role?,
            weight,
            metric: metric?,
        },
    ))
}

pub(super) fn limits(written: Option<WrittenLimits>, check: &mut Checker<'_>) -> Limits {
    let WrittenLimits {
        memory_gb,
        time_limit_s,
        threads,
        output_max_mb,
    } = Checker::block(written);
    Limits {
        memory_gb: check.number(
            "limits.memory_gb",
            memory_gb,
            Numbers::PositiveTo(MEMORY_GB_MAX),
        ),
        time_limit_s: check.whole("limits.time_limit_s", time_limit_s, 1..=TIME_LIMIT_S_MAX),
        threads: check.whole("limits.threads", threads, 1..=1_024),
        output_max_mb: check.whole("limits.output_max_mb", output_max_mb, 1..=OUTPUT_MB_MAX),
    }
}

pub(super) fn truth_sampling(
    written: Option<WrittenScoring>,
    check: &mut Checker<'_>,
) -> TruthSampling {
    let WrittenScoring { truth_fraction } = Checker::block(written);
    TruthSampling {
        truth_fraction: check.number(
            "scoring.truth_fraction",
            Some(truth_fraction.unwrap_or(0.5)),
            Numbers::PositiveTo(1.0),
        ),
    }
}
