//! Prediction files and the view that each belongs to.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use vec_types::ViewId;

use crate::args::Files;

/// Longest file that is read; the scorer's own limit is lower and named by it.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Where the views of a sandbox are.
const VIEWS_DIR: &str = "/views";

/// Overrides [`VIEWS_DIR`].
const VIEWS_VARIABLE: &str = "VEC_VIEWS_DIR";

/// Why there is nothing to upload.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FilesError {
    #[error("cannot read prediction file {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("prediction file {0} is not a regular file")]
    NotRegular(PathBuf),
    #[error("prediction file {0} is longer than {FILE_BYTES_MAX} bytes")]
    TooLong(PathBuf),
    #[error("cannot list the views in {dir}: {source}")]
    Views { dir: PathBuf, source: io::Error },
    #[error("{dir} holds {count} views; say which with --view VIEW=PATH")]
    NotOne { dir: PathBuf, count: usize },
}

/// Reads all files.
pub(crate) fn load(files: &Files) -> Result<Vec<(ViewId, Vec<u8>)>, FilesError> {
    match files {
        Files::ByView(files) => files
            .iter()
            .map(|(view, path)| Ok((view.clone(), read(path)?)))
            .collect(),
        Files::Only(path) => {
            let bytes = read(path)?;
            let dir = std::env::var_os(VIEWS_VARIABLE).unwrap_or_else(|| VIEWS_DIR.into());
            Ok(vec![(only_view(Path::new(&dir))?, bytes)])
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, FilesError> {
    let failed = |source| FilesError::Read {
        path: path.to_owned(),
        source,
    };
    let too_long = || FilesError::TooLong(path.to_owned());
    // Without O_NONBLOCK, opening a FIFO waits for a writer for ever; regular files ignore it.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() {
        return Err(FilesError::NotRegular(path.to_owned()));
    }
    // Refused by its length; what grows is cut while reading.
    if meta.len() > FILE_BYTES_MAX {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    let mut bounded = file.take(FILE_BYTES_MAX + 1);
    bounded.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(too_long());
    }
    Ok(bytes)
}

fn only_view(dir: &Path) -> Result<ViewId, FilesError> {
    let failed = |source| FilesError::Views {
        dir: dir.to_owned(),
        source,
    };
    let mut views = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        views.extend(name.to_str().and_then(|name| name.parse::<ViewId>().ok()));
    }
    match (views.pop(), views.len()) {
        (Some(view), 0) => Ok(view),
        (view, others) => {
            let count = others + usize::from(view.is_some());
            Err(FilesError::NotOne {
                dir: dir.to_owned(),
                count,
            })
        }
    }
}
