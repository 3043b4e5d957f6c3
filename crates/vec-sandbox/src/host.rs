//! What the host's root looks like: which of `/bin /lib /lib64 /sbin` are links into `/usr`, which
//! are directories, and which small parts of `/etc` programs need.
//!
//! Invariants: reads only the names in the root directory; never the content of a file.

use std::path::{Path, PathBuf};

use crate::plan::{RoBind, SymlinkEntry};

/// Directories of a usual root that hold programs and libraries.
const ROOT_NAMES: [&str; 6] = ["bin", "lib", "lib32", "lib64", "libx32", "sbin"];
/// Directories of `/usr` that hold libraries.
const LIBRARY_NAMES: [&str; 4] = ["lib", "lib32", "lib64", "libx32"];
/// Parts of `/etc` that are no secrets and that programs in `/usr` point into.
const ETC_NAMES: [&str; 2] = ["alternatives", "ld.so.cache"];

/// The system part of every plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostLayout {
    /// `/usr` and what is a real directory beside it.
    pub binds: Vec<RoBind>,
    /// What is a link on the host.
    pub symlinks: Vec<SymlinkEntry>,
    /// The parts of `/usr` that hold the loader and shared libraries: all that a worker needs.
    pub libraries: Vec<RoBind>,
}

impl HostLayout {
    /// Looks at this host.
    ///
    /// # Errors
    /// `/usr` is missing or a listed name cannot be read; the message names the path.
    pub fn detect() -> std::io::Result<Self> {
        Self::detect_in(Path::new("/"))
    }

    fn detect_in(root: &Path) -> std::io::Result<Self> {
        let named = |path: &Path, error: std::io::Error| {
            std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        };
        let usr = root.join("usr");
        let mut layout = Self {
            binds: vec![RoBind {
                source: usr.canonicalize().map_err(|e| named(&usr, e))?,
                dest: PathBuf::from("/usr"),
            }],
            symlinks: Vec::new(),
            libraries: Vec::new(),
        };
        for name in LIBRARY_NAMES {
            let path = usr.join(name);
            // A link leads to a library directory that is listed too.
            if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                layout.libraries.push(RoBind {
                    source: path.canonicalize().map_err(|e| named(&path, e))?,
                    dest: Path::new("/usr").join(name),
                });
            }
        }
        for name in ROOT_NAMES {
            let path = root.join(name);
            let Ok(meta) = path.symlink_metadata() else {
                continue;
            };
            let inside = Path::new("/").join(name);
            if meta.is_symlink() {
                layout.symlinks.push(SymlinkEntry {
                    path: inside,
                    target: path.read_link().map_err(|e| named(&path, e))?,
                });
            } else if meta.is_dir() {
                layout.binds.push(RoBind {
                    source: path,
                    dest: inside,
                });
            }
        }
        for name in ETC_NAMES {
            let path = root.join("etc").join(name);
            let Ok(source) = path.canonicalize() else {
                continue;
            };
            layout.binds.push(RoBind {
                source,
                dest: Path::new("/etc").join(name),
            });
        }
        Ok(layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_links_and_directories_become_binds() {
        let root = tempfile::tempdir().unwrap();
        for dir in ["usr/bin", "lib", "etc/alternatives"] {
            std::fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        std::os::unix::fs::symlink("usr/bin", root.path().join("bin")).unwrap();
        let layout = HostLayout::detect_in(root.path()).unwrap();
        let dests: Vec<_> = layout
            .binds
            .iter()
            .map(|b| b.dest.to_str().unwrap())
            .collect();
        assert_eq!(dests, ["/usr", "/lib", "/etc/alternatives"]);
        assert_eq!(layout.symlinks.len(), 1);
        assert_eq!(layout.symlinks[0].path, Path::new("/bin"));
        assert_eq!(layout.symlinks[0].target, Path::new("usr/bin"));
    }

    #[test]
    fn a_root_without_usr_is_an_error_naming_it() {
        let root = tempfile::tempdir().unwrap();
        let error = HostLayout::detect_in(root.path()).unwrap_err().to_string();
        assert!(error.contains("usr"), "{error}");
    }
}
