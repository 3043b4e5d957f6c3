//! Draining one output stream: keeps up to a cap, counts the rest, hands out lines.
//!
//! Invariants: memory is bounded by the cap plus one line; the stream is always drained to its end.

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;

/// Longest line handed out; the rest of a longer one is dropped.
pub const LINE_BYTES_MAX: usize = 1 << 20;
const CHUNK: usize = 64 << 10;

/// What was kept of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    /// Its first bytes, up to the plan's cap; any bytes, not only text.
    pub bytes: Vec<u8>,
    /// There was more.
    pub truncated: bool,
    /// Bytes the payload wrote.
    pub total: u64,
}

/// One line of stdout without its newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Any bytes, not only text.
    pub bytes: Vec<u8>,
    /// It was longer than [`LINE_BYTES_MAX`].
    pub truncated: bool,
}

/// State of one stream.
#[derive(Debug)]
pub(super) struct Pump {
    kept: Captured,
    cap: u64,
    kill_bytes: u64,
    lines: Option<Splitter>,
    flood: mpsc::Sender<()>,
}

impl Pump {
    pub(super) fn new(
        cap: u64,
        kill_bytes: u64,
        lines: Option<mpsc::Sender<Line>>,
        flood: mpsc::Sender<()>,
    ) -> Self {
        Self {
            kept: Captured::default(),
            cap,
            kill_bytes,
            lines: lines.map(Splitter::new),
            flood,
        }
    }

    /// Reads to the end of the stream. Cancel-safe: what was read stays.
    pub(super) async fn drain(&mut self, mut stream: impl AsyncRead + Unpin) {
        let mut chunk = vec![0_u8; CHUNK];
        loop {
            // An error on a pipe's read end is its end.
            let count = stream.read(&mut chunk).await.unwrap_or_default();
            if count == 0 {
                break;
            }
            self.keep(&chunk[..count]);
            if self.flooded() {
                // Full: one notice is enough.
                let _ = self.flood.try_send(());
            }
            if let Some(lines) = &mut self.lines {
                lines.push(&chunk[..count]).await;
            }
        }
        if let Some(lines) = &mut self.lines {
            lines.finish().await;
        }
    }

    pub(super) fn flooded(&self) -> bool {
        self.kept.total > self.kill_bytes
    }

    pub(super) fn finish(self) -> Captured {
        self.kept
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = self.cap.saturating_sub(self.kept.bytes.len() as u64);
        let take = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        self.kept.bytes.extend_from_slice(&bytes[..take]);
        self.kept.truncated |= take < bytes.len();
        self.kept.total += bytes.len() as u64;
    }
}

/// Cuts a stream into lines.
#[derive(Debug)]
struct Splitter {
    sender: mpsc::Sender<Line>,
    line: Vec<u8>,
    truncated: bool,
}

impl Splitter {
    fn new(sender: mpsc::Sender<Line>) -> Self {
        Self {
            sender,
            line: Vec::new(),
            truncated: false,
        }
    }

    async fn push(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, ends) = match part.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (part, false),
            };
            let room = LINE_BYTES_MAX - self.line.len();
            self.truncated |= text.len() > room;
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if ends {
                self.send().await;
            }
        }
    }

    async fn finish(&mut self) {
        if !self.line.is_empty() {
            self.send().await;
        }
    }

    async fn send(&mut self) {
        let line = Line {
            bytes: std::mem::take(&mut self.line),
            truncated: std::mem::take(&mut self.truncated),
        };
        // Nobody listens any more: the capture still has it.
        let _ = self.sender.send(line).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn drained(input: &[u8], cap: u64, kill: u64) -> (Captured, Vec<Line>, bool) {
        let (lines_tx, mut lines_rx) = mpsc::channel(16);
        let (flood_tx, mut flood_rx) = mpsc::channel(1);
        let mut pump = Pump::new(cap, kill, Some(lines_tx), flood_tx);
        pump.drain(input).await;
        let captured = pump.finish();
        let mut lines = Vec::new();
        while let Some(line) = lines_rx.recv().await {
            lines.push(line);
        }
        (captured, lines, flood_rx.try_recv().is_ok())
    }

    #[tokio::test]
    async fn the_cap_cuts_and_counts() {
        let (captured, lines, flooded) = drained(b"one\n\xfftwo", 5, 100).await;
        assert_eq!(captured.bytes, b"one\n\xff");
        assert!(captured.truncated);
        assert_eq!(captured.total, 8);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1].bytes, b"\xfftwo");
        assert!(!flooded);
    }

    #[tokio::test]
    async fn a_flood_is_noticed_and_a_long_line_is_cut() {
        let long = vec![b'x'; LINE_BYTES_MAX + 1];
        let (captured, lines, flooded) = drained(&long, 10, 1 << 20).await;
        assert!(flooded);
        assert_eq!(captured.total, long.len() as u64);
        assert!(lines[0].truncated);
        assert_eq!(lines[0].bytes.len(), LINE_BYTES_MAX);
    }
}
