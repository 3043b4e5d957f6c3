//! A full disk: a typed error, nothing acknowledged is damaged, and the run can be opened again.
//! Needs to mount a small tmpfs, so only root runs it; everybody else is told.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use vec_store::{Batch, NewFile, Store, StoreError};

use crate::support::{assert_covered, at, file, node_events, rel, run_id};

struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

fn mount(dir: &Path, size: &str) -> bool {
    Command::new("mount")
        .args(["-t", "tmpfs", "-o", size, "vec-test"])
        .arg(dir)
        .output()
        .is_ok_and(|output| output.status.success())
}

#[tokio::test]
async fn a_full_disk_loses_nothing_acknowledged() {
    let dir = TempDir::new().expect("tempdir");
    if !mount(dir.path(), "size=1m") {
        eprintln!("SKIPPED a_full_disk_loses_nothing_acknowledged: cannot mount a tmpfs here");
        return;
    }
    let _mounted = Mounted(dir.path());
    let mut store = Store::create(dir.path(), &run_id(), at(0))
        .await
        .expect("creates");
    let layout = store.layout().clone();
    let mut acknowledged = Vec::new();
    let error = loop {
        let n = acknowledged.len() as u32;
        assert!(n < 1_000, "1 MB is never full");
        let batch = Batch {
            at: at(n.into()),
            files: vec![NewFile::create(
                rel(&format!("nodes/{n}/file")),
                vec![b'x'; 30_000],
            )],
            events: node_events(n),
        };
        match store.commit(batch).await {
            Ok(stored) => acknowledged.extend(stored),
            Err(error) => break error,
        }
    };
    assert!(error.is_no_space(), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(&*dir.path().to_string_lossy()), "{text}");
    let refused = store.commit(Batch {
        at: at(0),
        files: vec![file("a", "")],
        events: Vec::new(),
    });
    assert!(matches!(refused.await, Err(StoreError::Broken(_))));
    drop(store);
    let remount = Command::new("mount")
        .args(["-o", "remount,size=4m"])
        .arg(dir.path())
        .status();
    assert!(remount.expect("mount").success());
    let (mut store, _) = Store::open(layout.run_dir(), at(1)).await.expect("opens");
    let events = store.events().await.expect("events");
    assert_eq!(events[..acknowledged.len()], acknowledged);
    assert_covered(&layout);
    store.release().await.expect("releases");
}
