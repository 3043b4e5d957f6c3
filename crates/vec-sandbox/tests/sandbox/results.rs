//! Collecting what a hostile payload left in its work directory.

use vec_sandbox::collect::{CollectError, RejectReason, TreeCaps, copy_file, copy_tree};

use crate::support::both_modes;

const CAPS: TreeCaps = TreeCaps {
    files: 20,
    depth: 3,
    file_bytes: 1000,
    total_bytes: 2000,
};

both_modes! {
    async fn traps_are_listed_and_plain_files_taken(place) {
        let script = r#"
import os, socket
os.makedirs("/out/sub/deep/deeper")
open("/out/pred.csv", "w").write("id,prediction\n1,2\n")
open("/out/sub/run.sh", "w").write("x")
os.chmod("/out/sub/run.sh", 0o755)
open("/out/sub/deep/deeper/f", "w").write("x")
os.symlink("/etc/shadow", "/out/shadow")
os.symlink("/", "/out/root")
os.symlink("pred.csv", "/out/alias.csv")
os.mkfifo("/out/fifo")
socket.socket(socket.AF_UNIX).bind("/out/socket")
open("/out/new\nline", "w")
open(b"/out/\xff", "w")
open("/out/big", "w").write("x" * 1001)
os.truncate(os.open("/out/sparse", os.O_CREAT | os.O_RDWR), 8 << 20)
os.chmod("/out/sub/deep", 0o755)
"#;
        let run = place.run(&place.plan(script, &[])).await;
        let stderr = String::from_utf8_lossy(&run.stderr.bytes);
        assert!(run.report.succeeded(), "{:?} {stderr}", run.report);
        let out = place.path("out");
        let taken = copy_tree(&out, &place.path("taken"), &CAPS).unwrap();
        let files: Vec<_> = taken.files.iter().map(|f| (f.path.as_str(), f.size, f.executable)).collect();
        assert_eq!(files, [("pred.csv", 18, false), ("sub/run.sh", 1, true)]);
        let rejected: Vec<_> = taken.rejected.iter().map(|r| (r.path.as_str(), r.reason)).collect();
        assert_eq!(rejected, [
            ("alias.csv", RejectReason::Symlink),
            ("big", RejectReason::TooLarge),
            ("fifo", RejectReason::NotRegular),
            ("new?line", RejectReason::BadName),
            ("root", RejectReason::Symlink),
            ("shadow", RejectReason::Symlink),
            ("socket", RejectReason::NotRegular),
            ("sparse", RejectReason::TooLarge),
            ("sub/deep/deeper", RejectReason::TooDeep),
            ("\u{fffd}", RejectReason::BadName),
        ]);
        assert!(!place.path("taken/shadow").exists());

        let one = |rel: &str, cap| copy_file(&out, &rel.parse().unwrap(), &place.path("one"), cap);
        assert!(matches!(one("shadow", 1000), Err(CollectError::Escapes { .. })));
        assert!(matches!(one("root/etc/passwd", 1000), Err(CollectError::Escapes { .. })));
        assert!(matches!(one("fifo", 1000), Err(CollectError::NotRegular { .. })));
        assert!(matches!(one("socket", 1000), Err(CollectError::NotRegular { .. })));
        assert!(matches!(one("sub", 1000), Err(CollectError::NotRegular { .. })));
        assert!(matches!(one("absent", 1000), Err(CollectError::Missing { .. })));
        assert!(matches!(one("big", 1000), Err(CollectError::TooLarge { cap_bytes: 1000, .. })));
        assert!(!place.path("one").exists(), "an error leaves nothing");
        assert_eq!(one("big", 1001).unwrap(), 1001);
        assert!(matches!(one("big", 1001), Err(CollectError::Io { .. })), "never overwritten");
    }
}

both_modes! {
    async fn caps_of_the_whole_tree_hold(place) {
        for n in 0..30 {
            std::fs::write(place.path(format!("out/{n:02}")), [b'x'; 150]).unwrap();
        }
        let by_bytes = copy_tree(&place.path("out"), &place.path("a"), &CAPS).unwrap();
        assert_eq!(by_bytes.files.len(), 13, "2000 bytes hold 13 of 150");
        assert_eq!(by_bytes.rejected.len(), 17);
        let caps = TreeCaps { files: 5, total_bytes: 1 << 20, ..CAPS };
        let by_count = copy_tree(&place.path("out"), &place.path("b"), &caps).unwrap();
        assert_eq!(by_count.files.len(), 5);
        assert!(by_count.rejected.iter().all(|r| r.reason == RejectReason::CapReached));
    }
}
