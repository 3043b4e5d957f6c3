//! Stages and endings. A [`Stage`] variant carries what exists in that stage, so nothing can be
//! read too early. An [`Ending`] says whose fault an end is by its type: [`CandidateFault`] counts
//! against the parent, [`InfraFault`] never does.

use vec_types::{CandidateFault, InfraFault, NodeStatus, Plan, ScoreReport, UnixMs};

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
        plan: Plan,
    },
    Engineer {
        plan: Plan,
    },
    Execute {
        build: Build,
    },
    Score {
        build: Build,
        report: ExecReport,
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
pub(crate) struct Build {
    pub origin: Origin,
    pub commit: CommitInfo,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Origin {
    SeedProgram,
    Engineered(Box<Engineered>),
    /// From an earlier run; its plan and session stay there.
    Past,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Engineered {
    pub plan: Plan,
    pub session: SessionReport,
}

/// How the pipeline ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ending {
    Scored {
        build: Build,
        exec: ExecReport,
        score: ScoreReport,
    },
    NoProgram {
        fault: GenFault,
        detail: String,
        kept: Kept,
    },
    Faulty {
        fault: CandidateFault,
        detail: String,
        build: Build,
        exec: ExecReport,
    },
    Shelved {
        fault: InfraFault,
        detail: String,
        kept: Kept,
    },
    /// An import without a score of its own in this run: a failure, history, or carried-over work.
    Past { status: NodeStatus, kept: Kept },
}

/// Candidate-side failures before anything ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GenFault {
    Failed,
    SameAsParent,
}

/// What exists of a node that ended early.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Kept {
    pub plan: Option<Plan>,
    pub session: Option<SessionReport>,
    pub commit: Option<CommitInfo>,
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
    pub detail: String,
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
            Self::Import | Self::Plan => Kept::default(),
            Self::Comply { plan } | Self::Engineer { plan } => Kept {
                plan: Some(plan),
                ..Kept::default()
            },
            Self::Execute { build } | Self::Score { build, .. } | Self::Waiting { build, .. } => {
                build.kept()
            }
            Self::Analyze { ending } | Self::Ending { ending } | Self::Settled { ending, .. } => {
                match ending {
                    Ending::Scored { build, .. } | Ending::Faulty { build, .. } => build.kept(),
                    Ending::NoProgram { kept, .. }
                    | Ending::Shelved { kept, .. }
                    | Ending::Past { kept, .. } => kept,
                }
            }
        }
    }
}

impl Build {
    pub(crate) fn kept(self) -> Kept {
        let (plan, session) = match self.origin {
            Origin::SeedProgram | Origin::Past => (None, None),
            Origin::Engineered(made) => (Some(made.plan), Some(made.session)),
        };
        Kept {
            plan,
            session,
            commit: Some(self.commit),
        }
    }

    pub(crate) fn plan(&self) -> Option<&Plan> {
        match &self.origin {
            Origin::SeedProgram | Origin::Past => None,
            Origin::Engineered(made) => Some(&made.plan),
        }
    }

    pub(crate) fn session(&self) -> Option<&SessionReport> {
        match &self.origin {
            Origin::SeedProgram | Origin::Past => None,
            Origin::Engineered(made) => Some(&made.session),
        }
    }
}

impl Ending {
    pub(crate) fn status(&self) -> NodeStatus {
        match self {
            Self::Scored { .. } => NodeStatus::Scored,
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
            Self::Scored { .. } | Self::Past { .. } => "",
            Self::NoProgram { detail, .. }
            | Self::Faulty { detail, .. }
            | Self::Shelved { detail, .. } => detail,
        }
    }

    pub(crate) fn build(&self) -> Option<&Build> {
        match self {
            Self::Scored { build, .. } | Self::Faulty { build, .. } => Some(build),
            Self::NoProgram { .. } | Self::Shelved { .. } | Self::Past { .. } => None,
        }
    }

    pub(crate) fn kept(&self) -> Option<&Kept> {
        match self {
            Self::NoProgram { kept, .. } | Self::Shelved { kept, .. } | Self::Past { kept, .. } => {
                Some(kept)
            }
            Self::Scored { .. } | Self::Faulty { .. } => None,
        }
    }
}
