//! The control pipe between daemon and helper: the commands, their bytes, and the handle with
//! which a daemon moves a running sandbox's end.
//!
//! Invariants: end of file means "kill everything now"; an unknown byte does too. A deadline can
//! only move closer. State is level-triggered: a command given before the run starts counts.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Digits of a deadline command: 7 days in milliseconds need nine.
const DIGITS_MAX: usize = 12;

/// One command to the helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// TERM to the payload's process group now, KILL of everything after the plan's grace.
    Terminate,
    /// KILL now.
    Kill,
    /// The payload has at most this many milliseconds from now.
    Shorten(u64),
}

impl Command {
    pub(crate) fn encode(self) -> Vec<u8> {
        match self {
            Self::Terminate => b"t".to_vec(),
            Self::Kill => b"k".to_vec(),
            Self::Shorten(ms) => format!("d{ms}\n").into_bytes(),
        }
    }
}

/// Incremental parser of the control pipe.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    digits: Option<String>,
}

impl Parser {
    /// Commands in `bytes`; anything that is no command is a [`Command::Kill`].
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Command> {
        let mut commands = Vec::new();
        for &byte in bytes {
            match (self.digits.take(), byte) {
                (None, b't') => commands.push(Command::Terminate),
                (None, b'k') => commands.push(Command::Kill),
                (None, b'd') => self.digits = Some(String::new()),
                (Some(mut digits), b'0'..=b'9') if digits.len() < DIGITS_MAX => {
                    digits.push(char::from(byte));
                    self.digits = Some(digits);
                }
                (Some(digits), b'\n') => match digits.parse() {
                    Ok(ms) => commands.push(Command::Shorten(ms)),
                    Err(_) => commands.push(Command::Kill),
                },
                _ => commands.push(Command::Kill),
            }
        }
        commands
    }
}

/// What the daemon wants of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Wish {
    pub(crate) terminate: bool,
    pub(crate) kill: bool,
    pub(crate) end_at: Option<Instant>,
}

/// Handle on one execution: cancel it or move its deadline closer, from anywhere, at any time.
#[derive(Debug, Clone)]
pub struct RunControl {
    wish: watch::Sender<Wish>,
}

impl Default for RunControl {
    fn default() -> Self {
        Self::new()
    }
}

impl RunControl {
    /// A handle for one execution; keep a clone and give the other to the runner.
    #[must_use]
    pub fn new() -> Self {
        Self {
            wish: watch::Sender::new(Wish::default()),
        }
    }

    /// TERM to the payload's process group now, KILL of everything after the plan's grace.
    pub fn terminate(&self) {
        self.wish.send_modify(|wish| wish.terminate = true);
    }

    /// KILL now.
    pub fn kill(&self) {
        self.wish.send_modify(|wish| wish.kill = true);
    }

    /// The payload has at most `left` from now; a later end than the present one is ignored.
    pub fn shorten(&self, left: Duration) {
        let end = Instant::now() + left;
        self.wish.send_modify(|wish| {
            wish.end_at = Some(wish.end_at.map_or(end, |present| present.min(end)));
        });
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Wish> {
        self.wish.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_survive_any_split() {
        let bytes: Vec<u8> = [Command::Shorten(1500), Command::Terminate, Command::Kill]
            .into_iter()
            .flat_map(Command::encode)
            .collect();
        for cut in 0..=bytes.len() {
            let mut parser = Parser::default();
            let mut commands = parser.push(&bytes[..cut]);
            commands.extend(parser.push(&bytes[cut..]));
            assert_eq!(
                commands,
                [Command::Shorten(1500), Command::Terminate, Command::Kill]
            );
        }
    }

    #[test]
    fn noise_kills() {
        for noise in ["x", "d\n", "d12x", "d1234567890123\n", "\n"] {
            let commands = Parser::default().push(noise.as_bytes());
            assert!(commands.contains(&Command::Kill), "{noise:?}: {commands:?}");
        }
    }

    #[test]
    fn a_deadline_only_moves_closer() {
        let control = RunControl::new();
        control.shorten(Duration::from_secs(1));
        let first = control.subscribe().borrow().end_at;
        control.shorten(Duration::from_secs(60));
        assert_eq!(control.subscribe().borrow().end_at, first);
        control.shorten(Duration::ZERO);
        assert!(control.subscribe().borrow().end_at < first);
    }
}
