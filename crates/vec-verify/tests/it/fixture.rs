//! A small, whole, closed run: a real fold with made-up effects, written by the real store.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use vec_config::{Lock, load_board, load_config};
use vec_programs::{ProgramFile, ProgramFiles, Programs};
use vec_search::{
    CommitInfo, Effect, EngineerEnd, Event, ExecReport, ExecResult, MethodState, Outcome,
    PlanResult, Policy, ReviewVerdict, RunState, ScoreResult, SessionReport,
};
use vec_store::{Batch, NewFile, RunLayout, Store, StoredEvent, rel};
use vec_types::{
    Digest, ExecName, NodeId, Part, Plan, RelPath, RunId, Score, ScoreReport, TreeId, UnixMs,
    ViewId, canonical_json,
};

use crate::lock::lock;

pub(crate) const T0: UnixMs = UnixMs(1_800_000_000_000);

pub(crate) fn run_id() -> RunId {
    "20270115-080000-diabetes-abcd".parse().expect("run id")
}

pub(crate) fn path(text: &str) -> RelPath {
    text.parse().expect("relative path")
}

fn repo_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../configs")
        .join(name)
}

/// A run whose effects are made up. Everything else is real.
pub(crate) struct Made {
    pub(crate) store: Store,
    pub(crate) layout: RunLayout,
    pub(crate) state: RunState,
    pub(crate) programs: Programs,
    pub(crate) policy: Policy,
    now: UnixMs,
}

impl Made {
    /// Launches: code, inputs, views, lock, programs.git.
    pub(crate) async fn launch(root: &Path, max_nodes: u32) -> Self {
        let mut store = Store::create(root, &run_id(), T0).await.expect("creates");
        let layout = store.layout().clone();
        let write = |name: &str, text: &str| {
            let target = layout.run_dir().join(name);
            fs::create_dir_all(target.parent().expect("parent")).expect("mkdir");
            fs::write(target, text).expect("write");
        };
        write("code/bin/vec-controller", "a program");
        write("code/source.tar", "sources");
        write("code/prompts/researcher.md", "You are the researcher.");
        write("code/seeds/diabetes/ols/run.py", "print(1)");
        write("inputs/board.yaml", "board: diabetes");
        let limits = json!({
            "limits": {"memory_gb": 1.0, "time_limit_s": 6, "threads": 1, "output_max_mb": 16}
        });
        write("views/main/manifest.json", &limits.to_string());
        write("views/main/train.csv", "id,age,progression\n0,1,2\n");
        write("views/main/test.csv", "id,age\n1,2\n");
        write("config_source.yaml", "mode: search\n");
        write("run_meta.json", "{}");
        let registered = [
            "code",
            "inputs",
            "views",
            "config_source.yaml",
            "run_meta.json",
        ]
        .map(path);
        store
            .register_existing(T0, &registered)
            .await
            .expect("registers");
        let sets = [
            format!("budget.max_nodes={max_nodes}"),
            "concurrency.nodes=1".to_owned(),
        ];
        let config = load_config(&repo_file("runs/diabetes_demo.yaml"), &sets).expect("config");
        let board = load_board(&repo_file("boards/diabetes.yaml")).expect("board");
        let lock = lock(&layout, config, board);
        let bytes = canonical_json(&lock).expect("encodes");
        let file = NewFile::create(rel::config_lock(), bytes);
        let files = vec![file];
        let events = Vec::new();
        let batch = Batch {
            at: T0,
            files,
            events,
        };
        store.commit(batch).await.expect("commits");
        fs::write(layout.log("scorer"), "{\"n\":0}\n").expect("log");
        Self {
            policy: policy(&lock),
            programs: Programs::init(&layout.programs()).expect("init"),
            state: RunState::new(),
            layout,
            store,
            now: T0,
        }
    }

    /// Runs to the end of the fold. Each effect takes 100 ms, one after the other.
    pub(crate) async fn run_to_stop(&mut self) {
        let start = Event::RunStart {
            run: run_id(),
            policy: Box::new(self.policy.clone()),
        };
        self.turn(Vec::new(), Some(start)).await;
        let mut turns = 0;
        while self.state.outcome().is_none() {
            turns += 1;
            assert!(turns < 2_000, "the run does not end");
            match self.state.wanted().into_iter().next() {
                Some(effect) => {
                    self.now = self.now.plus_ms(100);
                    let (files, end) = self.answer(&effect);
                    let fact = Event::EffectEnded { effect, end };
                    self.turn(files, Some(fact)).await;
                }
                None => {
                    let next = self.state.next_deadline(self.now).expect("a deadline");
                    self.now = next;
                    self.turn(Vec::new(), None).await;
                }
            }
            if turns % 20 == 0 {
                self.log(&format!("{{\"n\":{turns}}}\n"));
                self.store.mark_logs(self.now).await.expect("marks");
                self.store.mark_archive(self.now).await.expect("marks");
            }
        }
    }

    pub(crate) async fn close(self) -> RunLayout {
        let outcome = self.state.outcome().expect("stopped").clone();
        let manifest = json!({"stop_reason": outcome.reason, "winner": outcome.winner});
        self.store.close(self.now, &manifest).await.expect("closes");
        self.layout
    }

    pub(crate) fn log(&self, line: &str) {
        use std::io::Write as _;
        let log = fs::OpenOptions::new()
            .append(true)
            .open(self.layout.log("scorer"));
        log.and_then(|mut log| log.write_all(line.as_bytes()))
            .expect("log");
    }

    /// A fact with its files, then every decision, each batch in one transaction.
    pub(crate) async fn turn(&mut self, files: Vec<NewFile>, fact: Option<Event>) {
        if let Some(fact) = fact {
            self.persist(files, vec![fact]).await;
        }
        loop {
            let batch = self.state.decide(self.now);
            if batch.is_empty() {
                return;
            }
            self.persist(Vec::new(), batch).await;
        }
    }

    pub(crate) async fn persist(
        &mut self,
        files: Vec<NewFile>,
        events: Vec<Event>,
    ) -> Vec<StoredEvent> {
        for event in &events {
            self.state.apply(self.now, event).expect("fits");
        }
        let batch = Batch {
            at: self.now,
            files,
            events,
        };
        self.store.commit(batch).await.expect("commits")
    }

    pub(crate) fn answer(&self, effect: &Effect) -> (Vec<NewFile>, Outcome) {
        let node = effect.node();
        let role = |role: &str| {
            let dir = rel::trajectory(node, role, 0).expect("path");
            let file = rel::join(&dir, "reply.json").expect("path");
            NewFile::create(file, format!("{{\"role\":\"{role}\"}}"))
        };
        match effect {
            Effect::ImportSeed { program, .. } => {
                let commit = self.commit(node, &format!("print('{program}')"));
                (Vec::new(), Outcome::Imported { commit })
            }
            Effect::Plan { .. } => {
                let plan = plan(node);
                let bytes = canonical_json(&plan).expect("encodes");
                let files = vec![NewFile::create(rel::plan(node), bytes), role("researcher")];
                let result = PlanResult::Valid { plan, attempts: 1 };
                (files, Outcome::Planned { result })
            }
            Effect::Comply { .. } => {
                let (removed, emptied) = (0, false);
                (Vec::new(), Outcome::Complied { removed, emptied })
            }
            Effect::Engineer { .. } => {
                let commit = self.commit(node, &format!("print({node})"));
                let session = session(commit);
                (vec![role("engineer")], Outcome::Engineered { session })
            }
            Effect::Execute { exec, .. } => self.execute(node, *exec),
            Effect::Score { .. } => (Vec::new(), scored(node)),
            Effect::Analyze { .. } => {
                let file = NewFile::create(rel::analysis(node), "{}");
                let (written, family) = (true, None);
                (vec![file], Outcome::Analyzed { written, family })
            }
            Effect::Review { .. } => {
                let verdict = ReviewVerdict::Pass;
                (vec![role("reviewer")], Outcome::Reviewed { verdict })
            }
            Effect::Place { provisional, .. } => {
                let prediction = prediction(node, ExecName::Final);
                let text = format!("# Selection\nnode {node}, provisional: {provisional}\n");
                let files = vec![
                    NewFile::replace(path("final/diabetes.csv"), prediction.as_bytes()),
                    NewFile::replace(rel::selection(), text),
                ];
                let sha256 = Some(Digest::of(prediction.as_bytes()));
                (files, Outcome::Placed { sha256 })
            }
        }
    }

    fn execute(&self, node: NodeId, exec: ExecName) -> (Vec<NewFile>, Outcome) {
        let mut views: Vec<ViewId> = vec!["main".parse().expect("view")];
        if exec == ExecName::Final {
            views = vec![self.policy.final_view.clone()];
        }
        let dir = rel::exec_dir(node, exec);
        let text = prediction(node, exec);
        let in_dir = |name: &str| rel::join(&dir, name).expect("path");
        let mut files = vec![
            NewFile::create(in_dir("stdout"), ""),
            NewFile::create(in_dir("report.json"), "{}"),
        ];
        for view in &views {
            let name = in_dir(&format!("{view}/pred.csv"));
            files.push(NewFile::create(name, text.as_bytes()));
        }
        let digest = Digest::of(text.as_bytes());
        let report = ExecReport {
            result: ExecResult::Done {
                digests: views.iter().map(|view| (view.clone(), digest)).collect(),
            },
            wall_ms: views.into_iter().map(|view| (view, 90)).collect(),
            max_rss_kib: Some(9_000),
            harness_ms: 3,
        };
        (files, Outcome::Executed { report })
    }

    fn commit(&self, node: NodeId, text: &str) -> CommitInfo {
        let file = |text: &str| ProgramFile {
            bytes: text.as_bytes().to_vec(),
            executable: false,
        };
        let files = ProgramFiles::from([
            (path("run.py"), file(text)),
            (path("METHOD.md"), file("A method.\n")),
        ]);
        let parent: Option<TreeId> = None;
        let message = format!("node {node}");
        let made = self
            .programs
            .commit_files(node, &files, parent.as_ref(), &message, self.now)
            .expect("commits");
        CommitInfo {
            commit: made.commit,
            tree: made.tree,
            runtime_key: made.runtime_key,
        }
    }
}

pub(crate) fn policy(lock: &Lock) -> Policy {
    vec_config::policy(lock)
}

fn prediction(node: NodeId, exec: ExecName) -> String {
    format!("id,prediction\n1,{node}.{}\n", exec.to_string().len())
}

pub(crate) fn plan(node: NodeId) -> Plan {
    Plan {
        name: format!("idea {node}"),
        motivation: "it may help".to_owned(),
        approach: "do it".to_owned(),
        expected_groups: Vec::new(),
        risks: Vec::new(),
        family_id: None,
        mechanism: None,
        ablate: None,
    }
}

pub(crate) fn session(commit: CommitInfo) -> SessionReport {
    SessionReport {
        end: EngineerEnd::Finished,
        method: MethodState::Written {
            first_line: "A method.".to_owned(),
        },
        has_run_py: true,
        commit: Some(commit),
        queries_used: Some(1),
        wall_ms: 80,
    }
}

fn scored(node: NodeId) -> Outcome {
    let report = score_report(50.0 + f64::from(node.0));
    Outcome::Scored {
        result: ScoreResult::Done { report },
    }
}

pub(crate) fn score_report(total: f64) -> ScoreReport {
    let total = Score::new(total).expect("finite");
    let ruler: vec_types::RulerId = "main".parse().expect("ruler");
    ScoreReport {
        total,
        components: [(ruler.clone(), total)].into(),
        parts: vec![Part {
            ruler,
            metric: "rmse".to_owned(),
            raw: 55.5,
            skill: 0.5,
            points: total.get(),
        }]
        .into(),
    }
}

/// A closed run below `root`.
pub(crate) async fn closed_run(root: &Path, max_nodes: u32) -> RunLayout {
    let mut made = Made::launch(root, max_nodes).await;
    made.run_to_stop().await;
    made.close().await
}
