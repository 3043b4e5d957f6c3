//! In which manner an execution is made: everything that its name decides (O-EXE-1).

use vec_exec::ablate_name;
use vec_types::{ExecName, NodeId};

use crate::context::Context;
use crate::portrait;

/// How the program is called and what it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manner {
    /// Arguments beyond the usual ones (EXE-07).
    pub(crate) extra_args: Vec<String>,
    /// Train, replay nothing, register nothing (PVW-10).
    pub(crate) fresh: bool,
    /// Show views in disguise (VCK-01).
    pub(crate) disguised: bool,
}

impl Manner {
    /// That of an execution of a node.
    pub(crate) fn of(context: &Context, node: NodeId, exec: ExecName) -> Self {
        let name = || {
            portrait::plan(context, node).map_or_else(
                || vec_exec::DEFAULT_MECHANISM.to_owned(),
                |plan| ablate_name(&plan),
            )
        };
        Self::named(exec, name)
    }

    fn named(exec: ExecName, mechanism: impl FnOnce() -> String) -> Self {
        let usual = Self {
            extra_args: Vec::new(),
            fresh: false,
            disguised: false,
        };
        match exec {
            ExecName::Seed(_) | ExecName::Again { .. } | ExecName::Fresh(_) | ExecName::Final => {
                usual
            }
            ExecName::Ablate => Self {
                extra_args: vec!["--ablate".to_owned(), mechanism()],
                ..usual
            },
            ExecName::ViewCheck { .. } => Self {
                fresh: true,
                disguised: true,
                ..usual
            },
            ExecName::ViewCheckConfirm { .. } | ExecName::Repro => Self {
                fresh: true,
                ..usual
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use vec_types::ProgramSeed;

    use super::*;

    #[test]
    fn names_decide_arguments_weights_and_disguise() {
        let seed = ProgramSeed(3);
        let again = ExecName::Again {
            seed,
            generation: 1,
        };
        for (exec, args, fresh, disguised) in [
            (ExecName::Seed(seed), 0, false, false),
            (again, 0, false, false),
            // A fresh seed of the guard: its name is about the seed, not about weights (PVW-07).
            (ExecName::Fresh(seed), 0, false, false),
            (ExecName::Final, 0, false, false),
            (ExecName::Ablate, 2, false, false),
            (ExecName::ViewCheck { attempt: 1 }, 0, true, true),
            (ExecName::ViewCheckConfirm { attempt: 0 }, 0, true, false),
            (ExecName::Repro, 0, true, false),
        ] {
            let manner = Manner::named(exec, || "bags".to_owned());
            assert_eq!(manner.extra_args.len(), args, "{exec}");
            assert_eq!(
                (manner.fresh, manner.disguised),
                (fresh, disguised),
                "{exec}"
            );
        }
    }
}
