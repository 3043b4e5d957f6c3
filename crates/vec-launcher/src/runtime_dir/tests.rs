//! Tests of `runtime_dir`.

use vec_proto::SOCKET_PATH_MAX;

use super::*;

fn surroundings(uid: u32, xdg: Option<&str>) -> Surroundings {
    Surroundings {
        uid,
        xdg_runtime_dir: xdg.map(PathBuf::from),
        xdg_data_home: None,
        home: Some("/home/ada".into()),
    }
}

fn me() -> u32 {
    Surroundings::of_this_process().uid
}

#[test]
fn the_default_follows_the_design() {
    for (uid, xdg, expected) in [
        (1000, Some("/run/user/1000"), "/run/user/1000/vec"),
        (0, Some("/run/user/0"), "/run/user/0/vec"),
        (0, None, "/run/vec"),
        (1000, None, "/tmp/vec-1000"),
    ] {
        assert_eq!(surroundings(uid, xdg).runtime_dir(), Path::new(expected));
    }
}

#[test]
fn data_and_runs_live_at_home() {
    let here = surroundings(1000, None);
    assert_eq!(here.data_root(), Some("/home/ada/.local/share/vec".into()));
    assert_eq!(here.root(false), Some("/home/ada/vec/runs/test".into()));
    assert_eq!(here.root(true), Some("/home/ada/vec/runs/formal".into()));
    let homeless = Surroundings { home: None, ..here };
    assert_eq!(homeless.data_root(), None);
    assert_eq!(homeless.root(false), None);
}

#[test]
fn it_is_made_private_and_kept() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("vec");
    let made = RuntimeDir::open(&path, me()).expect("made");
    let mode = std::fs::metadata(&path)
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o700);
    assert_eq!(RuntimeDir::open(&path, me()).expect("again"), made);
}

#[test]
fn a_directory_of_somebody_else_or_open_to_others_is_refused() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("vec");
    std::fs::create_dir(&path).expect("made");
    let error = RuntimeDir::open(&path, me() + 1).expect_err("owner");
    assert!(matches!(error, RuntimeDirError::Owner { .. }), "{error}");

    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).expect("chmod");
    let error = RuntimeDir::open(&path, me()).expect_err("mode");
    assert!(error.to_string().contains("0777"), "{error}");
}

#[test]
fn a_link_or_a_file_in_its_place_is_refused() {
    let dir = tempfile::tempdir().expect("dir");
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(dir.path(), &link).expect("link");
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("file");
    for path in [link, file] {
        let error = RuntimeDir::open(&path, me()).expect_err("refused");
        assert!(
            matches!(error, RuntimeDirError::NotADirectory { .. }),
            "{error}"
        );
    }
    let error = RuntimeDir::open(Path::new("vec"), me()).expect_err("relative");
    assert!(matches!(error, RuntimeDirError::Relative { .. }), "{error}");
}

#[test]
fn the_longest_socket_of_a_run_decides_about_the_length() {
    let dir = tempfile::tempdir().expect("dir");
    let below = "/r/0123abcd/c/4294967295-99/scorer.s".len();
    let room = SOCKET_PATH_MAX - below - dir.path().as_os_str().len() - 1;
    let fits = dir.path().join("x".repeat(room));
    assert!(RuntimeDir::open(&fits, me()).is_ok());
    let long = dir.path().join("x".repeat(room + 1));
    let error = RuntimeDir::open(&long, me()).expect_err("long");
    let text = vec_daemon::chain(&error).to_string();
    assert!(text.contains("108 bytes") && text.contains("107"), "{text}");
    assert!(!long.exists(), "nothing half-made");
}
