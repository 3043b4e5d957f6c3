//! programs.git as its users see it: idempotent commits, limits, verified reads, found damage.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use vec_programs::{
    Change, DEPTH_MAX, FILE_BYTES_MAX, FILES_MAX, ProgramFile, ProgramFiles, Programs,
    ProgramsError, TOTAL_BYTES_MAX, read_program_dir, tree_id_of_dir,
};
use vec_types::{NodeId, RelPath, TreeId, UnixMs};

const AT: UnixMs = UnixMs(1_700_000_000_123);

struct Home {
    dir: TempDir,
    programs: Programs,
}

fn home() -> Home {
    let dir = TempDir::new().expect("tempdir");
    let programs = Programs::init(&dir.path().join("programs.git")).expect("init");
    Home { dir, programs }
}

fn rel(path: &str) -> RelPath {
    path.parse().expect("path")
}

fn write(dir: &Path, path: &str, text: &str) {
    let target = dir.join(path);
    fs::create_dir_all(target.parent().expect("parent")).expect("mkdir");
    fs::write(target, text).expect("write");
}

impl Home {
    fn solution(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let dir = self.dir.path().join(name);
        fs::create_dir_all(&dir).expect("mkdir");
        for (path, text) in files {
            write(&dir, path, text);
        }
        dir
    }

    fn repo(&self) -> PathBuf {
        self.dir.path().join("programs.git")
    }
}

#[test]
fn equal_programs_have_equal_ids_everywhere_and_repeats_are_the_same_commit() {
    let (one, two) = (home(), home());
    let files = [("run.py", "print(1)"), ("lib/a.py", ""), ("METHOD.md", "m")];
    let (a, b) = (one.solution("a", &files), two.solution("b", &files));
    let first = one.programs.commit_dir(NodeId(0), &a, None, "node 0", AT);
    let first = first.expect("commits");
    let other = two.programs.commit_dir(NodeId(0), &b, None, "node 0", AT);
    assert_eq!(first, other.expect("commits"));
    assert_eq!(first.tree, tree_id_of_dir(&a).expect("hashes"));
    let later = UnixMs(AT.0 + 60_000);
    let again = one
        .programs
        .commit_dir(NodeId(0), &a, None, "node 0", later);
    assert_eq!(first, again.expect("idempotent"));
    let reopened = Programs::open(&one.repo()).expect("opens");
    assert_eq!(reopened.node(NodeId(0)).expect("reads"), Some(first));
    assert_eq!(reopened.node(NodeId(1)).expect("reads"), None);
}

#[test]
fn a_node_keeps_its_program() {
    let home = home();
    let a = home.solution("a", &[("run.py", "1")]);
    let b = home.solution("b", &[("run.py", "2")]);
    let first = home.programs.commit_dir(NodeId(3), &a, None, "m", AT);
    let first = first.expect("commits");
    let refused = home.programs.commit_dir(NodeId(3), &b, None, "m", AT);
    assert!(
        matches!(refused, Err(ProgramsError::Taken { .. })),
        "{refused:?}"
    );
    assert_eq!(home.programs.node(NodeId(3)).expect("reads"), Some(first));
}

#[test]
fn the_runtime_key_ignores_only_the_method_text_at_the_top() {
    let home = home();
    let base = [("run.py", "1"), ("METHOD.md", "x"), ("d/METHOD.md", "x")];
    let commit = |n, name, files: &[(&str, &str)]| {
        let dir = home.solution(name, files);
        home.programs
            .commit_dir(NodeId(n), &dir, None, "m", AT)
            .expect("commits")
    };
    let first = commit(0, "a", &base);
    let method = commit(1, "b", &[base[0], ("METHOD.md", "y"), base[2]]);
    let nested = commit(2, "c", &[base[0], base[1], ("d/METHOD.md", "y")]);
    assert_ne!(first.tree, method.tree);
    assert_eq!(first.runtime_key, method.runtime_key);
    assert_ne!(first.runtime_key, nested.runtime_key);
    let bare = home.solution("bare", &[base[0], base[2]]);
    assert_eq!(first.runtime_key, tree_id_of_dir(&bare).expect("hashes"));
}

#[test]
fn export_gives_back_the_program_and_diff_names_the_files() {
    let home = home();
    let a = home.solution("a", &[("run.py", "1"), ("x/y/z.txt", "z"), ("old", "")]);
    fs::set_permissions(a.join("run.py"), fs::Permissions::from_mode(0o755)).expect("chmod");
    let b = home.solution("b", &[("run.py", "1"), ("x/y/z.txt", "Z"), ("new", "")]);
    let parent = home.programs.commit_dir(NodeId(0), &a, None, "m", AT);
    let parent = parent.expect("commits");
    let child = home
        .programs
        .commit_dir(NodeId(1), &b, Some(&parent.commit), "m", AT)
        .expect("commits");
    let out = home.dir.path().join("out");
    home.programs.export(&parent.commit, &out).expect("exports");
    assert_eq!(tree_id_of_dir(&out).expect("hashes"), parent.tree);
    let again = home.programs.export(&parent.commit, &out);
    assert!(matches!(again, Err(ProgramsError::Exists(_))), "{again:?}");
    let changed = home
        .programs
        .diff_names(&parent.commit, &child.commit)
        .expect("diffs");
    let changed: Vec<_> = changed
        .iter()
        .map(|c| (c.path.as_str(), c.change))
        .collect();
    let expected = [
        ("new", Change::Added),
        ("old", Change::Removed),
        ("run.py", Change::Modified),
        ("x/y/z.txt", Change::Modified),
    ];
    assert_eq!(changed, expected);
    let read = |path| home.programs.read_file(&child.commit, &rel(path));
    assert_eq!(read("x/y/z.txt").expect("reads"), Some(b"Z".to_vec()));
    assert_eq!(read("old").expect("reads"), None);
    let nowhere: TreeId = "0".repeat(64).parse().expect("id");
    assert!(home.programs.files(&nowhere).is_err());
}

#[test]
fn what_no_program_may_hold_is_refused_by_name() {
    let home = home();
    let refuse = |dir: &Path, what: &str| {
        let error = read_program_dir(dir).expect_err(what);
        assert!(error.to_string().contains(what), "{error}");
    };
    let linked = home.solution("linked", &[]);
    symlink("/etc/passwd", linked.join("l")).expect("symlink");
    refuse(&linked, "l: is not a regular file or directory");
    let piped = home.solution("piped", &[]);
    nix::unistd::mkfifo(&piped.join("p"), nix::sys::stat::Mode::S_IRWXU).expect("fifo");
    refuse(&piped, "p: is not a regular file or directory");
    for (name, what) in [
        (".git", "belongs to git"),
        (".GIT. ", "belongs to git"),
        ("a\u{7}", "control characters"),
    ] {
        let dir = home.solution(&format!("named{}", name.len()), &[(name, "")]);
        refuse(&dir, what);
    }
    let deep = home.solution("deep", &[(&format!("{}f", "d/".repeat(DEPTH_MAX + 1)), "")]);
    refuse(&deep, "directories");
    let long = home.solution("long", &[]);
    let half = "n".repeat(250);
    write(&long, &format!("{half}/{half}/{half}"), "");
    refuse(&long, "too long a path");
}

#[test]
fn the_limits_of_size_hold_at_the_edge() {
    let home = home();
    let many = home.solution("many", &[]);
    for n in 0..FILES_MAX {
        fs::write(many.join(n.to_string()), "").expect("write");
    }
    assert_eq!(read_program_dir(&many).expect("fits").len(), FILES_MAX);
    fs::write(many.join("more"), "").expect("write");
    let error = read_program_dir(&many).expect_err("too many");
    assert!(
        error.to_string().contains("more than 2000 files"),
        "{error}"
    );
    let big = home.solution("big", &[("f", "")]);
    let sized = |name: &str, bytes| {
        let file = fs::File::create(big.join(name)).expect("create");
        file.set_len(bytes).expect("sparse");
    };
    sized("f", FILE_BYTES_MAX);
    assert!(read_program_dir(&big).is_ok());
    sized("f", FILE_BYTES_MAX + 1);
    let error = read_program_dir(&big).expect_err("too big");
    assert!(
        error.to_string().contains("more than 20000000 bytes"),
        "{error}"
    );
    for name in ["f", "g", "h"] {
        sized(name, FILE_BYTES_MAX);
    }
    sized("i", TOTAL_BYTES_MAX - 3 * FILE_BYTES_MAX);
    assert!(read_program_dir(&big).is_ok());
    sized("j", 1);
    let error = read_program_dir(&big).expect_err("too big together");
    assert!(
        error.to_string().contains("more than 64000000 bytes"),
        "{error}"
    );
}

#[test]
fn every_flipped_byte_of_an_object_and_a_moved_ref_are_found() {
    let home = home();
    let file = ProgramFile {
        bytes: b"print('hello')\n".to_vec(),
        executable: false,
    };
    let files = ProgramFiles::from([(rel("run.py"), file)]);
    let commit = |n| {
        home.programs
            .commit_files(NodeId(n), &files, None, &format!("{n}"), AT)
    };
    let first = commit(0).expect("commits");
    let second = commit(1).expect("commits");
    let report = home.programs.verify_all().expect("lists");
    assert_eq!(report.faults, []);
    assert_eq!(report.objects, 4);
    assert_eq!(report.nodes[&NodeId(1)], second);

    let hex = first.commit.to_string();
    let (dir, name) = hex.split_at(2);
    let object = home.repo().join("objects").join(dir).join(name);
    fs::set_permissions(&object, fs::Permissions::from_mode(0o644)).expect("chmod");
    let bytes = fs::read(&object).expect("object");
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        fs::write(&object, &bad).expect("tamper");
        let fresh = Programs::open(&home.repo()).expect("opens");
        let read = fresh.files(&first.commit);
        let report = fresh.verify_all().expect("lists");
        // A flip may leave what zlib unpacks as it was; then nothing is wrong with the program.
        assert_eq!(
            read.is_ok(),
            report.faults.is_empty(),
            "byte {at}: {report:?}"
        );
        if let Some(fault) = report.faults.first() {
            assert_eq!(fault.item, hex, "byte {at}");
        }
    }
    fs::write(&object, &bytes).expect("restore");
    let moved = home.repo().join("refs/nodes/1");
    fs::write(&moved, format!("{}\n", first.tree)).expect("tamper");
    let fresh = Programs::open(&home.repo()).expect("opens");
    let report = fresh.verify_all().expect("lists");
    assert_eq!(report.faults.len(), 1, "{report:?}");
    assert_eq!(report.faults[0].item, "refs/nodes/1");
}

#[test]
fn a_directory_hash_sees_bits_links_and_bytes_but_not_empty_directories() {
    let home = home();
    let dir = home.solution("code", &[("bin/x", "elf"), ("a.txt", "a"), ("a/b", "b")]);
    let hash = || tree_id_of_dir(&dir).expect("hashes");
    let mut seen = vec![hash()];
    let mut changed = |what: &str| {
        let now = tree_id_of_dir(&dir).expect("hashes");
        assert!(!seen.contains(&now), "{what}");
        seen.push(now);
    };
    fs::set_permissions(dir.join("bin/x"), fs::Permissions::from_mode(0o555)).expect("chmod");
    changed("execution bit");
    symlink("a.txt", dir.join("link")).expect("symlink");
    changed("link");
    fs::rename(dir.join("a.txt"), dir.join("c.txt")).expect("rename");
    changed("name");
    let before = hash();
    fs::create_dir(dir.join("empty")).expect("mkdir");
    assert_eq!(hash(), before);
}

#[test]
fn an_existing_place_and_another_hash_are_refused() {
    let home = home();
    let again = Programs::init(&home.repo());
    assert!(matches!(again, Err(ProgramsError::Exists(_))), "{again:?}");
    assert!(Programs::open(&home.dir.path().join("nothing")).is_err());
    let config = home.repo().join("config");
    let text = fs::read_to_string(&config).expect("config");
    fs::write(&config, text.replace("sha256", "sha1")).expect("tamper");
    assert!(Programs::open(&home.repo()).is_err());
}

/// git itself must agree; where there is no git, that is said.
#[test]
fn git_finds_nothing_wrong_with_the_repository() {
    let home = home();
    let a = home.solution(
        "a",
        &[
            ("run.py", "1"),
            ("a/b", "b"),
            ("a.c", "c"),
            ("METHOD.md", "m"),
        ],
    );
    let first = home.programs.commit_dir(NodeId(0), &a, None, "node 0", AT);
    let first = first.expect("commits");
    let b = home.solution("b", &[("run.py", "2")]);
    let second = home
        .programs
        .commit_dir(NodeId(1), &b, Some(&first.commit), "node 1", AT)
        .expect("commits");
    let git = |arguments: &[&str]| {
        std::process::Command::new("git")
            .arg("--git-dir")
            .arg(home.repo())
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
    };
    let Ok(fsck) = git(&["fsck", "--full", "--strict"]) else {
        eprintln!("SKIPPED git_finds_nothing_wrong_with_the_repository: no git here");
        return;
    };
    let said = String::from_utf8_lossy(&fsck.stderr).into_owned();
    assert!(fsck.status.success(), "{said}");
    let parsed = git(&[
        "rev-parse",
        "refs/nodes/1",
        "refs/nodes/1^",
        "refs/nodes/0^{tree}",
    ]);
    let parsed = parsed.expect("git").stdout;
    let expected = format!("{}\n{}\n{}\n", second.commit, first.commit, first.tree);
    assert_eq!(String::from_utf8_lossy(&parsed), expected);
}
