//! Launch specs of a run's daemons, from its lock. Pure: the same lock gives the same spec at
//! every start, and a restarted launcher needs nothing but the run directory.

use std::collections::BTreeMap;
use std::path::PathBuf;

use vec_config::{EndpointKind, FaultPoint, Lock, RulerRole};
use vec_daemon::spec::{
    Common, ControllerSpec, EgressSpec, PlaybookSpec, PythonSpec, RulerSpec, ScorerSpec,
    ScoringSpec, UpstreamSpec,
};
use vec_store::RunLayout;

use crate::runtime_dir::RunRuntime;
use crate::service::Service;

const SPEC_VERSION: u32 = 1;

/// Model requests of a run per node: every role's tries and an Engineer's turns, with room.
const REQUESTS_PER_NODE_MAX: u64 = 64;

/// Longest request or reply of a model.
const MODEL_BODY_BYTES_MAX: u64 = 16 << 20;

/// Longest wait for a whole reply.
const MODEL_TOTAL_TIMEOUT_MS: u64 = 600_000;

/// Longest wait for the next bytes of a reply.
const MODEL_IDLE_TIMEOUT_MS: u64 = 120_000;

const BYTES_PER_MB: u64 = 1 << 20;

/// What specs are made from.
#[derive(Debug, Clone)]
pub(crate) struct SpecSource<'a> {
    pub(crate) lock: &'a Lock,
    pub(crate) layout: &'a RunLayout,
    pub(crate) runtime: &'a RunRuntime,
    pub(crate) python: &'a PythonSpec,
    /// Our uid: the only one that may call the daemons while uids are shared.
    pub(crate) uid: u32,
}

impl SpecSource<'_> {
    fn common(&self, start: u32) -> Common {
        Common {
            version: SPEC_VERSION,
            run: self.lock.run_id.clone(),
            start,
            peer_uids: vec![self.uid],
        }
    }

    /// For the controller's start number `start`.
    pub(crate) fn controller(&self, start: u32, reopen: bool) -> ControllerSpec {
        let faults = &self.lock.config.fault.kill_controller;
        ControllerSpec {
            common: self.common(start),
            run_dir: self.layout.run_dir().to_owned(),
            run_runtime_dir: self.runtime.path().to_owned(),
            scorer_socket: self.runtime.socket(Service::Scorer),
            gateway_socket: self.runtime.socket(Service::Egress),
            sandbox_helper: self.lock.sandbox.path.clone(),
            python: self.python.clone(),
            fault: fault_of(faults, start),
            reopen,
        }
    }

    /// For the scorer.
    pub(crate) fn scorer(&self, start: u32) -> ScorerSpec {
        let output_max_mb = self
            .lock
            .eval_spec
            .execution
            .programs
            .values()
            .map(|limits| u64::from(limits.output_max_mb))
            .max()
            .unwrap_or_default();
        ScorerSpec {
            common: self.common(start),
            scoring: scoring(self.lock),
            prediction_bytes_max: output_max_mb * BYTES_PER_MB,
            workers: self.lock.config.scoring.workers,
            clients_dir: self.runtime.clients(),
        }
    }

    /// For the model gateway.
    pub(crate) fn egress(&self, start: u32) -> EgressSpec {
        let config = &self.lock.config;
        let upstream = |kind: &EndpointKind| match kind {
            EndpointKind::Playbook { .. } => UpstreamSpec::Playbook {
                socket: self.runtime.socket(Service::Playbook),
            },
        };
        let nodes = u64::from(config.budget.max_nodes)
            + self.lock.board_definition.seed_programs.len() as u64;
        EgressSpec {
            common: self.common(start),
            models: config
                .models
                .used()
                .into_iter()
                .map(|(model, endpoint)| (model.to_owned(), upstream(&endpoint.kind)))
                .collect(),
            requests_max: nodes * REQUESTS_PER_NODE_MAX,
            body_bytes_max: MODEL_BODY_BYTES_MAX,
            total_timeout_ms: MODEL_TOTAL_TIMEOUT_MS,
            idle_timeout_ms: MODEL_IDLE_TIMEOUT_MS,
        }
    }

    /// For the scripted model, where a role uses one.
    pub(crate) fn playbook(&self, start: u32) -> Option<PlaybookSpec> {
        let playbook = playbook_in_use(self.lock)?;
        Some(PlaybookSpec {
            common: self.common(start),
            playbook: self.layout.code().join(playbook),
            search_seed: self.lock.config.search_seed.0,
        })
    }
}

/// The scoring side of a lock, for the scorer and for its self-test.
pub(crate) fn scoring(lock: &Lock) -> ScoringSpec {
    let spec = &lock.eval_spec;
    let rulers: BTreeMap<_, _> = spec
        .rulers
        .iter()
        .filter(|(_, ruler)| ruler.role == RulerRole::Objective)
        .map(|(id, ruler)| {
            let ruler = RulerSpec {
                view: ruler.view.clone(),
                weight: ruler.weight,
                metric: ruler.metric.as_str().to_owned(),
            };
            (id.clone(), ruler)
        })
        .collect();
    ScoringSpec {
        board: lock.board.clone(),
        rulers,
        truth_fraction: spec.scoring.truth_fraction,
        guard_seeds: spec.scoring.guard_seeds.clone(),
        truth_sha256: spec.truth.sha256.clone(),
        floor_prediction: spec.scoring.floor_prediction,
    }
}

// The one playbook that roles use, below `code/`; preflight refuses two.
fn playbook_in_use(lock: &Lock) -> Option<PathBuf> {
    let models = &lock.config.models;
    let used = models.used();
    let (name, _) = models.endpoints.iter().find(|(_, endpoint)| {
        endpoint.kind.is_scripted() && used.values().any(|one| one == endpoint)
    })?;
    Some(PathBuf::from(
        lock.code_snapshot.playbooks.get(name)?.as_str(),
    ))
}

fn fault_of(faults: &[FaultPoint], start: u32) -> Option<String> {
    faults.get(start as usize).map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kth_fault_is_for_the_kth_start() {
        let faults = [
            FaultPoint::Event("node_created".to_owned()),
            FaultPoint::Store("renamed".to_owned()),
        ];
        assert_eq!(fault_of(&faults, 0).as_deref(), Some("event:node_created"));
        assert_eq!(fault_of(&faults, 1).as_deref(), Some("store:renamed"));
        assert_eq!(fault_of(&faults, 2), None);
    }
}
