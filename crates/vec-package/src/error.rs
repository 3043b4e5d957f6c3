//! Why there is no package. Every variant names the run, the file or the limit.

use std::io;
use std::path::{Path, PathBuf};

use vec_store::{LedgerFault, StoreError};
use vec_types::CanonicalError;
use vec_verify::{VerifyError, VerifyReport};

/// Why a run was not packaged.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// A file operation failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The run directory could not be read.
    #[error("cannot read {}", path.display())]
    Store {
        /// What of it.
        path: PathBuf,
        /// Why not.
        #[source]
        source: StoreError,
    },
    /// There is a package already.
    #[error("{} exists already; a package is never overwritten", .0.display())]
    Exists(PathBuf),
    /// The run is still open.
    #[error("{} is not closed; only a closed run is packaged", .0.display())]
    Open(PathBuf),
    /// The ledger does not hold.
    #[error("{} is damaged", path.display())]
    Ledger {
        /// The ledger.
        path: PathBuf,
        /// Where and how.
        #[source]
        source: LedgerFault,
    },
    /// The run is tainted.
    #[error("{} is tainted and cannot be packaged: {first}", path.display())]
    Tainted {
        /// The run.
        path: PathBuf,
        /// The first reason on record.
        first: String,
    },
    /// The check could not be done.
    #[error("the run cannot be verified")]
    Verify(#[source] VerifyError),
    /// The check found something; the run is tainted now.
    #[error(
        "{} does not verify ({} findings), so it is not packaged; first: {}",
        path.display(),
        report.findings.len(),
        report.findings.first().map_or_else(String::new, ToString::to_string)
    )]
    DoesNotVerify {
        /// The run.
        path: PathBuf,
        /// Everything found.
        report: Box<VerifyReport>,
    },
    /// A file of the package is too big to be submitted.
    #[error("{name} would be larger than the limit of {limit} bytes per file of a package")]
    TooBig {
        /// File of the package.
        name: String,
        /// The limit.
        limit: u64,
    },
    /// Two files would have the same name in the package.
    #[error("two files of the run would be {0} in the package")]
    Twice(String),
    /// A name that is no plain name.
    #[error("{} has a name that no package may hold", .0.display())]
    BadName(PathBuf),
    /// A ZIP archive could not be written.
    #[error("cannot write {} (at {entry})", path.display())]
    Zip {
        /// The archive.
        path: PathBuf,
        /// The entry.
        entry: String,
        /// Why not.
        #[source]
        source: zip::result::ZipError,
    },
    /// The table of scores could not be written.
    #[error("cannot write {}", path.display())]
    Csv {
        /// The table.
        path: PathBuf,
        /// Why not.
        #[source]
        source: csv::Error,
    },
    /// A document has no JSON form.
    #[error("cannot write {what}")]
    Encode {
        /// Which.
        what: &'static str,
        /// Why not.
        #[source]
        source: CanonicalError,
    },
    /// The archive names ancestors that are not there or that go round in a circle.
    #[error("the ancestors of node {0} in the archive do not end at a root")]
    Lineage(vec_types::NodeId),
}

impl PackageError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
