//! The writer's lock: an flock on `<root>/.spool/<run>/lock`, outside the evidence. The kernel
//! lets go of it when the holder dies.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};

use crate::{RunLayout, StoreError};

/// Proof of being the one writer of a run; dropping it lets go.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunLock {
    /// Becomes the writer.
    ///
    /// # Errors
    /// [`StoreError::Locked`] naming the holder when there is one; I/O errors.
    pub fn acquire(layout: &RunLayout) -> Result<Self, StoreError> {
        let spool = layout.spool();
        fs::create_dir_all(&spool).map_err(StoreError::io("create", &spool))?;
        let path = layout.lock_file();
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(StoreError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = read_pid(&mut file);
                return Err(StoreError::Locked { path, holder });
            }
            Err(TryLockError::Error(source)) => {
                return Err(StoreError::io("lock", &path)(source));
            }
        }
        // The text only helps people: the lock itself is the kernel's.
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(StoreError::io("write", &path))?;
        Ok(Self { _file: file })
    }

    /// Process id of the present writer, if there is one that said so.
    #[must_use]
    pub fn holder(layout: &RunLayout) -> Option<u32> {
        let mut file = File::open(layout.lock_file()).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => read_pid(&mut file),
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }
}

/// A process id has at most this many digits.
const PID_TEXT_MAX: u64 = 16;

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(PID_TEXT_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
