//! What the launcher is given: directories, clock, supervisor. Constructed once in `main`.

use std::path::PathBuf;
use std::sync::Arc;

use vec_clock::Clock;
use vec_scope::Supervisor;

use crate::data_root::DataRoot;
use crate::runtime_dir::{RuntimeDir, Surroundings};

/// The launcher's surroundings.
#[derive(Debug)]
pub struct Deps {
    /// R.
    pub runtime: RuntimeDir,
    /// D, where a request names none.
    pub data_root: DataRoot,
    /// The installed product: `bin/`, `share/`, `BUILD.json`.
    pub prefix: PathBuf,
    /// Who we are and where home is.
    pub surroundings: Surroundings,
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// Who owns process trees.
    pub supervisor: Supervisor,
}
