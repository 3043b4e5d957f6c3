//! Decisions about where groups may be made, on made-up trees; groups themselves need the kernel
//! (`tests/cgroup.rs`).

use super::*;

fn own(unified: Option<&Path>, memory: Option<&Path>, pids: Option<&Path>) -> layout::Own {
    let owned = |path: Option<&Path>| path.map(Path::to_owned);
    layout::Own {
        unified: owned(unified),
        memory: owned(memory),
        pids: owned(pids),
    }
}

fn tree(controllers: &str, open: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("cgroup.controllers"), controllers).unwrap();
    std::fs::write(dir.path().join("cgroup.subtree_control"), open).unwrap();
    std::fs::write(dir.path().join("cgroup.procs"), "").unwrap();
    dir
}

#[test]
fn version_2_needs_both_controllers() {
    let good = tree("cpuset cpu io memory hugetlb pids\n", "");
    let base = good.path();
    let found = bases(own(Some(base), None, None)).unwrap();
    assert_eq!(found, Bases::Unified(base.to_owned()));
    for lacking in ["hugetlb\n", "memory\n", "pids io\n", ""] {
        let tree = tree(lacking, "");
        let error = bases(own(Some(tree.path()), None, None)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("version 2 there"), "{text}");
        assert!(text.contains("version 1 memory missing"), "{text}");
        // Beside version 1 it does for kill and CPU time.
        let found = bases(own(
            Some(tree.path()),
            Some(Path::new("/m")),
            Some(Path::new("/p")),
        ));
        assert!(matches!(found, Ok(Bases::Hybrid { .. })), "{found:?}");
    }
    for (unified, memory, pids) in [
        (None, Some("/m"), Some("/p")),
        (None, Some("/m"), None),
        (None, None, None),
    ] {
        let found = bases(own(unified, memory.map(Path::new), pids.map(Path::new)));
        assert!(matches!(found, Err(NoCgroups::NotMounted { .. })));
    }
}

#[test]
fn groups_are_made_beside_the_leaf_not_in_it() {
    let tree = tree("memory pids", "memory pids");
    let leaf = tree.path().join(LEAF);
    std::fs::create_dir(&leaf).unwrap();
    std::fs::write(leaf.join("cgroup.controllers"), "memory pids").unwrap();
    let found = bases(own(Some(&leaf), None, None)).unwrap();
    assert_eq!(found, Bases::Unified(tree.path().to_owned()));
}

#[test]
fn what_systemd_has_not_handed_over_is_not_used() {
    let tree = tree("memory pids", "");
    let bases = Bases::Unified(tree.path().to_owned());
    assert!(allowed(&bases, false).is_ok(), "control: no systemd");
    let error = allowed(&bases, true).unwrap_err();
    assert!(matches!(error, NoCgroups::NotDelegated { .. }), "{error}");
    assert!(error.to_string().contains("Delegate=yes"), "{error}");
    let absent = Bases::Unified(tree.path().join("absent"));
    let error = allowed(&absent, false).unwrap_err();
    assert!(matches!(error, NoCgroups::NotOurs { .. }), "{error}");
}

#[test]
fn controllers_are_handed_on_once_and_io_only_where_it_is_offered() {
    let control = |tree: &tempfile::TempDir| {
        std::fs::read_to_string(tree.path().join("cgroup.subtree_control")).unwrap()
    };
    let all = tree("cpu io memory pids", "");
    open_up(all.path()).unwrap();
    assert_eq!(control(&all), "+memory +pids +io");
    let few = tree("memory pids", "memory");
    open_up(few.path()).unwrap();
    assert_eq!(control(&few), "+pids");
    let open = tree("memory pids", "memory pids");
    open_up(open.path()).unwrap();
    assert_eq!(control(&open), "memory pids", "not written again");
    assert!(!open.path().join(LEAF).exists());
}

#[test]
fn processes_of_an_inner_group_go_to_the_leaf_first() {
    let tree = tree("memory pids", "");
    let base = tree.path();
    std::fs::write(base.join("cgroup.type"), "domain\n").unwrap();
    std::fs::write(base.join("cgroup.procs"), "7\n").unwrap();
    // A made-up tree never empties: the rounds are bounded, and nothing is handed on.
    let error = open_up(base).unwrap_err();
    assert!(error.to_string().contains("move the processes"), "{error}");
    let moved = std::fs::read_to_string(base.join(LEAF).join("cgroup.procs")).unwrap();
    assert_eq!(moved, "7");
    let control = std::fs::read_to_string(base.join("cgroup.subtree_control")).unwrap();
    assert_eq!(control, "");
}
