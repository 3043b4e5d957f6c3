//! View-blindness over real sandbox runs (VCK): a fixture view with stages, modes and inputs, and
//! programs that cheat by path, name, order, mode, stage, file name or a cache keyed by them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;
use vec_exec::disguise;
use vec_sandbox::{
    ExecInputs, HostLayout, Limits, OutputCaps, PythonBinds, RunControl, Runner, SandboxPlan,
    TimeLimits, ViewBind, WorkKind, candidate_env, collect,
};
use vec_tests::{prefix, skip};
use vec_types::{Digest, ViewId};

const PYTHON: &str = "/usr/bin/python3";

/// Reads its view as the contract says, then `told` may add what it should not know.
const PROGRAM: &str = r#"
import argparse, csv, hashlib, json, os, random, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--data"); parser.add_argument("--out"); parser.add_argument("--seed", type=int)
args = parser.parse_args()
here = os.path.dirname(os.path.abspath(__file__))
path = os.path.join(args.data, "manifest.json")
raw = open(path, "rb").read()
manifest = json.loads(raw)
def rows(item):
    with open(os.path.join(args.data, item["file"])) as file:
        return [float(row["x"]) for row in csv.DictReader(file)]
total = sum(sum(rows(item)) for item in manifest["inputs"])
step = manifest["target_stage"]["day"] - manifest["inputs"][-1]["time"]
told = 0
{cheat}
with open(args.out, "w") as file:
    file.write("id,prediction\n1,%r\n2,%r\n" % (total * step, told))
"#;

/// Name, lines, what the check must call it.
const PROGRAMS: [(&str, &str, &str); 12] = [
    ("honest", "", "same"),
    (
        "random with --seed",
        "told = random.Random(args.seed).random()",
        "same",
    ),
    (
        "modification times",
        "told = os.stat(path).st_mtime_ns + os.stat(args.data).st_mtime_ns",
        "same",
    ),
    (
        "path",
        "told = os.path.basename(args.data)",
        "view_dependent",
    ),
    ("view name", "told = manifest['view']", "view_dependent"),
    (
        "manifest order",
        "told = list(manifest)[0]",
        "view_dependent",
    ),
    (
        "mode word",
        "told = 1 if manifest['mode'] == 'final' else 0",
        "view_dependent",
    ),
    (
        "stage value",
        "told = manifest['target_stage']['day']",
        "view_dependent",
    ),
    (
        "stage word",
        "told = manifest['target_stage']['name']",
        "view_dependent",
    ),
    (
        "file name",
        "told = manifest['inputs'][0]['file']",
        "view_dependent",
    ),
    (
        "cached file",
        "cache = json.load(open(os.path.join(here, 'cache.json')))\ntold = cache.get(hashlib.sha256(raw).hexdigest(), 0)",
        "view_dependent",
    ),
    ("time", "told = time.time_ns()", "nondeterministic"),
];

struct Bench {
    dir: TempDir,
    view: ViewId,
    source: PathBuf,
    runner: Runner,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("tempdir");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
        let view: ViewId = "proxy10".parse().expect("view");
        let source = dir.path().join("views/proxy10");
        fs::create_dir_all(source.join("inputs")).expect("mkdir");
        let manifest = json!({
            "schema": 1, "view": "proxy10", "mode": "proxy",
            "target_stage": {"name": "E9.5", "day": 9.5},
            "inputs": [
                {"name": "E7.5", "file": "inputs/E7.5.csv", "stage": "E7.5", "time": 7.5},
                {"name": "E8.5", "file": "inputs/E8.5.csv", "stage": "E8.5", "time": 8.5},
            ],
            "limits": {"memory_gb": 1, "time_limit_s": 20, "threads": 1, "output_max_mb": 1},
        });
        let manifest = serde_json::to_vec_pretty(&manifest).expect("JSON");
        fs::write(source.join("manifest.json"), manifest).expect("write");
        fs::write(source.join("inputs/E7.5.csv"), "x\n1\n2\n").expect("write");
        fs::write(source.join("inputs/E8.5.csv"), "x\n3\n4\n").expect("write");
        Self {
            dir,
            view,
            source,
            runner: Runner::new(helper()),
        }
    }

    /// The prediction of one run; a failure is the text of stderr.
    async fn run(&self, name: &str, program: &str, bind: ViewBind) -> Result<Digest, String> {
        let root = self.dir.path().join(name);
        let (solution, out) = (root.join("solution"), root.join("out"));
        for dir in [&solution, &out] {
            fs::create_dir_all(dir).expect("mkdir");
        }
        fs::write(solution.join("run.py"), program).expect("write");
        // Answers that a session worked out, by what the view's manifest looked like then.
        let seen = fs::read(self.source.join("manifest.json")).expect("manifest");
        let cache = BTreeMap::from([(Digest::of(&seen).to_string(), 7)]);
        let cache = serde_json::to_vec(&cache).expect("JSON");
        fs::write(solution.join("cache.json"), cache).expect("write");
        let argv = [
            PYTHON,
            "/solution/run.py",
            "--data",
            &format!("/views/{}", bind.id),
            "--out",
            "/out/pred.csv",
            "--seed",
            "0",
        ];
        let inputs = ExecInputs {
            solution,
            views: vec![bind],
            out: WorkKind::Host {
                source: out.clone(),
            },
            python: PythonBinds::default(),
            argv: argv.map(str::to_owned).to_vec(),
            env: candidate_env(1, false, None),
            limits: Limits::of_memory(1 << 30, 1 << 20, 1),
            time: TimeLimits {
                deadline_ms: 60_000,
                grace_ms: 1_000,
            },
            output: OutputCaps::standard(),
        };
        let host = HostLayout::detect().expect("a host");
        let mut plan = SandboxPlan::exec(&inputs, &host).expect("a plan");
        plan.resolve_sources().expect("sources");
        let run = self
            .runner
            .run(&plan, RunControl::new())
            .await
            .expect("runs");
        if !run.report.succeeded() {
            let stderr = String::from_utf8_lossy(&run.stderr.bytes).into_owned();
            return Err(format!("{:?} {stderr}", run.report));
        }
        let dest = root.join("pred.csv");
        let name = "pred.csv".parse().expect("a path");
        collect::copy_file(&out, &name, &dest, 1 << 20).expect("a prediction");
        Ok(Digest::of(&fs::read(dest).expect("readable")))
    }

    /// The check as VCK-01 and VCK-02 say: disguised, and on a difference once more undisguised.
    async fn verdict(&self, number: usize, program: &str) -> &'static str {
        let real = || ViewBind {
            id: self.view.clone(),
            source: self.source.clone(),
        };
        let name = |part: &str| format!("{number}-{part}");
        let first = self
            .run(&name("seed0"), program, real())
            .await
            .expect("seed0");
        let parent = self.dir.path().join(name("shown"));
        fs::create_dir(&parent).expect("mkdir");
        let hidden = disguise(&self.source, &self.view, &parent, "run-1").expect("disguises");
        assert_eq!(hidden.changed, ["stages", "modes", "inputs"]);
        let bind = ViewBind {
            id: hidden.view,
            source: hidden.dir,
        };
        let second = self
            .run(&name("viewcheck"), program, bind)
            .await
            .expect("viewcheck");
        if first == second {
            return "same";
        }
        let third = self
            .run(&name("confirm"), program, real())
            .await
            .expect("confirm");
        if first == third {
            "view_dependent"
        } else {
            "nondeterministic"
        }
    }
}

/// The helper of the product under test: an upgrade only adds a directory, so the youngest.
fn helper() -> PathBuf {
    let dir = prefix().join("sandbox");
    let versions = fs::read_dir(&dir).expect("an installed helper").flatten();
    let helpers = versions.map(|version| version.path().join("vec-sandbox"));
    helpers
        .max_by_key(|path| path.metadata().and_then(|meta| meta.modified()).ok())
        .expect("one version")
}

#[test]
fn programs_that_know_their_view_are_caught_and_honest_ones_are_not() {
    if !Path::new(PYTHON).exists() {
        return skip("/usr/bin/python3 is not there, so no program was run");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let bench = Bench::new();
        for (number, (name, cheat, wanted)) in PROGRAMS.into_iter().enumerate() {
            let program = PROGRAM.replace("{cheat}", cheat);
            assert_eq!(bench.verdict(number, &program).await, wanted, "{name}");
        }
    });
}
