//! What a launch reads before it makes anything: configuration, board, what was built for it,
//! Python, the installed product.

use std::path::PathBuf;

use vec_board::{BoardError, BuiltBoard, PythonEnv, load_built};
use vec_config::{Board, BuildRecord, Config, ConfigError, check_fit, load_board, load_config};

use crate::data_root::DataRoot;
use crate::deps::Deps;
use crate::files::{FileError, read_json};
use crate::python::{PythonError, python_for};

/// The configuration as its author wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigSource {
    /// Absolute path.
    pub path: PathBuf,
    /// `--set key=value`, in order.
    pub sets: Vec<String>,
}

/// Why a launch cannot even be prepared.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// Configuration or board definition are wrong.
    #[error(transparent)]
    Config(ConfigError),
    /// Views and truth are not there, or not those of the definition.
    #[error("board {board} cannot be used")]
    Board {
        /// The board.
        board: String,
        /// Why.
        #[source]
        source: BoardError,
    },
    /// No usable Python.
    #[error("board {board}: no Python for candidates")]
    Python {
        /// The board.
        board: String,
        /// Why.
        #[source]
        source: PythonError,
    },
    /// The installed product is not whole.
    #[error("the installed product is not usable; pass --prefix")]
    Build(#[source] FileError),
}

/// Everything that a launch starts from.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) source: ConfigSource,
    pub(crate) config: Config,
    pub(crate) board: Board,
    pub(crate) built: BuiltBoard,
    pub(crate) python: PythonEnv,
    pub(crate) build: BuildRecord,
    pub(crate) prefix: PathBuf,
    pub(crate) data_root: DataRoot,
}

impl Prepared {
    /// Reads it all. Blocking: hashes views.
    ///
    /// # Errors
    /// [`PrepareError`], naming the file, key or directory.
    pub(crate) fn read(
        deps: &Deps,
        source: ConfigSource,
        data_root: PathBuf,
    ) -> Result<Self, PrepareError> {
        let config = load_config(&source.path, &source.sets).map_err(PrepareError::Config)?;
        let board = load_board(&config.board).map_err(PrepareError::Config)?;
        check_fit(&source.path, &config, &board).map_err(PrepareError::Config)?;
        let name = board.board.to_string();
        let built = load_built(&data_root, &board).map_err(|source| PrepareError::Board {
            board: name.clone(),
            source,
        })?;
        let python =
            python_for(&board.environment, &data_root).map_err(|source| PrepareError::Python {
                board: name,
                source,
            })?;
        let build = read_json(&deps.prefix.join("BUILD.json")).map_err(PrepareError::Build)?;
        Ok(Self {
            source,
            config,
            board,
            built,
            python,
            build,
            prefix: deps.prefix.clone(),
            data_root: DataRoot::at(data_root),
        })
    }

    /// The installed sandbox helper.
    pub(crate) fn sandbox_helper(&self) -> PathBuf {
        self.build.sandbox.path.under(&self.prefix)
    }
}
