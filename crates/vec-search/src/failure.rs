//! The failure algebra: what each outcome of a node does to visits, ranks, streaks, coverage,
//! quotas, budgets and stop rules. One table; the fold and the rules read it, the documentation
//! prints it (`docs/failure-algebra.md`) and the tests are generated from it.
//!
//! Source: requirements b.1, SEL-02, SEL-04, SEL-06, SEL-12, SEL-15, DRF-04, DRF-06, SED-05,
//! O-OPR-2, CAR-10, CON-02.

use std::fmt::Write as _;

use vec_types::NodeStatus;

/// What a node that ended so means for the rest of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consequence {
    /// The virtual visits of its ancestors become real and it counts one visit itself; otherwise
    /// they vanish (SEL-02, SEL-04, O-SEL-6).
    pub visit: bool,
    /// Its rank in the tree (SEL-02, SEL-07).
    pub rank: Rank,
    /// What it does to its parent's failure streak (SEL-06, SEL-12).
    pub streak: Streak,
    /// It counts as a new node elsewhere, which ends suspensions (SEL-06, O-SEL-3).
    pub lifts_suspensions: bool,
    /// It counts towards the child cap of an exploration seed (SED-05, O-SED-2).
    pub child_cap: bool,
    /// As an improve it has served its parent's reserve (SEL-10).
    pub serves_reserve: bool,
    /// As a debug it has used one of its parent's `debug.max_attempts` (O-OPR-2).
    pub debug_attempt: bool,
    /// It may itself be the target of a debug (O-OPR-2).
    pub debug_target: bool,
    /// What it is for the coverage of its family, as a draft (DRF-04).
    pub coverage: Coverage,
    /// It may be a parent, be promoted, reviewed and become a final candidate (SEL-08, PRO-01).
    pub competes: bool,
    /// It fills a place of the plateau's window (PLT-01).
    pub plateau_window: bool,
    /// What it means for a seed program (SED-04, `SEED_ATTEMPTS_MAX`).
    pub seed_program: SeedRule,
}

/// Rank of a node in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// By its ranking score.
    Score,
    /// Below every score, equal to every other failure (−∞).
    Bottom,
    /// Not in the tree.
    Absent,
}

/// Effect on the parent's failure streak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streak {
    /// The streak is over.
    Resets,
    /// One more failure in a row.
    Extends,
    /// One more failure in a row if `select.streak_counts_gen`, else nothing.
    ExtendsIfGenCounts,
    /// Nothing.
    Ignored,
}

/// Effect of a draft on the coverage of its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// The family is covered.
    Covers,
    /// One failed draft, towards `draft.failed_cap`.
    Fails,
    /// Neither; the family is drawn again.
    Ignored,
}

/// Effect on a seed program and, for the baseline, on the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeedRule {
    /// The search may go on.
    Done,
    /// It is tried again, at most `SEED_ATTEMPTS_MAX` times; then as `Fatal`.
    TriedAgain,
    /// A baseline that ends so stops the run (`infra`).
    Fatal,
}

const SCORED: Consequence = Consequence {
    visit: true,
    rank: Rank::Score,
    streak: Streak::Resets,
    lifts_suspensions: true,
    child_cap: true,
    serves_reserve: true,
    debug_attempt: true,
    debug_target: false,
    coverage: Coverage::Covers,
    competes: true,
    plateau_window: true,
    seed_program: SeedRule::Done,
};

/// The program's own fault during execution or format check (SEL-12).
const EXECUTED_FAULT: Consequence = Consequence {
    rank: Rank::Bottom,
    streak: Streak::Extends,
    debug_target: true,
    coverage: Coverage::Fails,
    competes: false,
    plateau_window: false,
    seed_program: SeedRule::Fatal,
    ..SCORED
};

/// No program that could be executed: the candidate's side, but nothing ran.
const NO_PROGRAM: Consequence = Consequence {
    streak: Streak::ExtendsIfGenCounts,
    debug_target: false,
    ..EXECUTED_FAULT
};

/// Nobody's fault who proposed it: as if it had never been, but for the node and time budget.
const SHELVED: Consequence = Consequence {
    visit: false,
    rank: Rank::Absent,
    streak: Streak::Ignored,
    lifts_suspensions: false,
    child_cap: false,
    serves_reserve: false,
    debug_attempt: false,
    debug_target: false,
    coverage: Coverage::Ignored,
    competes: false,
    plateau_window: false,
    seed_program: SeedRule::TriedAgain,
};

/// In work: it holds virtual visits and the places that it may come to fill.
const RUNNING: Consequence = Consequence {
    child_cap: true,
    serves_reserve: true,
    debug_attempt: true,
    coverage: Coverage::Covers,
    ..SHELVED
};

/// The consequence of a status.
#[must_use]
pub const fn of(status: NodeStatus) -> Consequence {
    match status {
        NodeStatus::Running => RUNNING,
        NodeStatus::Scored => SCORED,
        NodeStatus::GenFailed | NodeStatus::GenEmpty => NO_PROGRAM,
        NodeStatus::Crash
        | NodeStatus::Oom
        | NodeStatus::Timeout
        | NodeStatus::Hung
        | NodeStatus::InvalidFormat => EXECUTED_FAULT,
        NodeStatus::ScoreError
        | NodeStatus::InfraOom
        | NodeStatus::Interrupted
        | NodeStatus::CarriedOver
        | NodeStatus::ImportedUnscored
        | NodeStatus::HistoryOnly => SHELVED,
    }
}

impl Consequence {
    /// Does it extend its parent's streak under `select.streak_counts_gen`?
    #[must_use]
    pub const fn extends_streak(&self, counts_gen: bool) -> bool {
        match self.streak {
            Streak::Extends => true,
            Streak::ExtendsIfGenCounts => counts_gen,
            Streak::Resets | Streak::Ignored => false,
        }
    }
}

/// The table as Markdown, one row per status in the order of [`NodeStatus::ALL`].
#[must_use]
pub fn table() -> String {
    let heads = [
        "outcome",
        "visits",
        "rank",
        "streak",
        "ends suspensions",
        "child cap",
        "serves reserve",
        "debug attempt",
        "debug target",
        "coverage",
        "competes",
        "plateau window",
        "seed program",
    ];
    let mut text = format!(
        "| {} |\n|{}\n",
        heads.join(" | "),
        "---|".repeat(heads.len())
    );
    for status in NodeStatus::ALL {
        let row = of(status);
        let yes = |holds: bool| if holds { "yes" } else { "–" };
        let cells = [
            format!("`{}`", status.as_str()),
            visits(status, row).to_owned(),
            format!("{:?}", row.rank).to_lowercase(),
            streak(row.streak).to_owned(),
            yes(row.lifts_suspensions).to_owned(),
            yes(row.child_cap).to_owned(),
            yes(row.serves_reserve).to_owned(),
            yes(row.debug_attempt).to_owned(),
            yes(row.debug_target).to_owned(),
            format!("{:?}", row.coverage).to_lowercase(),
            yes(row.competes).to_owned(),
            yes(row.plateau_window).to_owned(),
            seed_rule(status, row.seed_program).to_owned(),
        ];
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

fn visits(status: NodeStatus, row: Consequence) -> &'static str {
    match (status, row.visit) {
        (NodeStatus::Running, _) => "virtual",
        (_, true) => "real",
        (_, false) => "none",
    }
}

const fn streak(streak: Streak) -> &'static str {
    match streak {
        Streak::Resets => "resets",
        Streak::Extends => "extends",
        Streak::ExtendsIfGenCounts => "extends if `streak_counts_gen`",
        Streak::Ignored => "–",
    }
}

const fn seed_rule(status: NodeStatus, rule: SeedRule) -> &'static str {
    match (status, rule) {
        (NodeStatus::Running, _) => "–",
        (_, SeedRule::Done) => "done",
        (_, SeedRule::TriedAgain) => "tried again",
        (_, SeedRule::Fatal) => "baseline: stop `infra`",
    }
}
