//! Deterministic ZIP archives: entries sorted by name, one fixed time and mode, streamed, and
//! bounded while they are written.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;

use vec_types::RelPath;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::PackageError;

const CHUNK: usize = 256 * 1024;

/// Entries from here on need 64-bit sizes.
const LARGE_FILE: u64 = u32::MAX as u64;

/// Writes `entries` (paths below `dir`, sorted) to `target`, which may have `bytes_max` bytes.
pub(crate) fn write<'a>(
    target: &Path,
    dir: &Path,
    entries: impl IntoIterator<Item = &'a RelPath>,
    bytes_max: u64,
) -> Result<(), PackageError> {
    let file = File::create_new(target).map_err(PackageError::io("create", target))?;
    let mut zip = ZipWriter::new(file);
    let failed = |entry: &str| {
        let (path, entry) = (target.to_owned(), entry.to_owned());
        move |source| PackageError::Zip {
            path,
            entry,
            source,
        }
    };
    let mut chunk = vec![0; CHUNK];
    for entry in entries {
        let name = entry.as_str();
        let source = entry.under(dir);
        let mut from = File::open(&source).map_err(PackageError::io("open", &source))?;
        let size = from
            .metadata()
            .map_err(PackageError::io("stat", &source))?
            .len();
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(0o644)
            .large_file(size >= LARGE_FILE);
        zip.start_file(name, options).map_err(failed(name))?;
        loop {
            let got = from
                .read(&mut chunk)
                .map_err(PackageError::io("read", &source))?;
            if got == 0 {
                break;
            }
            zip.write_all(&chunk[..got])
                .map_err(|error| failed(name)(error.into()))?;
            too_big(target, bytes_max)?;
        }
    }
    let file = zip.finish().map_err(failed("the directory"))?;
    file.sync_all().map_err(PackageError::io("sync", target))?;
    too_big(target, bytes_max)
}

// A runaway archive is stopped early; the end of `package` checks the final sizes.
fn too_big(target: &Path, bytes_max: u64) -> Result<(), PackageError> {
    let size = match target.metadata() {
        Ok(meta) => meta.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(PackageError::io("stat", target)(error)),
    };
    if size <= bytes_max {
        return Ok(());
    }
    let name = target.file_name().unwrap_or_default();
    Err(PackageError::TooBig {
        name: name.to_string_lossy().into_owned(),
        limit: bytes_max,
    })
}
