//! What a session's program declares (CTR-03, ENG-10), before it is committed: weights that are
//! trained per view stay out of the commit (PVW-01), fixed artifacts go to the store by content.
//! A declaration that is not valid stays as it is: the execution then fails with its reason.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::path::Path;

use vec_exec::{Artifacts, FixedArtifact, WEIGHT_BYTES_MAX};
use vec_sandbox::collect;
use vec_store::{Content, NewFile, rel};

use crate::effects::EffectError;

/// Settles the declaration of `collected`, the program as it will be committed. `left` is the
/// `solution/` that the session wrote, `spool` has room for artifacts.
pub(super) fn settle(
    left: BorrowedFd<'_>,
    collected: &Path,
    spool: &Path,
) -> Result<Vec<NewFile>, EffectError> {
    let artifacts = match Artifacts::read(collected) {
        Ok(artifacts) => artifacts,
        Err(error) => {
            tracing::warn!(error = %vec_daemon::chain(&error), "a session declares its artifacts wrongly");
            return Ok(Vec::new());
        }
    };
    for path in &artifacts.per_view {
        remove(&path.under(collected))?;
    }
    let mut files = Vec::new();
    for (number, artifact) in artifacts.fixed.iter().enumerate() {
        let at = spool.join(format!("artifact-{number}"));
        if taken(left, artifact, &at)? {
            remove(&artifact.path.under(collected))?;
            files.push(NewFile::once(
                rel::artifact(artifact.sha256),
                Content::Spool(at),
            ));
        }
    }
    Ok(files)
}

// Is the declared content there? What is not may be in the store already.
fn taken(left: BorrowedFd<'_>, artifact: &FixedArtifact, at: &Path) -> Result<bool, EffectError> {
    if let Err(error) = collect::copy_file(left, &artifact.path, at, WEIGHT_BYTES_MAX) {
        tracing::info!(path = %artifact.path, error = %vec_daemon::chain(&error), "a declared artifact was not collected");
        return Ok(false);
    }
    let (_, sha256) = vec_store::hash_file(at)
        .map_err(|error| EffectError::failed("hash an artifact", &error))?;
    if sha256 != artifact.sha256 {
        remove(at)?;
    }
    Ok(sha256 == artifact.sha256)
}

fn remove(path: &Path) -> Result<(), EffectError> {
    match fs::remove_file(path) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(EffectError::io("remove", path, error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use vec_types::Digest;

    use super::*;

    #[test]
    fn weights_stay_out_of_the_commit_and_artifacts_go_to_the_store() {
        let dir = tempfile::tempdir().expect("tempdir");
        let (left, collected, spool) = (
            dir.path().join("left"),
            dir.path().join("collected"),
            dir.path().join("spool"),
        );
        let (good, wrong) = (Digest::of(b"big"), Digest::of(b"other"));
        let declared = format!(
            r#"[{{"path":"w/model.json","per_view":true}},{{"path":"w/big.npz","sha256":"{good}"}},
                {{"path":"w/wrong.npz","sha256":"{wrong}"}},{{"path":"w/gone.npz","sha256":"{wrong}"}}]"#
        );
        for root in [&left, &collected] {
            fs::create_dir_all(root.join("w")).expect("mkdir");
            for (name, text) in [
                ("ARTIFACTS.json", declared.as_str()),
                ("w/model.json", "trained in the session"),
                ("w/big.npz", "big"),
                ("w/wrong.npz", "big"),
            ] {
                fs::write(root.join(name), text).expect("write");
            }
        }
        fs::create_dir(&spool).expect("mkdir");
        let opened = fs::File::open(&left).expect("open");
        let files = settle(opened.as_fd(), &collected, &spool).expect("settles");
        let paths: Vec<_> = files.iter().map(|file| file.path().clone()).collect();
        assert_eq!(paths, [rel::artifact(good)]);
        for (name, stays) in [
            ("w/model.json", false),
            ("w/big.npz", false),
            ("w/wrong.npz", true),
            ("ARTIFACTS.json", true),
        ] {
            assert_eq!(collected.join(name).exists(), stays, "{name}");
        }
        fs::write(collected.join("ARTIFACTS.json"), "{").expect("write");
        assert!(
            settle(opened.as_fd(), &collected, &spool)
                .expect("left alone")
                .is_empty()
        );
    }
}
