//! Fault injection for crash tests: named in the lock, a reason against submission, off without
//! it. The process kills itself with SIGKILL, so nothing is flushed or cleaned up.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use serde_json::Value;

use vec_store::StoredEvent;

/// When to die.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Fault {
    /// Never.
    #[default]
    None,
    /// After the first stored event of this kind, if none was stored before this start.
    Event(String),
    /// After the first stored event of every kind, one death per start.
    EachEvent,
    /// At the named write step of the store, the first time it is reached in this start.
    Store(String),
    /// At the named step of a training, or of the store's batch that registers its weights.
    Weights(String),
}

/// Why a fault text is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("fault {0:?} is not event:<kind>, event:each, store:<step> or weights:<step>")]
pub(crate) struct FaultError(String);

impl Fault {
    /// Parses the launch spec's text.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, FaultError> {
        let Some(text) = text else {
            return Ok(Self::None);
        };
        match text.split_once(':') {
            Some(("event", "each")) => Ok(Self::EachEvent),
            Some(("event", kind)) if !kind.is_empty() => Ok(Self::Event(kind.to_owned())),
            Some(("store", step)) if vec_store::STEPS.contains(&step) => {
                Ok(Self::Store(step.to_owned()))
            }
            Some(("weights", step))
                if vec_exec::STEPS.contains(&step) || vec_store::STEPS.contains(&step) =>
            {
                Ok(Self::Weights(step.to_owned()))
            }
            _ => Err(FaultError(text.to_owned())),
        }
    }

    /// Is it a step of the store at which to die? `registering`: the batch registers weights.
    pub(crate) fn is_at_store_step(&self, step: &str, registering: bool) -> bool {
        match self {
            Self::Store(wanted) => wanted == step,
            Self::Weights(wanted) => registering && wanted == step,
            Self::None | Self::Event(_) | Self::EachEvent => false,
        }
    }

    /// Is it a step of a training at which to die?
    pub(crate) fn is_at_training_step(&self, step: &str) -> bool {
        matches!(self, Self::Weights(wanted) if wanted == step)
    }
}

/// Watches stored events for the one after which to die.
#[derive(Debug, Default)]
pub(crate) struct FaultWatch {
    fault: Fault,
    seen: BTreeSet<String>,
}

impl FaultWatch {
    /// Starts with the kinds that earlier starts stored already.
    pub(crate) fn new(fault: Fault, stored: &[StoredEvent]) -> Self {
        Self {
            fault,
            seen: stored.iter().map(|event| event.kind.clone()).collect(),
        }
    }

    /// Is this stored event the one after which to die?
    pub(crate) fn is_due(&mut self, kind: &str) -> bool {
        let is_first = self.seen.insert(kind.to_owned());
        match &self.fault {
            Fault::EachEvent => is_first,
            Fault::Event(wanted) => is_first && wanted == kind,
            Fault::None | Fault::Store(_) | Fault::Weights(_) => false,
        }
    }
}

/// Notes the death beside the run directory (`<run>.faults.jsonl`; inside, everything is evidence)
/// and ends this process as SIGKILL from outside would.
pub(crate) fn die(run_dir: &Path, note: &Value) -> ! {
    let path = run_dir.with_extension("faults.jsonl");
    let written = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| writeln!(file, "{note}").and_then(|()| file.sync_all()));
    if let Err(error) = written {
        tracing::error!(path = %path.display(), %error, "the death could not be noted");
    }
    vec_daemon::kill_self()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_parse_or_are_refused() {
        assert_eq!(Fault::parse(None), Ok(Fault::None));
        assert_eq!(
            Fault::parse(Some("event:draw")),
            Ok(Fault::Event("draw".to_owned()))
        );
        assert_eq!(Fault::parse(Some("event:each")), Ok(Fault::EachEvent));
        for bad in ["", "draw", "store:nowhere", "event:", "weights:nowhere"] {
            assert!(Fault::parse(Some(bad)).is_err(), "{bad}");
        }
        for step in vec_store::STEPS {
            assert!(
                Fault::parse(Some(&format!("store:{step}"))).is_ok(),
                "{step}"
            );
        }
    }

    #[test]
    fn steps_of_a_registration_are_the_stores_only_while_it_registers() {
        let fault = Fault::parse(Some("weights:renamed")).expect("parses");
        assert!(fault.is_at_store_step("renamed", true));
        assert!(!fault.is_at_store_step("renamed", false));
        assert!(!fault.is_at_store_step("dirs_synced", true));
        for step in vec_exec::STEPS {
            let fault = Fault::parse(Some(&format!("weights:{step}"))).expect("parses");
            assert!(fault.is_at_training_step(step), "{step}");
        }
    }

    #[test]
    fn only_the_first_event_of_a_kind_is_due() {
        let mut watch = FaultWatch::new(Fault::Event("draw".to_owned()), &[]);
        assert!(!watch.is_due("select"));
        assert!(watch.is_due("draw"));
        assert!(!watch.is_due("draw"));
        let mut each = FaultWatch::new(Fault::EachEvent, &[]);
        assert!(each.is_due("draw") && each.is_due("select") && !each.is_due("draw"));
    }
}
