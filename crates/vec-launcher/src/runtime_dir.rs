//! The runtime directory R: where it is, who may own it, and the paths of everything in it
//! (architecture §2). Nothing in it outlives a reboot; nothing in it is evidence.

use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use vec_proto::{ConnectError, check_socket_path};
use vec_types::RunId;

use crate::service::Service;

/// Mode of every directory that the launcher makes here.
const DIR_MODE: u32 = 0o700;

/// Bits that let others change a directory.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Longest client name: node and ordinal, e.g. `4294967295-99`.
const CLIENT_NAME_LONGEST: &str = "4294967295-99";

/// Why a directory cannot be the runtime directory.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeDirError {
    /// It could not be made or looked at.
    #[error("make the runtime directory {}", path.display())]
    Make {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Something else stands there.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// Somebody else made it.
    #[error(
        "runtime directory {} belongs to uid {owner}, not to uid {uid}: pass another --runtime-dir",
        path.display()
    )]
    Owner {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Who we are.
        uid: u32,
    },
    /// Others may write to it.
    #[error("runtime directory {} is writable by others (mode {mode:04o}): chmod 0700 it", path.display())]
    Mode {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It is not absolute.
    #[error("runtime directory {} is not an absolute path", path.display())]
    Relative {
        /// The path.
        path: PathBuf,
    },
    /// Sockets below it would have too long a path.
    #[error("runtime directory is too long")]
    TooLong(#[source] ConnectError),
}

/// What the choice of directories depends on, beside arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// Effective uid.
    pub uid: u32,
    /// `$XDG_RUNTIME_DIR`.
    pub xdg_runtime_dir: Option<PathBuf>,
    /// `$XDG_DATA_HOME`.
    pub xdg_data_home: Option<PathBuf>,
    /// `$HOME`.
    pub home: Option<PathBuf>,
}

impl Surroundings {
    /// Reads the process's own.
    #[must_use]
    pub fn of_this_process() -> Self {
        let path = |name| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute())
        };
        Self {
            uid: rustix::process::geteuid().as_raw(),
            xdg_runtime_dir: path("XDG_RUNTIME_DIR"),
            xdg_data_home: path("XDG_DATA_HOME"),
            home: path("HOME"),
        }
    }

    /// R where no `--runtime-dir` is given.
    #[must_use]
    pub fn runtime_dir(&self) -> PathBuf {
        match (&self.xdg_runtime_dir, self.uid) {
            (Some(xdg), _) => xdg.join("vec"),
            (None, 0) => PathBuf::from("/run/vec"),
            (None, uid) => PathBuf::from(format!("/tmp/vec-{uid}")),
        }
    }

    /// D where no `--data-root` is given; `None` without a home directory.
    #[must_use]
    pub fn data_root(&self) -> Option<PathBuf> {
        let data_home = self
            .xdg_data_home
            .clone()
            .or_else(|| Some(self.home.as_ref()?.join(".local/share")))?;
        Some(data_home.join("vec"))
    }

    /// Root of the runs where no `--root` is given (DEP-01); `None` without a home directory.
    #[must_use]
    pub fn root(&self, submittable: bool) -> Option<PathBuf> {
        let kind = if submittable { "formal" } else { "test" };
        Some(self.home.as_ref()?.join("vec/runs").join(kind))
    }
}

/// A checked runtime directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeDir(PathBuf);

impl RuntimeDir {
    /// Makes `path` (0700) unless it exists, and checks that it is ours alone and short enough
    /// for every socket.
    ///
    /// # Errors
    /// [`RuntimeDirError`], naming the path and what to do.
    pub fn open(path: &Path, uid: u32) -> Result<Self, RuntimeDirError> {
        let path = path.to_owned();
        if !path.is_absolute() {
            return Err(RuntimeDirError::Relative { path });
        }
        let this = Self(path);
        check_socket_path(&this.longest_socket()).map_err(RuntimeDirError::TooLong)?;
        private_dir(&this.0, uid)?;
        private_dir(&this.launcher(), uid)?;
        private_dir(&this.runs(), uid)?;
        Ok(this)
    }

    /// For clients: no check, nothing made.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// R itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// `R/launcher`.
    #[must_use]
    pub fn launcher(&self) -> PathBuf {
        self.0.join("launcher")
    }

    /// The launcher's socket.
    #[must_use]
    pub fn launcher_socket(&self) -> PathBuf {
        self.launcher().join("s")
    }

    /// `R/r`, one directory per running run.
    #[must_use]
    pub fn runs(&self) -> PathBuf {
        self.0.join("r")
    }

    /// `R/r/<run8>`.
    #[must_use]
    pub fn run(&self, run: &RunId) -> RunRuntime {
        RunRuntime(self.runs().join(run.run8()))
    }

    /// The longest socket path that a run may need.
    #[must_use]
    pub fn longest_socket(&self) -> PathBuf {
        self.runs()
            .join("0123abcd/c")
            .join(CLIENT_NAME_LONGEST)
            .join("scorer.s")
    }
}

/// Makes a directory 0700, or checks the one that is there.
pub(crate) fn private_dir(path: &Path, uid: u32) -> Result<(), RuntimeDirError> {
    let make = |source| RuntimeDirError::Make {
        path: path.to_owned(),
        source,
    };
    match std::fs::DirBuilder::new().mode(DIR_MODE).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(make(error)),
    }
    // Not followed: in /tmp somebody else may have put a link.
    let found = std::fs::symlink_metadata(path).map_err(make)?;
    if !found.is_dir() {
        return Err(RuntimeDirError::NotADirectory {
            path: path.to_owned(),
        });
    }
    if found.uid() != uid {
        return Err(RuntimeDirError::Owner {
            path: path.to_owned(),
            owner: found.uid(),
            uid,
        });
    }
    let mode = found.permissions().mode() & 0o7777;
    if mode & WRITABLE_BY_OTHERS != 0 {
        return Err(RuntimeDirError::Mode {
            path: path.to_owned(),
            mode,
        });
    }
    Ok(())
}

/// `R/r/<run8>` of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRuntime(PathBuf);

impl RunRuntime {
    /// One found on disk.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// `R/r/<run8>/<service>`.
    #[must_use]
    pub fn service(&self, service: Service) -> PathBuf {
        self.0.join(service.as_str())
    }

    /// The service's daemon listener.
    #[must_use]
    pub fn socket(&self, service: Service) -> PathBuf {
        self.service(service).join(service.socket_name())
    }

    /// The service's pidfile.
    #[must_use]
    pub fn pidfile(&self, service: Service) -> PathBuf {
        self.service(service).join("pid")
    }

    /// Client directories.
    #[must_use]
    pub fn clients(&self) -> PathBuf {
        self.0.join("c")
    }

    /// What a restarted launcher must know about the run.
    #[must_use]
    pub fn record(&self) -> PathBuf {
        self.0.join("run.json")
    }
}

#[cfg(test)]
mod tests;
