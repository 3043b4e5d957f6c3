//! The candidates' Python: chosen at launch, found again at every later start, and refused when it
//! is not the locked one any more.

use std::path::{Path, PathBuf};

use vec_board::{EnvError, PythonEnv, open_env, stdlib_env};
use vec_config::{EnvironmentChoice, Lock};
use vec_daemon::spec::PythonSpec;

/// Why there is no usable Python.
#[derive(Debug, thiserror::Error)]
pub enum PythonError {
    /// It is not there, or its files have changed.
    #[error("the candidates' Python is not usable")]
    Env(#[source] EnvError),
    /// Another one than at launch.
    #[error(
        "the candidates' Python changed since the run was locked (was {was}, is {is}); scores would mean something else"
    )]
    Changed {
        /// Locked.
        was: String,
        /// Found.
        is: String,
    },
}

/// The Python that a board asks for.
///
/// # Errors
/// [`PythonError::Env`].
pub(crate) fn python_for(
    choice: &EnvironmentChoice,
    data_root: &Path,
) -> Result<PythonEnv, PythonError> {
    match choice {
        EnvironmentChoice::Stdlib => stdlib_env(None),
        EnvironmentChoice::Venv { lock } => open_env(lock, data_root, None),
    }
    .map_err(PythonError::Env)
}

/// The Python of a locked run. Its requirements lock is the run's own copy, since the installed
/// one may be another by now.
///
/// # Errors
/// [`PythonError`].
pub(crate) fn python_of(
    lock: &Lock,
    code: &Path,
    data_root: &Path,
) -> Result<PythonSpec, PythonError> {
    let choice = match &lock.board_definition.environment {
        EnvironmentChoice::Stdlib => EnvironmentChoice::Stdlib,
        EnvironmentChoice::Venv { lock } => EnvironmentChoice::Venv {
            lock: own_copy(code, lock),
        },
    };
    let python = python_for(&choice, data_root)?;
    if python.facts != lock.environment {
        let words = |facts: &vec_config::PythonFacts| format!("{} {}", facts.id, facts.version);
        return Err(PythonError::Changed {
            was: words(&lock.environment),
            is: words(&python.facts),
        });
    }
    Ok(spec(python))
}

/// What the controller is told.
pub(crate) fn spec(python: PythonEnv) -> PythonSpec {
    let PythonEnv {
        argv0,
        ro_binds,
        facts: _,
        dir: _,
    } = python;
    PythonSpec { argv0, ro_binds }
}

fn own_copy(code: &Path, installed: &Path) -> PathBuf {
    let own = installed
        .file_name()
        .map(|name| code.join("configs/env").join(name));
    own.filter(|path| path.is_file())
        .unwrap_or_else(|| installed.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runs_own_requirements_win() {
        let dir = tempfile::tempdir().expect("dir");
        let installed = Path::new("/opt/vec/share/configs/env/candidate.lock");
        assert_eq!(own_copy(dir.path(), installed), installed);
        let own = dir.path().join("configs/env/candidate.lock");
        std::fs::create_dir_all(own.parent().expect("parent")).expect("made");
        std::fs::write(&own, "").expect("written");
        assert_eq!(own_copy(dir.path(), installed), own);
    }
}
