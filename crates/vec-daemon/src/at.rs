//! Opening below a directory descriptor, and keeping a process's memory to itself.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

/// Opens the directory `name` in `directory`; a symbolic link is refused.
///
/// # Errors
/// As openat(2).
pub fn directory_at(directory: &impl AsFd, name: &str) -> io::Result<OwnedFd> {
    open(directory, name, OFlag::O_DIRECTORY)
}

/// Opens the file `name` in `directory` for reading; a symbolic link is refused.
///
/// # Errors
/// As openat(2).
pub fn file_at(directory: &impl AsFd, name: &str) -> io::Result<File> {
    open(directory, name, OFlag::empty()).map(File::from)
}

fn open(directory: &impl AsFd, name: &str, more: OFlag) -> io::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | more;
    openat(directory, name, flags, Mode::empty()).map_err(io::Error::from)
}

/// No other process of the same user may read this one's memory or trace it.
///
/// # Errors
/// As prctl(2).
pub fn hide_memory() -> io::Result<()> {
    nix::sys::prctl::set_dumpable(false).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn files_are_found_by_name_and_links_are_refused() {
        let dir = tempfile::tempdir().expect("dir");
        std::fs::create_dir(dir.path().join("a")).expect("a");
        std::fs::write(dir.path().join("a/f"), "x").expect("write");
        std::os::unix::fs::symlink("f", dir.path().join("a/link")).expect("link");
        let top = File::open(dir.path()).expect("open");
        let folder = directory_at(&top, "a").expect("a directory");
        let mut text = String::new();
        file_at(&folder, "f")
            .expect("a file")
            .read_to_string(&mut text)
            .expect("readable");
        assert_eq!(text, "x");
        assert!(file_at(&folder, "link").is_err());
        assert!(directory_at(&top, "b").is_err());
    }
}
