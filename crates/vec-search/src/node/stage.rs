//! Stages and endings. A [`Stage`] variant carries what exists in that stage, so nothing can be
//! read too early. An [`Ending`] says whose fault an end is by its type: [`CandidateFault`] counts
//! against the parent, [`InfraFault`] never does.

use vec_types::{CandidateFault, InfraFault, NodeStatus, ScoreReport, UnixMs};

use super::PackedPlan;
use crate::{CommitInfo, ExecReport, SessionReport};

/// What comes next for a running node, or how it ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stage {
    Import,
    /// An import that is not scored in this run; `cut` = it was tried (CON-03).
    Waiting {
        build: Build,
        cut: bool,
    },
    Plan,
    Comply {
        plan: PackedPlan,
    },
    Engineer {
        plan: PackedPlan,
    },
    Execute {
        build: Build,
    },
    Score {
        build: Build,
        report: Box<ExecReport>,
    },
    Analyze {
        ending: Ending,
    },
    Ending {
        ending: Ending,
    },
    Settled {
        ending: Ending,
        settled: Settled,
    },
}

/// A committed program and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Build {
    SeedProgram(Box<CommitInfo>),
    /// Its commit stands in the session's report.
    Engineered(Box<Engineered>),
    /// From an earlier run; its plan and session stay there.
    Past(Box<CommitInfo>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Engineered {
    pub plan: PackedPlan,
    pub session: SessionReport,
}

/// How the pipeline ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ending {
    Scored(Box<Scored>),
    NoProgram {
        fault: GenFault,
        ended: Box<Ended>,
    },
    Faulty {
        fault: CandidateFault,
        faulty: Box<Faulty>,
    },
    Shelved {
        fault: InfraFault,
        ended: Box<Ended>,
    },
    /// An import without a score of its own in this run: a failure, history, or carried-over work.
    Past {
        status: NodeStatus,
        kept: Box<Kept>,
    },
}

/// Candidate-side failures before anything ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GenFault {
    Failed,
    SameAsParent,
}

/// What exists of a scored node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scored {
    pub build: Build,
    pub exec: ExecReport,
    pub score: ScoreReport,
}

/// What exists of a node whose program was at fault.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Faulty {
    pub detail: String,
    pub build: Build,
    pub exec: ExecReport,
}

/// Why a node ended early, in words, and what exists of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ended {
    pub detail: String,
    pub kept: Kept,
}

/// What exists of a node that ended early.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Kept {
    #[default]
    Nothing,
    Plan(PackedPlan),
    /// With the commit, if the session made one.
    Session(Box<Engineered>),
    /// A program whose plan and session are elsewhere, or never were.
    Commit(Box<CommitInfo>),
}

/// The settlement's own facts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settled {
    pub at: UnixMs,
    /// Settlements before it, imports included.
    pub order: u32,
    pub no_progress: bool,
    pub same_as_parent: bool,
    pub budget_cut: bool,
    pub detail: Box<str>,
}

impl Stage {
    /// One word for people and `CorruptRun`.
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::Import => "importing",
            Self::Waiting { .. } => "waiting",
            Self::Plan => "planning",
            Self::Comply { .. } => "compliance",
            Self::Engineer { .. } => "engineering",
            Self::Execute { .. } => "executing",
            Self::Score { .. } => "scoring",
            Self::Analyze { .. } => "analyzing",
            Self::Ending { .. } => "settling",
            Self::Settled { .. } => "settled",
        }
    }

    pub(crate) const fn ending(&self) -> Option<&Ending> {
        match self {
            Self::Analyze { ending } | Self::Ending { ending } | Self::Settled { ending, .. } => {
                Some(ending)
            }
            _ => None,
        }
    }

    /// What a node that is cut in this stage leaves behind.
    pub(crate) fn kept(self) -> Kept {
        match self {
            Self::Import | Self::Plan => Kept::Nothing,
            Self::Comply { plan } | Self::Engineer { plan } => Kept::Plan(plan),
            Self::Execute { build } | Self::Score { build, .. } | Self::Waiting { build, .. } => {
                build.kept()
            }
            Self::Analyze { ending } | Self::Ending { ending } | Self::Settled { ending, .. } => {
                match ending {
                    Ending::Scored(scored) => scored.build.kept(),
                    Ending::Faulty { faulty, .. } => faulty.build.kept(),
                    Ending::NoProgram { ended, .. } | Ending::Shelved { ended, .. } => ended.kept,
                    Ending::Past { kept, .. } => *kept,
                }
            }
        }
    }
}

impl Build {
    pub(crate) fn kept(self) -> Kept {
        match self {
            Self::SeedProgram(commit) | Self::Past(commit) => Kept::Commit(commit),
            Self::Engineered(made) => Kept::Session(made),
        }
    }

    pub(crate) fn plan(&self) -> Option<&PackedPlan> {
        self.made().map(|made| &made.plan)
    }

    pub(crate) fn session(&self) -> Option<&SessionReport> {
        self.made().map(|made| &made.session)
    }

    /// There always is one: only a session with a commit comes this far.
    pub(crate) fn commit(&self) -> Option<&CommitInfo> {
        match self {
            Self::SeedProgram(commit) | Self::Past(commit) => Some(commit),
            Self::Engineered(made) => made.session.commit.as_ref(),
        }
    }

    fn made(&self) -> Option<&Engineered> {
        match self {
            Self::SeedProgram(_) | Self::Past(_) => None,
            Self::Engineered(made) => Some(made),
        }
    }
}

impl Kept {
    pub(crate) fn plan(&self) -> Option<&PackedPlan> {
        match self {
            Self::Plan(plan) => Some(plan),
            Self::Session(made) => Some(&made.plan),
            Self::Nothing | Self::Commit(_) => None,
        }
    }

    pub(crate) fn session(&self) -> Option<&SessionReport> {
        match self {
            Self::Session(made) => Some(&made.session),
            Self::Nothing | Self::Plan(_) | Self::Commit(_) => None,
        }
    }

    pub(crate) fn commit(&self) -> Option<&CommitInfo> {
        match self {
            Self::Session(made) => made.session.commit.as_ref(),
            Self::Commit(commit) => Some(commit),
            Self::Nothing | Self::Plan(_) => None,
        }
    }
}

impl Ending {
    pub(crate) fn status(&self) -> NodeStatus {
        match self {
            Self::Scored(_) => NodeStatus::Scored,
            Self::NoProgram {
                fault: GenFault::Failed,
                ..
            } => NodeStatus::GenFailed,
            Self::NoProgram {
                fault: GenFault::SameAsParent,
                ..
            } => NodeStatus::GenEmpty,
            Self::Faulty { fault, .. } => (*fault).into(),
            Self::Shelved { fault, .. } => (*fault).into(),
            Self::Past { status, .. } => *status,
        }
    }

    pub(crate) fn detail(&self) -> &str {
        match self {
            Self::Scored(_) | Self::Past { .. } => "",
            Self::NoProgram { ended, .. } | Self::Shelved { ended, .. } => &ended.detail,
            Self::Faulty { faulty, .. } => &faulty.detail,
        }
    }

    pub(crate) fn build(&self) -> Option<&Build> {
        match self {
            Self::Scored(scored) => Some(&scored.build),
            Self::Faulty { faulty, .. } => Some(&faulty.build),
            Self::NoProgram { .. } | Self::Shelved { .. } | Self::Past { .. } => None,
        }
    }

    pub(crate) fn kept(&self) -> Option<&Kept> {
        match self {
            Self::NoProgram { ended, .. } | Self::Shelved { ended, .. } => Some(&ended.kept),
            Self::Past { kept, .. } => Some(kept),
            Self::Scored(_) | Self::Faulty { .. } => None,
        }
    }
}
