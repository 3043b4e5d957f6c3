//! The trusted side of the parser process: starts one per prediction with a cleared environment,
//! feeds it, bounds its time and its output, kills it on cancel, and believes none of it unchecked.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::matrix::{Matrix, MatrixError};
use crate::parser_child::EXIT_FORMAT;
use crate::problem::{FormatCode, FormatProblem};

/// Longest life of one parser process.
pub const PARSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest text that a parser process may say on stderr.
const STDERR_BYTES_MAX: usize = 4 << 10;

/// How to start a parser process.
#[derive(Debug, Clone)]
pub struct Parser {
    /// Program; `vec-scorer` itself.
    pub program: PathBuf,
    /// Arguments before the caps; `parse`.
    pub args: Vec<OsString>,
    /// Longest accepted file in bytes.
    pub bytes_max: u64,
    /// Longest life of one process.
    pub timeout: Duration,
}

/// Why there is no matrix.
#[derive(Debug, thiserror::Error)]
pub enum ParserFailure {
    /// The file's fault.
    #[error("prediction is not valid: {}", .0.code.as_str())]
    Format(FormatProblem),
    /// The process could not be started, fed or read.
    #[error("run the parser process {program}")]
    Process {
        /// Program.
        program: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// No end within the time given although its processor time was bounded: the machine's fault.
    #[error("parser process did not end within {0:?}")]
    Timeout(Duration),
    /// Killed from outside, or an exit code that the parser does not have.
    #[error("parser process ended with {status}: {stderr}")]
    Ended {
        /// How.
        status: ExitStatus,
        /// What it said.
        stderr: String,
    },
    /// Its output is no matrix.
    #[error("parser process wrote what is no matrix")]
    Output(#[source] MatrixError),
}

impl Parser {
    /// The parser that lives in this executable.
    ///
    /// # Errors
    /// When the operating system does not tell which program this is.
    pub fn of_this_program(bytes_max: u64) -> std::io::Result<Self> {
        Ok(Self {
            program: std::env::current_exe()?,
            args: vec!["parse".into()],
            bytes_max,
            timeout: PARSE_TIMEOUT,
        })
    }

    /// Parses `bytes`, which may have at most `rows_max` rows. Dropping the future kills the
    /// process.
    ///
    /// # Errors
    /// [`ParserFailure`]; only its `Format` variant is the file's fault.
    pub async fn parse(&self, bytes: &[u8], rows_max: usize) -> Result<Matrix, ParserFailure> {
        if bytes.len() as u64 > self.bytes_max {
            let detail = format!("the file is longer than {} bytes", self.bytes_max);
            return Err(ParserFailure::Format(FormatProblem::new(
                FormatCode::TooLarge,
                detail,
            )));
        }
        let process = |source| ParserFailure::Process {
            program: self.program.clone(),
            source,
        };
        let child = self.spawn(rows_max).map_err(process)?;
        let talked = tokio::time::timeout(self.timeout, talk(child, bytes, rows_max)).await;
        let Ok(talked) = talked else {
            return Err(ParserFailure::Timeout(self.timeout));
        };
        let (status, stdout, stderr) = talked.map_err(process)?;
        judge(status, &stdout, &stderr)
    }

    fn spawn(&self, rows_max: usize) -> std::io::Result<Child> {
        Command::new(&self.program)
            .args(&self.args)
            .arg(self.bytes_max.to_string())
            .arg(rows_max.to_string())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
    }
}

type Talked = (ExitStatus, Vec<u8>, Vec<u8>);

async fn talk(mut child: Child, bytes: &[u8], rows_max: usize) -> std::io::Result<Talked> {
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(std::io::Error::other(
            "a pipe of the parser process is missing",
        ));
    };
    let feed = async move {
        // A parser that has seen enough closes its end early; its exit code says why.
        drop(stdin.write_all(bytes).await);
        drop(stdin);
    };
    let (_, stdout, stderr) = tokio::join!(
        feed,
        read_bounded(stdout, Matrix::encoded_len(rows_max)),
        read_bounded(stderr, STDERR_BYTES_MAX),
    );
    let (stdout, stderr) = (stdout?, stderr?);
    Ok((child.wait().await?, stdout, stderr))
}

/// Reads to the end, keeps at most one byte more than `len_max`: enough to see that it was too
/// much, and the writer is never blocked.
async fn read_bounded(
    mut from: impl AsyncRead + Unpin,
    len_max: usize,
) -> std::io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    (&mut from)
        .take(len_max as u64 + 1)
        .read_to_end(&mut kept)
        .await?;
    tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    Ok(kept)
}

fn judge(status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> Result<Matrix, ParserFailure> {
    if status.success() {
        return Matrix::decode(stdout).map_err(ParserFailure::Output);
    }
    if status.code() == Some(i32::from(EXIT_FORMAT))
        && let Ok(problem) = serde_json::from_slice::<FormatProblem>(stderr)
    {
        let FormatProblem { code, detail } = problem;
        return Err(ParserFailure::Format(FormatProblem::new(code, detail)));
    }
    // Signals that the file can provoke through the process's own limits are the file's fault;
    // SIGKILL and SIGTERM come from outside.
    let provoked = [
        libc::SIGXCPU,
        libc::SIGABRT,
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
    ];
    if status
        .signal()
        .is_some_and(|signal| provoked.contains(&signal))
    {
        let detail = "reading the file exceeded the reader's memory or time";
        return Err(ParserFailure::Format(FormatProblem::new(
            FormatCode::ReaderDied,
            detail,
        )));
    }
    let said = String::from_utf8_lossy(stderr).into_owned();
    Err(ParserFailure::Ended {
        status,
        stderr: said,
    })
}
