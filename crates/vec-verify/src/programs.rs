//! programs.git: every object and ref, and the refs against what the events say.

use std::collections::BTreeSet;

use vec_programs::{Programs, ProgramsReport};
use vec_search::{CommitInfo, Event, Outcome};
use vec_store::RunLayout;
use vec_types::NodeId;

use crate::replay::KnownEvent;
use crate::report::chain;
use crate::{Check, VerifyReport};

const PROGRAMS: &str = "programs.git";

pub(crate) fn check(layout: &RunLayout, events: &[KnownEvent], report: &mut VerifyReport) {
    let commits: Vec<(u64, NodeId, &CommitInfo)> = events.iter().filter_map(commit).collect();
    if !layout.programs().exists() {
        if let Some((seq, node, _)) = commits.first() {
            let expected = format!("the program of node {node} (event {seq})");
            report.find(Check::Programs, PROGRAMS, expected, "no repository");
        }
        return;
    }
    let found = Programs::open(&layout.programs()).and_then(|programs| programs.verify_all());
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            report.find(
                Check::Programs,
                PROGRAMS,
                "a readable repository",
                chain(&error),
            );
            return;
        }
    };
    report.program_objects = found.objects as u64;
    for fault in &found.faults {
        let place = format!("{PROGRAMS} {}", fault.item);
        report.find(
            Check::Programs,
            place,
            "an object or ref that holds",
            &fault.what,
        );
    }
    refs(&found, &commits, events, report);
}

fn refs(
    found: &ProgramsReport,
    commits: &[(u64, NodeId, &CommitInfo)],
    events: &[KnownEvent],
    report: &mut VerifyReport,
) {
    for (seq, node, info) in commits {
        let place = format!("{PROGRAMS} refs/nodes/{node}");
        let says = |commit: &dyn std::fmt::Display,
                    tree: &dyn std::fmt::Display,
                    key: &dyn std::fmt::Display| {
            format!("commit {commit}, tree {tree}, runtime key {key}")
        };
        let expected = format!(
            "{} (event {seq})",
            says(&info.commit, &info.tree, &info.runtime_key)
        );
        match found.nodes.get(node) {
            None => report.find(Check::Programs, place, expected, "no whole program"),
            Some(program) => {
                let same = program.commit == info.commit
                    && program.tree == info.tree
                    && program.runtime_key == info.runtime_key;
                if !same {
                    let found = says(&program.commit, &program.tree, &program.runtime_key);
                    report.find(Check::Programs, place, expected, found);
                }
            }
        }
    }
    // A crash between commit and event leaves a ref of a node that exists; any other is foreign.
    let created: BTreeSet<NodeId> = events
        .iter()
        .filter_map(|known| match &known.event {
            Event::NodeCreated { node, .. } => Some(*node),
            _ => None,
        })
        .collect();
    for node in found.nodes.keys().filter(|node| !created.contains(node)) {
        let place = format!("{PROGRAMS} refs/nodes/{node}");
        report.find(Check::Programs, place, "no ref", "a ref of no known node");
    }
}

fn commit(known: &KnownEvent) -> Option<(u64, NodeId, &CommitInfo)> {
    let Event::EffectEnded { effect, end } = &known.event else {
        return None;
    };
    let info = match end {
        Outcome::Imported { commit } => Some(commit),
        Outcome::Engineered { session } => session.commit.as_ref(),
        _ => None,
    };
    info.map(|info| (known.row.seq, effect.node(), info))
}
