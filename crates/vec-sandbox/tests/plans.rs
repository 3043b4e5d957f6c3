//! Golden plans of both profiles, and the table of refused ones.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::PathBuf;

use std::collections::BTreeMap;

use vec_sandbox::{
    EngineerInputs, ExecInputs, HostLayout, LISTENERS_MAX, Limits, OutputCaps, PythonBinds, RoBind,
    SandboxPlan, SymlinkEntry, TimeLimits, TmpfsSize, ViewBind, WorkKind, WorkerInputs,
    candidate_env,
};

fn host() -> HostLayout {
    let link = |name: &str| SymlinkEntry {
        path: PathBuf::from(format!("/{name}")),
        target: PathBuf::from(format!("usr/{name}")),
    };
    HostLayout {
        binds: vec![RoBind {
            source: "/usr".into(),
            dest: "/usr".into(),
        }],
        symlinks: ["bin", "lib", "lib64", "sbin"].map(link).to_vec(),
        libraries: ["/usr/lib", "/usr/lib64"]
            .map(|path| RoBind {
                source: path.into(),
                dest: path.into(),
            })
            .to_vec(),
    }
}

fn views() -> Vec<ViewBind> {
    vec![ViewBind {
        id: "main".parse().unwrap(),
        source: "/runs/r1/views/main".into(),
    }]
}

const TIME: TimeLimits = TimeLimits {
    deadline_ms: 6000,
    grace_ms: 2000,
};

fn exec() -> SandboxPlan {
    let inputs = ExecInputs {
        solution: "/runs/r1/work/s".into(),
        views: views(),
        out: WorkKind::Memory {
            size: TmpfsSize {
                bytes: 64 << 20,
                inodes: 1024,
            },
            fill: None,
        },
        python: PythonBinds {
            env: Some("/data/envs/e1".into()),
            prefix: Some("/opt/python3.12".into()),
        },
        argv: vec!["/env/bin/python3".to_owned(), "/solution/run.py".to_owned()],
        env: candidate_env(2, true, Some("Haswell")),
        limits: Limits::of_memory(1 << 30, 16 << 20, 2),
        time: TIME,
        output: OutputCaps::standard(),
    };
    SandboxPlan::exec(&inputs, &host()).unwrap()
}

#[test]
fn exec_plan() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&exec()).unwrap());
}

#[test]
fn engineer_plan() {
    let inputs = EngineerInputs {
        work: WorkKind::Memory {
            size: TmpfsSize {
                bytes: 256 << 20,
                inodes: 4096,
            },
            fill: Some("/runs/r1/work/box".into()),
        },
        brief: "/runs/r1/work/brief".into(),
        views: views(),
        client_dir: "/tmp/r/c/n3".into(),
        tool: "/runs/r1/code/bin/vec-tool".into(),
        tool_names: vec!["vec-score".to_owned(), "vec-check".to_owned()],
        agent: "/runs/r1/code/bin/vec-playbook".into(),
        // Below /usr: no bind of its own.
        python: PythonBinds {
            env: None,
            prefix: Some("/usr/local/py".into()),
        },
        listeners: vec![18_080],
        argv: vec![
            "/opt/vec/agent/vec-playbook".to_owned(),
            "engineer".to_owned(),
        ],
        env: candidate_env(1, false, None),
        limits: Limits::of_memory(1 << 30, 16 << 20, 1),
        time: TIME,
        output: OutputCaps::standard(),
    };
    let plan = SandboxPlan::engineer(&inputs, &host()).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&plan).unwrap());
}

#[test]
fn worker_plan() {
    let inputs = WorkerInputs {
        program: "/runs/r1/code/bin/vec-score-parse".into(),
        inputs: vec![(
            "pred.csv".to_owned(),
            "/runs/r1/nodes/3/seed0/main/pred.csv".into(),
        )],
        out: TmpfsSize {
            bytes: 32 << 20,
            inodes: 64,
        },
        args: vec!["/in/pred.csv".to_owned()],
        env: BTreeMap::new(),
        limits: Limits::of_memory(1 << 30, 16 << 20, 1),
        time: TIME,
        output: OutputCaps::standard(),
    };
    let plan = SandboxPlan::worker(&inputs, &host()).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&plan).unwrap());
}

/// Only the attack suite's own build can leave a protection out.
#[test]
fn nothing_can_be_lifted() {
    let text = serde_json::to_string(&exec()).unwrap();
    let lifted = text.replacen('{', "{\"lift\":[\"seccomp\"],", 1);
    let error = serde_json::from_str::<SandboxPlan>(&lifted).unwrap_err();
    assert!(
        error.to_string().contains("unknown field `lift`"),
        "{error}"
    );
}

#[test]
fn a_plan_survives_its_json_and_unknown_fields_do_not() {
    let plan = exec();
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<SandboxPlan>(&text).unwrap(), plan);
    let surprising = text.replacen('{', "{\"extra\":1,", 1);
    assert!(serde_json::from_str::<SandboxPlan>(&surprising).is_err());
}

type Change = fn(&mut SandboxPlan);

#[test]
fn each_impossible_plan_is_refused_by_name() {
    let cases: [(&str, Change); 30] = [
        ("schema", |p| p.schema = 1),
        ("tmp.bytes", |p| p.tmp.bytes = 0),
        ("shm.inodes", |p| p.shm.inodes = 1 << 40),
        ("limits.processes", |p| p.limits.processes = 3),
        ("limits.open_files", |p| p.limits.open_files = 15),
        ("limits.data_bytes", |p| p.limits.data_bytes = Some(1)),
        ("limits.address_space_bytes", |p| {
            p.limits.address_space_bytes = Some(0);
        }),
        ("limits.file_bytes", |p| p.limits.file_bytes = 0),
        ("limits.cpu_s", |p| p.limits.cpu_s = Some(0)),
        ("time.deadline_ms", |p| p.time.deadline_ms = 0),
        ("time.grace_ms", |p| p.time.grace_ms = 300_001),
        ("output.stdout_bytes", |p| p.output.stdout_bytes = 1 << 40),
        ("output.kill_bytes", |p| p.output.kill_bytes = 0),
        ("outer.uid", |p| p.outer.uid = 0),
        ("outer.gid", |p| p.outer.gid = 65_533),
        ("ro_binds count", |p| {
            p.ro_binds = vec![p.ro_binds[0].clone(); 65];
        }),
        ("ro_binds.source", |p| p.ro_binds[0].source = "usr".into()),
        ("ro_binds.dest", |p| p.ro_binds[0].dest = "/a/../b".into()),
        ("work.kind", |p| {
            p.work.kind = WorkKind::Host {
                source: "/a//b".into(),
            };
        }),
        ("work.kind.memory.size.bytes", |p| {
            p.work.kind = WorkKind::Memory {
                size: TmpfsSize {
                    bytes: 1,
                    inodes: 16,
                },
                fill: None,
            };
        }),
        ("work.kind.memory.size.inodes", |p| {
            p.work.kind = WorkKind::Memory {
                size: TmpfsSize {
                    bytes: 4096,
                    inodes: 1,
                },
                fill: None,
            };
        }),
        ("listeners count", |p| {
            p.listeners = vec![2000; LISTENERS_MAX + 1];
        }),
        ("listeners", |p| p.listeners = vec![80]),
        ("work.dest", |p| p.work.dest = "/".into()),
        ("cwd", |p| p.cwd = "out".into()),
        ("argv[0]", |p| p.argv = Vec::new()),
        ("argv[0]", |p| p.argv[0] = "python3".to_owned()),
        ("variable name", |p| {
            p.env.insert("A=B".to_owned(), String::new());
        }),
        ("NUL", |p| p.argv.push("a\0b".to_owned())),
        ("host name", |p| p.hostname = "a b".to_owned()),
    ];
    for (part, change) in cases {
        let mut plan = exec();
        change(&mut plan);
        let error = plan.check().unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn nothing_may_cover_or_lie_below_another_entry() {
    for dest in [
        "/usr",
        "/usr/local",
        "/tmp/x",
        "/dev/shm",
        "/proc",
        "/out/x",
        "/bin/x",
        "/etc/passwd",
    ] {
        let mut plan = exec();
        plan.ro_binds.push(RoBind {
            source: "/data".into(),
            dest: dest.into(),
        });
        let error = plan.check().unwrap_err().to_string();
        assert!(error.contains("collides"), "{dest}: {error}");
    }
    let mut plan = exec();
    plan.ro_binds.push(RoBind {
        source: "/data".into(),
        dest: "/etc/extra".into(),
    });
    plan.check().unwrap();
}
