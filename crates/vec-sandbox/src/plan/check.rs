//! Validation of a plan: every number in range, every path plain, no mount over another.
//!
//! Invariants: pure; the helper runs the same check on what it reads, so nothing below it has to
//! think about `..`, NUL bytes, nesting or absurd sizes again.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::{PLAN_SCHEMA, SandboxPlan, WorkKind};

const BINDS_MAX: usize = 64;
const ENTRIES_MAX: usize = 128;
const PATH_BYTES_MAX: usize = 1024;
const FILE_TEXT_MAX: usize = 16 << 10;
/// The kernel's own bound on one argument or environment string is 128 KiB.
const STRING_BYTES_MAX: usize = 128 << 10;
const STRINGS_BYTES_MAX: usize = 1 << 20;
const TMPFS_BYTES: RangeInclusive<u64> = 4096..=64 << 30;
const TMPFS_INODES: RangeInclusive<u64> = 16..=4 << 20;
const PROCESSES: RangeInclusive<u64> = 4..=32_768;
const OPEN_FILES: RangeInclusive<u64> = 16..=1 << 20;
const BYTES_LIMIT: RangeInclusive<u64> = 4096..=1 << 50;
/// Most loopback ports that init opens.
pub const LISTENERS_MAX: usize = 4;
/// Ports that need no privilege.
const PORTS: RangeInclusive<u64> = 1024..=65_535;
/// Below this not even an interpreter starts.
const MEMORY_LIMIT: RangeInclusive<u64> = 16 << 20..=1 << 50;
const CPU_S: RangeInclusive<u64> = 1..=7 * 86_400;
const DEADLINE_MS: RangeInclusive<u64> = 1..=7 * 86_400_000;
const GRACE_MS: RangeInclusive<u64> = 0..=300_000;
const CAPTURE_BYTES: RangeInclusive<u64> = 0..=256 << 20;
const KILL_BYTES: RangeInclusive<u64> = 1..=1 << 40;
/// Ids below are the system's own; init takes the one after, and 65534 is nobody and means
/// "unmapped" to the kernel.
const OUTER_IDS: RangeInclusive<u32> = 1000..=65_532;
/// Paths the helper makes itself.
const RESERVED: [&str; 4] = ["/dev", "/proc", "/sys", "/tmp"];

/// Why a plan is refused.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Written for another version.
    #[error("sandbox plan has schema {found}, this build reads {PLAN_SCHEMA}")]
    Schema {
        /// The number in the plan.
        found: u32,
    },
    /// A number outside its range.
    #[error("sandbox plan: {field} is {value}, must be {min} to {max}")]
    Range {
        /// Field name as in the JSON.
        field: &'static str,
        /// What it holds.
        value: u64,
        /// Smallest allowed.
        min: u64,
        /// Largest allowed.
        max: u64,
    },
    /// A path that is not absolute and plain.
    #[error(
        "sandbox plan: {field} {path:?} must be absolute, without '.', '..' or control characters, at most {PATH_BYTES_MAX} bytes"
    )]
    Path {
        /// Field name as in the JSON.
        field: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// Two entries want the same place, or one lies below another.
    #[error("sandbox plan: {path:?} collides with {other:?}; entries may not repeat or nest")]
    Collision {
        /// The later entry.
        path: PathBuf,
        /// The one in its way.
        other: PathBuf,
    },
    /// Text that cannot be passed on.
    #[error("sandbox plan: {field}: {problem}")]
    Text {
        /// Field name as in the JSON.
        field: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A source's parent directory cannot be resolved.
    #[error("cannot resolve the directory of {path:?} for the sandbox")]
    Resolve {
        /// The source path.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
}

impl SandboxPlan {
    /// Refuses a plan that the helper could not apply exactly as written.
    ///
    /// # Errors
    /// The first problem found, naming the field.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.schema != PLAN_SCHEMA {
            return Err(PlanError::Schema { found: self.schema });
        }
        self.check_numbers()?;
        self.check_paths()?;
        self.check_collisions()?;
        self.check_text()
    }

    fn check_numbers(&self) -> Result<(), PlanError> {
        for (bytes, inodes, size) in [
            ("tmp.bytes", "tmp.inodes", self.tmp),
            ("shm.bytes", "shm.inodes", self.shm),
        ] {
            within(bytes, size.bytes, &TMPFS_BYTES)?;
            within(inodes, size.inodes, &TMPFS_INODES)?;
        }
        if let WorkKind::Memory { size, .. } = self.work.kind {
            within("work.kind.memory.size.bytes", size.bytes, &TMPFS_BYTES)?;
            within("work.kind.memory.size.inodes", size.inodes, &TMPFS_INODES)?;
        }
        let listeners = 0..=LISTENERS_MAX as u64;
        within("listeners count", self.listeners.len() as u64, &listeners)?;
        for port in &self.listeners {
            within("listeners", u64::from(*port), &PORTS)?;
        }
        let limits = &self.limits;
        if let Some(bytes) = limits.address_space_bytes {
            within("limits.address_space_bytes", bytes, &MEMORY_LIMIT)?;
        }
        if let Some(bytes) = limits.data_bytes {
            within("limits.data_bytes", bytes, &MEMORY_LIMIT)?;
        }
        if let Some(seconds) = limits.cpu_s {
            within("limits.cpu_s", seconds, &CPU_S)?;
        }
        within("limits.processes", limits.processes, &PROCESSES)?;
        within("limits.open_files", limits.open_files, &OPEN_FILES)?;
        within("limits.file_bytes", limits.file_bytes, &BYTES_LIMIT)?;
        within("time.deadline_ms", self.time.deadline_ms, &DEADLINE_MS)?;
        within("time.grace_ms", self.time.grace_ms, &GRACE_MS)?;
        let output = &self.output;
        within("output.stdout_bytes", output.stdout_bytes, &CAPTURE_BYTES)?;
        within("output.stderr_bytes", output.stderr_bytes, &CAPTURE_BYTES)?;
        within("output.kill_bytes", output.kill_bytes, &KILL_BYTES)?;
        let ids = u64::from(*OUTER_IDS.start())..=u64::from(*OUTER_IDS.end());
        within("outer.uid", u64::from(self.outer.uid), &ids)?;
        within("outer.gid", u64::from(self.outer.gid), &ids)?;
        within(
            "ro_binds count",
            self.ro_binds.len() as u64,
            &(0..=BINDS_MAX as u64),
        )?;
        let entries = self.symlinks.len() + self.files.len();
        within(
            "symlinks and files count",
            entries as u64,
            &(0..=ENTRIES_MAX as u64),
        )
    }

    fn check_paths(&self) -> Result<(), PlanError> {
        for bind in &self.ro_binds {
            plain("ro_binds.source", &bind.source)?;
            plain("ro_binds.dest", &bind.dest)?;
        }
        if let Some(source) = self.work.kind.source() {
            plain("work.kind", source)?;
        }
        plain("work.dest", &self.work.dest)?;
        for link in &self.symlinks {
            plain("symlinks.path", &link.path)?;
            let target = link.target.as_os_str().as_bytes();
            if target.is_empty() || target.iter().any(u8::is_ascii_control) {
                return Err(PlanError::Path {
                    field: "symlinks.target",
                    path: link.target.clone(),
                });
            }
        }
        for file in &self.files {
            plain("files.path", &file.path)?;
        }
        if self.cwd != Path::new("/") {
            plain("cwd", &self.cwd)?;
        }
        let program = self.argv.first().map(PathBuf::from).unwrap_or_default();
        plain("argv[0]", &program)
    }

    /// No entry may equal or lie below another one, or below what the helper makes itself.
    fn check_collisions(&self) -> Result<(), PlanError> {
        let mut taken: BTreeSet<&Path> = RESERVED.iter().map(Path::new).collect();
        let dests = self.ro_binds.iter().map(|bind| bind.dest.as_path());
        let links = self.symlinks.iter().map(|link| link.path.as_path());
        let files = self.files.iter().map(|file| file.path.as_path());
        let all: Vec<&Path> = dests
            .chain(std::iter::once(self.work.dest.as_path()))
            .chain(links)
            .chain(files)
            .collect();
        for path in &all {
            if !taken.insert(path) {
                return Err(collision(path, path));
            }
        }
        for path in all {
            let above = path.ancestors().skip(1).find(|above| taken.contains(above));
            if let Some(above) = above {
                return Err(collision(path, above));
            }
        }
        Ok(())
    }

    fn check_text(&self) -> Result<(), PlanError> {
        let name_ok = |name: &str| {
            let start = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            start && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if let Some(name) = self.env.keys().find(|name| !name_ok(name)) {
            return Err(text("env", format!("{name:?} is not a variable name")));
        }
        let strings = self.argv.iter().chain(self.env.values());
        let mut total = 0;
        for string in strings {
            total += string.len();
            if string.len() >= STRING_BYTES_MAX || string.contains('\0') {
                let shown: String = string.chars().take(40).collect();
                return Err(text(
                    "argv or env",
                    format!("{shown:?}… holds a NUL or is {STRING_BYTES_MAX} bytes or longer"),
                ));
            }
        }
        if total > STRINGS_BYTES_MAX {
            let problem = format!("{total} bytes together, at most {STRINGS_BYTES_MAX}");
            return Err(text("argv and env", problem));
        }
        let host = &self.hostname;
        let plain_name = host.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if host.is_empty() || host.len() > 63 || !plain_name {
            return Err(text(
                "hostname",
                format!("{host:?} is not a plain host name"),
            ));
        }
        match self.files.iter().find(|f| f.text.len() > FILE_TEXT_MAX) {
            Some(file) => Err(text(
                "files",
                format!("{:?} is longer than {FILE_TEXT_MAX} bytes", file.path),
            )),
            None => Ok(()),
        }
    }
}

fn within(field: &'static str, value: u64, range: &RangeInclusive<u64>) -> Result<(), PlanError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(PlanError::Range {
        field,
        value,
        min: *range.start(),
        max: *range.end(),
    })
}

fn plain(field: &'static str, path: &Path) -> Result<(), PlanError> {
    let bytes = path.as_os_str().as_bytes();
    let mut parts = path.components();
    let absolute = parts.next() == Some(Component::RootDir);
    let rest: Vec<_> = parts.collect();
    let normal = !rest.is_empty() && rest.iter().all(|p| matches!(p, Component::Normal(_)));
    // `components` drops "." and repeated or trailing slashes: the text must be the clean one.
    let rebuilt: PathBuf = path.components().collect();
    let clean = rebuilt.as_os_str() == path.as_os_str();
    let printable = !bytes.iter().any(u8::is_ascii_control);
    if absolute && normal && clean && printable && bytes.len() <= PATH_BYTES_MAX {
        return Ok(());
    }
    Err(PlanError::Path {
        field,
        path: path.to_owned(),
    })
}

fn collision(path: &Path, other: &Path) -> PlanError {
    PlanError::Collision {
        path: path.to_owned(),
        other: other.to_owned(),
    }
}

fn text(field: &'static str, problem: String) -> PlanError {
    PlanError::Text { field, problem }
}
