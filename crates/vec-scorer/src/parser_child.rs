//! `vec-scorer parse <bytes_max> <rows_max>`: the untrusted side. Confines itself, reads one
//! prediction from stdin, writes the flat matrix to stdout (exit 0) or a `FormatProblem` as
//! JSON to stderr (exit 65). Holds no truth, no journal, no socket.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use vec_sandbox::confine;

use crate::parse::{Caps, ParseError, parse_prediction};

/// Exit code of a refused prediction (EX_DATAERR).
pub(crate) const EXIT_FORMAT: u8 = 65;

/// Exit code when the process could not confine itself or read (EX_OSERR).
const EXIT_SYSTEM: u8 = 71;

/// Exit code for wrong arguments (EX_USAGE).
const EXIT_USAGE: u8 = 64;

/// Processor seconds of one parser process: half its wall time, so that a file that costs too much
/// ends as the file's fault (SIGXCPU) and a busy machine does not.
const CPU_MAX_S: u64 = 5;

/// Address space beside what the input needs: the program, its stack and buffers.
const ADDRESS_SPACE_BASE: u64 = 256 << 20;

/// Address space per input byte: rows of 4 bytes become 16, twice (rows and matrix) and encoded.
const ADDRESS_SPACE_PER_BYTE: u64 = 24;

fn confinement(bytes_max: u64) -> vec_sandbox::Caps {
    vec_sandbox::Caps {
        address_space: bytes_max
            .saturating_mul(ADDRESS_SPACE_PER_BYTE)
            .saturating_add(ADDRESS_SPACE_BASE),
        cpu_s: CPU_MAX_S,
    }
}

/// Runs the verb.
#[must_use]
pub fn parse_verb(args: &[OsString]) -> ExitCode {
    let number = |at: usize| args.get(at)?.to_str()?.parse::<u64>().ok();
    let (Some(bytes_max), Some(rows_max), 2) = (number(0), number(1), args.len()) else {
        return fail(
            EXIT_USAGE,
            b"usage: vec-scorer parse <bytes_max> <rows_max>\n",
        );
    };
    // Buffers of std are made before the limits close in.
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    if let Err(error) = confine(confinement(bytes_max)) {
        let chain = vec_daemon::chain(&error).to_string();
        return fail(EXIT_SYSTEM, chain.as_bytes());
    }
    match parse_prediction(
        &mut input as &mut dyn Read,
        Caps {
            bytes_max,
            rows_max,
        },
    ) {
        Ok(matrix) => {
            let written = output
                .write_all(&matrix.encode())
                .and_then(|()| output.flush());
            if written.is_ok() {
                ExitCode::SUCCESS
            } else {
                EXIT_SYSTEM.into()
            }
        }
        Err(ParseError::Format(problem)) => match serde_json::to_vec(&problem) {
            Ok(json) => fail(EXIT_FORMAT, &json),
            Err(_) => EXIT_SYSTEM.into(),
        },
        Err(ParseError::Read(_)) => fail(EXIT_SYSTEM, b"cannot read stdin\n"),
    }
}

fn fail(code: u8, text: &[u8]) -> ExitCode {
    // Nobody is left to tell when stderr is gone.
    drop(io::stderr().write_all(text));
    code.into()
}
