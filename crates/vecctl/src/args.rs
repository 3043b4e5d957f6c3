//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Runs locked, auditable algorithm searches and looks at what they left behind.
#[derive(Debug, Parser)]
#[command(name = "vecctl", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Options of every verb.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Runtime directory [default: $XDG_RUNTIME_DIR/vec, /run/vec as root, /tmp/vec-UID]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) runtime_dir: Option<PathBuf>,
    /// Views, truth and environments [default: $XDG_DATA_HOME/vec or ~/.local/share/vec]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_root: Option<PathBuf>,
    /// Where runs lie [default: ~/vec/runs/test]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Installed product [default: the parent of this program's directory]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) prefix: Option<PathBuf>,
    /// Print JSON for programs (status, list, show, explain, verify, preflight)
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// A configuration with its overrides.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConfigArguments {
    /// Run configuration (YAML)
    #[arg(value_name = "CONFIG")]
    pub(crate) config: PathBuf,
    /// Override one key; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Lock and start a run
    Launch {
        #[command(flatten)]
        config: ConfigArguments,
        /// Follow the run to its end
        #[arg(long)]
        watch: bool,
    },
    /// Continue a run that was stopped or whose machine went down
    Resume {
        /// Run id or run directory
        run: String,
    },
    /// End a run without final selection; it can be resumed
    Stop {
        /// Run id or run directory
        run: String,
        /// Reason, kept in the run's events
        #[arg(long, default_value = "vecctl stop")]
        why: String,
    },
    /// Where a run stands (all known runs without RUN)
    Status {
        /// Run id or run directory
        run: Option<String>,
    },
    /// All known runs
    List,
    /// One line per event, from the first to the end of the run
    Watch {
        /// Run id or run directory
        run: String,
        /// Only events after this one
        #[arg(long, value_name = "SEQ", default_value_t = 0)]
        after: u64,
    },
    /// The tree of a run, or one of its nodes
    Show {
        /// Run id or run directory
        run: String,
        /// Node number
        node: Option<u32>,
    },
    /// Why a node exists: its draw, what its parent or family was chosen from, what became of it
    Explain {
        /// Run id or run directory
        run: String,
        /// Node number
        node: u32,
    },
    /// Pack a closed run for others
    Package {
        /// Run id or run directory
        run: String,
    },
    /// Check a run directory byte for byte
    Verify {
        /// Run id or run directory
        run: String,
        /// Re-derive every decision, too
        #[arg(long)]
        replay: bool,
        /// Accept a run that is not closed
        #[arg(long)]
        open: bool,
        /// Ledger head that was noted elsewhere
        #[arg(long, value_name = "HASH")]
        anchor: Option<String>,
    },
    /// The self-test of a launch, without a run
    Preflight {
        #[command(flatten)]
        config: ConfigArguments,
    },
    /// Python environments for candidate programs
    #[command(subcommand)]
    Env(EnvVerb),
    /// Boards
    #[command(subcommand)]
    Board(BoardVerb),
}

#[derive(Debug, Subcommand)]
pub(crate) enum EnvVerb {
    /// Build the environment that a lock file describes
    Build {
        /// Requirements with hashes
        lockfile: PathBuf,
        /// Interpreter [default: /usr/bin/python3 from 3.11 on, else the first on PATH]
        #[arg(long, value_name = "PYTHON")]
        python: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum BoardVerb {
    /// Turn raw data into views and hidden truth
    Build {
        /// Board definition (YAML)
        board: PathBuf,
        /// Directory with the raw data
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// Replace what is there
        #[arg(long)]
        replace: bool,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn global_options_may_stand_anywhere() {
        let words = "vecctl verify --replay x --root /r --json --anchor ab";
        let parsed = Arguments::try_parse_from(words.split(' ')).expect("parses");
        assert_eq!(parsed.global.root, Some("/r".into()));
        assert!(parsed.global.json);
        assert!(matches!(
            parsed.verb,
            Verb::Verify {
                replay: true,
                open: false,
                ..
            }
        ));
    }

    #[test]
    fn overrides_keep_their_order() {
        let words = "vecctl launch --watch c.yaml --set a=1 --set a=2";
        let parsed = Arguments::try_parse_from(words.split(' ')).expect("parses");
        let Verb::Launch {
            config,
            watch: true,
        } = parsed.verb
        else {
            panic!("launch");
        };
        assert_eq!(config.sets, ["a=1", "a=2"]);
    }
}
