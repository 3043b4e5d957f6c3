//! What effects may use: the lock, the run's paths, the other daemons, the sandbox. Read-only
//! after start; nothing here is state of the run.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tonic::transport::Channel;
use vec_clock::Clock;
use vec_compliance::Rules;
use vec_config::{Board, Limits, Lock, Role, Supervisor as LockedSupervisor};
use vec_daemon::spec::{ControllerSpec, PythonSpec};
use vec_exec::{Weights, environment_digest};
use vec_llm::ChatClient;
use vec_programs::Programs;
use vec_roles::{BoardBrief, FamilyBrief, RoleTexts, RulerBrief, ViewBrief};
use vec_sandbox::{HostLayout, Runner};
use vec_scope::{Cgroups, Supervisor};
use vec_search::RunState;
use vec_store::RunLayout;
use vec_types::{Digest, Operator, ViewId};

use crate::error::ControllerError;
use crate::supervised;

/// Where the playbooks stand inside the Engineer sandbox.
pub(crate) const PLAYBOOKS_INSIDE: &str = "/opt/vec/agent/playbooks";

/// Everything that effects share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) layout: RunLayout,
    pub(crate) lock: Lock,
    pub(crate) manifests: BTreeMap<ViewId, Value>,
    pub(crate) texts: RoleTexts,
    pub(crate) rules: Rules,
    pub(crate) programs: Programs,
    pub(crate) chat: ChatClient,
    pub(crate) scorer: Channel,
    pub(crate) runner: Runner,
    pub(crate) host: HostLayout,
    pub(crate) python: PythonSpec,
    pub(crate) clients_dir: PathBuf,
    pub(crate) term_grace: Duration,
    /// Who keeps the trees of executions and sessions together.
    pub(crate) supervisor: Supervisor,
    /// Where it notes the groups that live.
    pub(crate) records: PathBuf,
    /// Weights trained per view.
    pub(crate) weights: Weights,
    /// Digest of what programs run in, for the keys of weights.
    pub(crate) environment: Digest,
}

impl Context {
    /// Reads the lock, the prompts and the view manifests of the run's own snapshot.
    ///
    /// # Errors
    /// [`ControllerError`] naming the file that is missing or wrong.
    pub(crate) fn load(
        spec: &ControllerSpec,
        layout: RunLayout,
        clock: Arc<dyn Clock>,
        weights: Weights,
    ) -> Result<Self, ControllerError> {
        let lock = Lock::read(&layout.config_lock()).map_err(|error| ControllerError::Invalid {
            path: layout.config_lock(),
            what: vec_daemon::chain(&error).to_string(),
        })?;
        let prompts = layout.code().join("prompts");
        let texts = RoleTexts::load(|file| std::fs::read_to_string(prompts.join(file))).map_err(
            |error| ControllerError::Invalid {
                path: prompts.clone(),
                what: vec_daemon::chain(&error).to_string(),
            },
        )?;
        let manifests = read_manifests(&layout, &lock.board_definition)?;
        let rules =
            Rules::for_board(&lock.board, &lock.board_definition.data.target).map_err(|error| {
                ControllerError::Invalid {
                    path: layout.config_lock(),
                    what: vec_daemon::chain(&error).to_string(),
                }
            })?;
        let programs = open_programs(&layout)?;
        let scorer = vec_proto::connect_lazy(&spec.scorer_socket).map_err(|error| {
            ControllerError::Invalid {
                path: spec.scorer_socket.clone(),
                what: vec_daemon::chain(&error).to_string(),
            }
        })?;
        let host = HostLayout::detect().map_err(|source| ControllerError::Read {
            path: PathBuf::from("/"),
            source,
        })?;
        let environment = environment_digest(&lock.eval_spec.environment).map_err(|error| {
            ControllerError::Invalid {
                path: layout.config_lock(),
                what: vec_daemon::chain(&error).to_string(),
            }
        })?;
        Ok(Self {
            clock,
            supervisor: supervisor(&lock)?,
            records: records(&spec.run_runtime_dir)?,
            weights,
            environment,
            rules,
            programs,
            chat: ChatClient::new(spec.gateway_socket.clone(), spec.common.run.clone()),
            runner: Runner::new(spec.sandbox_helper.clone()),
            python: spec.python.clone(),
            clients_dir: spec.run_runtime_dir.join("c"),
            term_grace: Duration::from_secs(u64::from(lock.config.execution.term_grace_s)),
            layout,
            manifests,
            texts,
            scorer,
            host,
            lock,
        })
    }

    /// The board definition.
    pub(crate) const fn board(&self) -> &Board {
        &self.lock.board_definition
    }

    /// Limits of one execution on a view, as locked.
    pub(crate) fn limits(&self, view: &ViewId) -> Limits {
        let locked = self.lock.eval_spec.execution.programs.get(view);
        locked
            .cloned()
            .unwrap_or_else(|| self.board().limits.clone())
    }

    /// Models of a role, first choice first.
    pub(crate) fn chain(&self, role: Role) -> Vec<String> {
        self.lock
            .config
            .models
            .roles
            .get(&role)
            .cloned()
            .unwrap_or_default()
    }

    /// Objective views with their host directories.
    pub(crate) fn objective_views(&self) -> Vec<ViewId> {
        let board = self.board();
        let mut views: Vec<ViewId> = board
            .objective()
            .keys()
            .filter_map(|ruler| board.rulers.get(ruler))
            .map(|ruler| ruler.view.clone())
            .collect();
        views.sort();
        views.dedup();
        views
    }

    /// The board as the roles see it.
    pub(crate) fn board_brief(&self, state: &RunState) -> BoardBrief {
        let board = self.board();
        let drafts = |family: &vec_types::FamilyId| {
            let of_family = state
                .nodes()
                .filter(|node| node.operator == Operator::Draft && node.family == Some(family));
            u32::try_from(of_family.count()).unwrap_or(u32::MAX)
        };
        BoardBrief {
            board: board.board.clone(),
            title: board.title.clone(),
            task: board.task.as_str().to_owned(),
            preamble: board.preamble.clone(),
            families: board
                .families
                .iter()
                .map(|family| FamilyBrief {
                    id: family.id.clone(),
                    category: family.category.clone(),
                    title: family.title.clone(),
                    text: family.text.clone(),
                    drafts: drafts(&family.id),
                })
                .collect(),
            rulers: board
                .objective()
                .into_iter()
                .filter_map(|(ruler, weight)| {
                    let definition = board.rulers.get(&ruler)?;
                    Some(RulerBrief {
                        ruler,
                        view: definition.view.clone(),
                        weight,
                        metric: definition.metric.as_str().to_owned(),
                    })
                })
                .collect(),
            views: self
                .objective_views()
                .into_iter()
                .filter_map(|view| {
                    let manifest = self.manifests.get(&view)?.clone();
                    Some(ViewBrief { view, manifest })
                })
                .collect(),
        }
    }

    /// The scripted Engineer's playbook inside its sandbox.
    pub(crate) fn playbook_inside(&self) -> Option<String> {
        let endpoint = &self.lock.config.models.engineer.endpoint;
        let path = self.lock.code_snapshot.playbooks.get(endpoint)?;
        let name = Path::new(path.as_str()).file_name()?.to_str()?;
        Some(format!("{PLAYBOOKS_INSIDE}/{name}"))
    }
}

// Made beside and renamed into place, so that a crash leaves no half repository.
fn open_programs(layout: &RunLayout) -> Result<Programs, ControllerError> {
    let path = layout.programs();
    let invalid = |error: vec_programs::ProgramsError| ControllerError::Invalid {
        path: path.clone(),
        what: vec_daemon::chain(&error).to_string(),
    };
    if !path.join("HEAD").exists() {
        let fresh = layout.spool().join("programs.git");
        Programs::init(&fresh).map_err(invalid)?;
        let renamed = std::fs::rename(&fresh, &path);
        renamed.map_err(|source| ControllerError::Read {
            path: path.clone(),
            source,
        })?;
    }
    Programs::open(&path).map_err(invalid)
}

fn read_manifests(
    layout: &RunLayout,
    board: &Board,
) -> Result<BTreeMap<ViewId, Value>, ControllerError> {
    let mut manifests = BTreeMap::new();
    for view in board.views.keys() {
        let path = layout.view(view).join("manifest.json");
        let bytes = std::fs::read(&path).map_err(|source| ControllerError::Read {
            path: path.clone(),
            source,
        })?;
        let manifest =
            serde_json::from_slice(&bytes).map_err(|error| ControllerError::Invalid {
                path,
                what: error.to_string(),
            })?;
        manifests.insert(view.clone(), manifest);
    }
    Ok(manifests)
}

/// The supervisor that was locked, or none: never a weaker one.
fn supervisor(lock: &Lock) -> Result<Supervisor, ControllerError> {
    match lock.supervisor {
        LockedSupervisor::Plain => Ok(Supervisor::Plain),
        LockedSupervisor::Cgroup => {
            let groups = Cgroups::detect();
            groups
                .map(Supervisor::Cgroup)
                .map_err(|error| ControllerError::Supervisor(vec_daemon::chain(&error).to_string()))
        }
        LockedSupervisor::Systemd => {
            let what = "this version has no supervisor `systemd`";
            Err(ControllerError::Supervisor(what.to_owned()))
        }
    }
}

/// Makes the directory of records, for this user alone.
fn records(run_runtime_dir: &Path) -> Result<PathBuf, ControllerError> {
    let path = supervised::records(run_runtime_dir);
    let made = DirBuilder::new().mode(0o700).recursive(true).create(&path);
    made.map_err(|source| ControllerError::Write {
        path: path.clone(),
        source,
    })?;
    Ok(path)
}
