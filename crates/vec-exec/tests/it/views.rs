//! A view in disguise is a valid view with the same data, and nothing in it names the original.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use vec_exec::{alias, disguise};
use vec_types::ViewId;
use walkdir::WalkDir;

use crate::support::tempdir;

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("parent")).expect("mkdir");
    fs::write(path, bytes).expect("write");
    fs::set_permissions(path, fs::Permissions::from_mode(0o444)).expect("chmod");
}

/// A view with stages, modes and inputs, all of it a week old.
fn view(dir: &Path) {
    let manifest = json!({
        "schema": 1, "view": "proxy10", "mode": "proxy", "target_stage": {"name": "E9.5", "day": 9.5},
        "inputs": [
            {"name": "a", "file": "inputs/E8.5.csv", "stage": "E8.5", "rows": 2},
            {"name": "b", "file": "inputs/E7.5.csv", "stage": "E7.5", "rows": 2},
        ],
        "limits": {"memory_gb": 1, "time_limit_s": 5}
    });
    write(
        &dir.join("manifest.json"),
        &serde_json::to_vec_pretty(&manifest).expect("json"),
    );
    write(&dir.join("inputs/E8.5.csv"), b"x\n1\n2\n");
    write(&dir.join("inputs/E7.5.csv"), b"x\n3\n4\n");
    write(&dir.join("prior/graph.csv"), b"a,b\n");
    let old = SystemTime::now_for_tests() - Duration::from_secs(7 * 86_400);
    for entry in WalkDir::new(dir).contents_first(true) {
        let entry = entry.expect("walk");
        fs::File::open(entry.path())
            .and_then(|file| file.set_modified(old))
            .expect("times");
    }
}

trait TestClock {
    fn now_for_tests() -> Self;
}

impl TestClock for SystemTime {
    // The time of a file made now: the wall clock itself is not for crates to read.
    fn now_for_tests() -> Self {
        tempfile::tempfile()
            .and_then(|file| file.metadata())
            .and_then(|meta| meta.modified())
            .expect("a time")
    }
}

fn manifest(dir: &Path) -> (String, Value) {
    let text = fs::read_to_string(dir.join("manifest.json")).expect("manifest");
    let value = serde_json::from_str(&text).expect("JSON");
    (text, value)
}

#[test]
fn the_data_is_the_same_and_what_names_the_view_is_not() {
    let dir = tempdir();
    let source = dir.path().join("proxy10");
    view(&source);
    let id: ViewId = "proxy10".parse().expect("view");
    let done = disguise(&source, &id, dir.path(), "run-3").expect("disguises");
    assert_eq!(done.view, alias(&id, "run-3"));
    assert_eq!(done.changed, ["stages", "modes", "inputs"]);
    assert!(done.dir.ends_with(done.view.as_str()));
    let (text, new) = manifest(&done.dir);
    let (old_text, old) = manifest(&source);
    for told in ["proxy10", "\"proxy\"", "E8.5.csv", "\"E8.5\" ", "E7.5"] {
        assert!(!text.contains(told), "{told} in {text}");
    }
    assert_eq!(new["target_stage"], json!({"name": "E10.5", "day": 10.5}));
    assert_eq!(new["limits"], old["limits"]);
    assert_eq!(new["inputs"][0]["stage"], "E9.5");
    let first_key = |text: &str| text.split('"').nth(1).map(str::to_owned);
    assert_ne!(first_key(&text), first_key(&old_text), "another order");
    // An honest program finds every input where the manifest says, with the same bytes.
    for (was, is) in old["inputs"]
        .as_array()
        .expect("list")
        .iter()
        .zip(new["inputs"].as_array().expect("list"))
    {
        let read = |dir: &Path, item: &Value| {
            fs::read(dir.join(item["file"].as_str().expect("file"))).expect("readable")
        };
        assert_eq!(read(&source, was), read(&done.dir, is));
    }
    assert_eq!(
        fs::read(done.dir.join("prior/graph.csv")).expect("there"),
        b"a,b\n"
    );
    // Nothing is younger than in the original, modes are the same.
    let stats = |dir: &Path| {
        let mut stats: Vec<(i64, i64, u32, u64)> = WalkDir::new(dir)
            .into_iter()
            .map(|entry| {
                let meta = entry.expect("walk").metadata().expect("stat");
                let size = if meta.is_file() { 1 } else { 0 };
                (meta.mtime(), meta.mtime_nsec(), meta.mode(), size)
            })
            .collect();
        stats.sort_unstable();
        stats
    };
    assert_eq!(stats(&done.dir), stats(&source));
}

#[test]
fn a_tabular_view_gets_another_name_and_order_only() {
    let dir = tempdir();
    let source = dir.path().join("main");
    let old = json!({
        "schema": 1, "board": "diabetes", "view": "main", "task": "tabular_regression",
        "id_column": "id", "target": "progression", "features": ["age", "main"],
        "files": {"train": "train.csv", "test": "test.csv"},
        "output": {"format": "tabular_csv", "file": "pred.csv", "columns": ["id", "prediction"]},
        "limits": {"memory_gb": 1.5, "threads": 1},
    });
    write(
        &source.join("manifest.json"),
        &serde_json::to_vec_pretty(&old).expect("json"),
    );
    write(&source.join("train.csv"), b"id,age,main,progression\n");
    write(&source.join("test.csv"), b"id,age,main\n");
    let done = disguise(&source, &"main".parse().expect("view"), dir.path(), "s").expect("done");
    assert_eq!(done.changed, [""; 0]);
    let (_, mut new) = manifest(&done.dir);
    assert_eq!(new["view"], done.view.as_str());
    new["view"] = json!("main");
    assert_eq!(new, old);
    for name in ["train.csv", "test.csv"] {
        assert_eq!(
            fs::read(done.dir.join(name)).expect("new"),
            fs::read(source.join(name)).expect("old")
        );
    }
    // Another salt, another name; the same salt, the same one.
    let main: ViewId = "main".parse().expect("view");
    assert_eq!(alias(&main, "a"), alias(&main, "a"));
    assert_ne!(alias(&main, "a"), alias(&main, "b"));
}

#[test]
fn odd_views_are_refused() {
    let id: ViewId = "main".parse().expect("view");
    type Make = fn(&Path);
    let rows: [(&str, Make, &str); 4] = [
        (
            "no manifest",
            |dir| write(&dir.join("a"), b""),
            "manifest.json",
        ),
        (
            "no JSON",
            |dir| write(&dir.join("manifest.json"), b"{"),
            "EOF",
        ),
        (
            "a key twice",
            |dir| write(&dir.join("manifest.json"), br#"{"a":1,"a":2}"#),
            "twice",
        ),
        (
            "a link",
            |dir| {
                write(&dir.join("manifest.json"), b"{}");
                std::os::unix::fs::symlink("/etc/hostname", dir.join("l")).expect("link");
            },
            "regular file",
        ),
    ];
    for (name, make, said) in rows {
        let dir = tempdir();
        let source = dir.path().join("main");
        make(&source);
        let error = disguise(&source, &id, dir.path(), "s").expect_err(name);
        let error = format!("{error}");
        assert!(error.contains(said), "{name}: {error}");
    }
}
