//! The candidates' Python: a venv from a hashed local wheel, without network.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use vec_board::{EnvError, PythonEnv, build_env, open_env, stdlib_env, verify_env};

// A wheel with a module and a script, so that pip writes a script that names its place.
const MAKE_WHEEL: &str = "
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    wheel.writestr('tiny.py', 'NUMBERS = {1, 2, 3}\\ndef answer():\\n    return 42\\n')
    wheel.writestr('tiny-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n')
    wheel.writestr('tiny-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('tiny-1.0.dist-info/entry_points.txt', '[console_scripts]\\ntiny = tiny:answer\\n')
    wheel.writestr('tiny-1.0.dist-info/RECORD', 'tiny.py,,\\ntiny-1.0.dist-info/METADATA,,\\ntiny-1.0.dist-info/WHEEL,,\\ntiny-1.0.dist-info/entry_points.txt,,\\ntiny-1.0.dist-info/RECORD,,\\n')
";

struct Fixture {
    dir: tempfile::TempDir,
    lock: PathBuf,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().expect("temporary directory");
    let wheel = dir.path().join("tiny-1.0-py3-none-any.whl");
    let made = Command::new(python())
        .args(["-c", MAKE_WHEEL])
        .arg(&wheel)
        .status();
    assert!(made.expect("python").success());
    let sha256 = vec_types::Digest::of(&std::fs::read(&wheel).expect("read"));
    let lock = dir.path().join("small.lock");
    write_lock(dir.path(), &lock, &sha256.to_string());
    Fixture { dir, lock }
}

fn write_lock(links: &Path, lock: &Path, sha256: &str) {
    let links = links.display();
    let text = format!("--no-index\n--find-links {links}\ntiny==1.0 --hash=sha256:{sha256}\n");
    std::fs::write(lock, text).expect("write");
}

fn python() -> PathBuf {
    stdlib_env(None).expect("a Python").argv0
}

fn venv(env: &PythonEnv) -> PathBuf {
    env.dir.as_ref().expect("directory").join("venv")
}

#[test]
fn the_standard_library_needs_no_venv() {
    let env = stdlib_env(None).expect("a Python");
    assert_eq!(env.facts.id, "stdlib");
    assert_eq!(env.argv0, env.facts.argv0);
    assert!(env.argv0.is_absolute() && env.dir.is_none());
    let below_usr = env.argv0.starts_with("/usr");
    assert_eq!(env.ro_binds.is_empty(), below_usr, "{env:?}");
}

#[test]
fn one_lock_gives_one_environment_everywhere() {
    let fixture = fixture();
    let root = |name: &str| fixture.dir.path().join(name);
    let not_built = open_env(&fixture.lock, &root("a"), None).expect_err("none yet");
    assert!(
        not_built.to_string().contains("vecctl env build"),
        "{not_built}"
    );
    let first = build_env(&fixture.lock, &root("a"), None).expect("build");
    let second = build_env(&fixture.lock, &root("deeper/b"), None).expect("build");
    assert_eq!(first.facts, second.facts);
    assert_eq!(
        build_env(&fixture.lock, &root("a"), None).expect("again"),
        first
    );
    assert_eq!(
        open_env(&fixture.lock, &root("a"), None).expect("open"),
        first
    );
    let dir = first.dir.clone().expect("directory");
    assert_eq!(
        Some(verify_env(&dir).expect("verify")),
        first.facts.manifest_hash
    );

    assert_eq!(first.argv0, Path::new("/env/bin/python3"));
    assert_eq!(first.ro_binds[0], (venv(&first), PathBuf::from("/env")));
    let answer = Command::new(venv(&first).join("bin/python3"))
        .args([
            "-I",
            "-c",
            "import tiny; print(tiny.answer(), tiny.__cached__)",
        ])
        .output()
        .expect("python");
    let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
    assert!(
        answer.starts_with("42 ") && answer.trim_end().ends_with(".pyc"),
        "{answer}"
    );
    let writable = walk(&venv(&first)).into_iter().find(|path| {
        let meta = path.symlink_metadata().expect("metadata");
        !meta.is_symlink() && meta.permissions().mode() & 0o222 != 0
    });
    assert_eq!(writable, None);
}

#[test]
fn an_environment_of_another_python_is_found() {
    let fixture = fixture();
    // The same Python under another sha256: a copy of the interpreter beside its library would do,
    // but any other Python on this machine is the real case.
    let system = stdlib_env(None).expect("a Python");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let other = std::env::split_paths(&path)
        .map(|dir| dir.join("python3"))
        .filter(|python| python.exists())
        .find(|python| {
            stdlib_env(Some(python))
                .is_ok_and(|env| env.facts.interpreter_sha256 != system.facts.interpreter_sha256)
        });
    let Some(other) = other else {
        println!("SKIPPED: only one Python 3.11 or newer on PATH");
        return;
    };
    let root = fixture.dir.path().join("root");
    let built = build_env(&fixture.lock, &root, Some(&other)).expect("build");
    assert_eq!(open_env(&fixture.lock, &root, None).expect("open"), built);
    let strict = open_env(&fixture.lock, &root, Some(&system.argv0));
    assert!(matches!(strict, Err(EnvError::NotBuilt { .. })));
}

#[test]
fn a_changed_file_is_found() {
    let fixture = fixture();
    let env = build_env(&fixture.lock, fixture.dir.path(), None).expect("build");
    let dir = env.dir.clone().expect("directory");
    let module = walk(&venv(&env))
        .into_iter()
        .find(|path| path.ends_with("tiny.py"))
        .expect("module");
    let text = std::fs::read_to_string(&module).expect("read");
    let times = std::fs::metadata(&module)
        .expect("metadata")
        .modified()
        .expect("time");
    let put = |text: &str, modified| {
        std::fs::set_permissions(&module, std::fs::Permissions::from_mode(0o644)).expect("chmod");
        std::fs::write(&module, text).expect("write");
        let file = std::fs::File::options()
            .write(true)
            .open(&module)
            .expect("open");
        file.set_modified(modified).expect("set time");
        std::fs::set_permissions(&module, std::fs::Permissions::from_mode(0o444)).expect("chmod");
    };
    let open = || open_env(&fixture.lock, fixture.dir.path(), None);
    // Same size and time: only the full check can see it.
    put(&text.replace("42", "43"), times);
    open().expect("sizes and times are the same");
    let error = verify_env(&dir).expect_err("other bytes").to_string();
    assert!(
        error.contains("tiny.py is not as it was built (other bytes)"),
        "{error}"
    );
    put(&text.replace("42", "420"), times);
    assert!(matches!(
        open(),
        Err(EnvError::Changed {
            what: "other size",
            ..
        })
    ));
    put(&text, times + std::time::Duration::from_secs(5));
    assert!(matches!(
        open(),
        Err(EnvError::Changed {
            what: "other time",
            ..
        })
    ));
    put(&text, times);
    open().expect("as built");
    let extra = module.with_file_name("extra.py");
    let site = module.parent().expect("parent");
    std::fs::set_permissions(site, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    std::fs::write(&extra, "").expect("write");
    assert!(matches!(
        open(),
        Err(EnvError::Changed {
            what: "a new file",
            ..
        })
    ));
    std::fs::remove_file(&extra).expect("remove");
    std::fs::remove_file(&module).expect("remove");
    assert!(matches!(
        open(),
        Err(EnvError::Changed { what: "gone", .. })
    ));
}

#[test]
fn a_wrong_hash_leaves_nothing_behind() {
    let fixture = fixture();
    write_lock(fixture.dir.path(), &fixture.lock, &"0".repeat(64));
    let root = fixture.dir.path().join("root");
    let error = build_env(&fixture.lock, &root, None)
        .expect_err("wrong hash")
        .to_string();
    assert!(error.starts_with("install the requirements: "), "{error}");
    assert_eq!(
        std::fs::read_dir(root.join("envs")).expect("list").count(),
        0
    );
}

#[test]
fn a_python_that_is_not_there_is_named() {
    let error = stdlib_env(Some(Path::new("/nonexistent/python3"))).expect_err("none");
    assert!(
        error
            .to_string()
            .contains("/nonexistent/python3 does not exist"),
        "{error}"
    );
}

fn walk(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    let mut next = 0;
    while next < found.len() {
        let path = found[next].clone();
        next += 1;
        if path.symlink_metadata().expect("metadata").is_dir() {
            let entries = std::fs::read_dir(&path).expect("list");
            found.extend(entries.map(|entry| entry.expect("entry").path()));
        }
    }
    found
}
