//! Reasons against submission (LCK-04): pure, complete, never switched off.

use std::collections::BTreeSet;

use vec_config::{Config, IsolationLevel, Reason, Supervisor};
use vec_types::RunId;

/// What the reasons are judged from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockFacts {
    /// The working tree differed from the commit that was built.
    pub dirty: bool,
    /// Names of scripted endpoints in use.
    pub scripted: BTreeSet<String>,
    /// Names of endpoints on the loopback interface in use.
    pub loopback: BTreeSet<String>,
    /// Who owns process trees.
    pub supervisor: Supervisor,
    /// What the sandbox isolates on this machine.
    pub isolation: BTreeSet<IsolationLevel>,
    /// Tainted runs that this one builds on.
    pub tainted_ancestors: BTreeSet<RunId>,
    /// Faults are injected.
    pub fault_injection: bool,
}

impl LockFacts {
    /// Facts of a run that is about to be locked.
    #[must_use]
    pub fn of(
        config: &Config,
        dirty: bool,
        supervisor: Supervisor,
        isolation: &BTreeSet<IsolationLevel>,
        tainted_ancestors: &BTreeSet<RunId>,
    ) -> Self {
        let models = &config.models;
        let used: Vec<_> = models
            .endpoints
            .iter()
            .filter(|(name, endpoint)| {
                let serves_role = models
                    .roles
                    .values()
                    .flatten()
                    .any(|model| endpoint.models.contains(model));
                serves_role || **name == models.engineer.endpoint
            })
            .collect();
        Self {
            dirty,
            scripted: used
                .iter()
                .filter(|(_, endpoint)| endpoint.kind.is_scripted())
                .map(|(name, _)| (*name).clone())
                .collect(),
            loopback: used
                .iter()
                .filter(|(_, endpoint)| endpoint.kind.is_loopback())
                .map(|(name, _)| (*name).clone())
                .collect(),
            supervisor,
            isolation: isolation.clone(),
            tainted_ancestors: tainted_ancestors.clone(),
            fault_injection: !config.fault.kill_controller.is_empty(),
        }
    }
}

/// Every reason against submission, in a fixed order; empty = submittable.
#[must_use]
pub fn reasons(facts: &LockFacts) -> Vec<Reason> {
    let LockFacts {
        dirty,
        scripted,
        loopback,
        supervisor,
        isolation,
        tainted_ancestors,
        fault_injection,
    } = facts;
    let missing: Vec<IsolationLevel> = IsolationLevel::ALL
        .into_iter()
        .filter(|level| !isolation.contains(level))
        .collect();
    let names = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
    let judged = [
        (*dirty, Reason::DirtyTree),
        (
            !scripted.is_empty(),
            Reason::ScriptedPlaybook {
                endpoints: names(scripted),
            },
        ),
        (
            !loopback.is_empty(),
            Reason::LoopbackModel {
                endpoints: names(loopback),
            },
        ),
        (*supervisor == Supervisor::Plain, Reason::PlainSupervisor),
        (
            !missing.is_empty(),
            Reason::MissingIsolation { levels: missing },
        ),
        (
            !tainted_ancestors.is_empty(),
            Reason::TaintedAncestor {
                runs: tainted_ancestors.iter().cloned().collect(),
            },
        ),
        (*fault_injection, Reason::FaultInjection),
    ];
    judged
        .into_iter()
        .filter_map(|(holds, reason)| holds.then_some(reason))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean() -> LockFacts {
        LockFacts {
            dirty: false,
            scripted: BTreeSet::new(),
            loopback: BTreeSet::new(),
            supervisor: Supervisor::Systemd,
            isolation: IsolationLevel::ALL.into_iter().collect(),
            tainted_ancestors: BTreeSet::new(),
            fault_injection: false,
        }
    }

    type Change = fn(&mut LockFacts);

    #[test]
    fn each_reason_stands_alone_and_a_clean_run_has_none() {
        assert_eq!(reasons(&clean()), []);
        let run: RunId = "20261130-101010-diabetes-abcd".parse().expect("run");
        let name = || BTreeSet::from(["p".to_owned()]);
        let endpoints = || vec!["p".to_owned()];
        let table: [(Change, Reason); 4] = [
            (|f| f.dirty = true, Reason::DirtyTree),
            (
                |f| f.supervisor = Supervisor::Plain,
                Reason::PlainSupervisor,
            ),
            (
                |f| {
                    f.isolation.remove(&IsolationLevel::Net);
                    f.isolation.remove(&IsolationLevel::Seccomp);
                },
                Reason::MissingIsolation {
                    levels: vec![IsolationLevel::Net, IsolationLevel::Seccomp],
                },
            ),
            (|f| f.fault_injection = true, Reason::FaultInjection),
        ];
        for (change, reason) in table {
            let mut facts = clean();
            change(&mut facts);
            assert_eq!(reasons(&facts), [reason]);
        }
        let scripted = LockFacts {
            scripted: name(),
            ..clean()
        };
        let expected = Reason::ScriptedPlaybook {
            endpoints: endpoints(),
        };
        assert_eq!(reasons(&scripted), [expected]);
        let loopback = LockFacts {
            loopback: name(),
            ..clean()
        };
        let expected = Reason::LoopbackModel {
            endpoints: endpoints(),
        };
        assert_eq!(reasons(&loopback), [expected]);
        let tainted = LockFacts {
            tainted_ancestors: BTreeSet::from([run.clone()]),
            ..clean()
        };
        assert_eq!(
            reasons(&tainted),
            [Reason::TaintedAncestor { runs: vec![run] }]
        );
    }

    #[test]
    fn reasons_come_together_and_say_why() {
        let facts = LockFacts {
            dirty: true,
            scripted: BTreeSet::from(["playbook".to_owned()]),
            supervisor: Supervisor::Plain,
            ..clean()
        };
        let texts: Vec<String> = reasons(&facts).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "built from a dirty working tree",
                "scripted playbook instead of a model: playbook",
                "supervisor `plain` sets no limits",
            ]
        );
    }
}
