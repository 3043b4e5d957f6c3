//! A run that a test follows event by event, and a closed run that it looks into.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::Value;
use vec_search::Event;
use vec_store::{Archive, StoredEvent};

use crate::stack::Stack;

/// Longest wait for a whole run of the small board.
const RUN_TIMEOUT: Duration = Duration::from_secs(240);

/// A running run under `vecctl watch --json`.
#[derive(Debug)]
pub struct WatchedRun<'a> {
    stack: &'a Stack,
    id: String,
    watch: Child,
    lines: Receiver<String>,
}

impl<'a> WatchedRun<'a> {
    /// Starts watching.
    ///
    /// # Panics
    /// When `vecctl` cannot be started.
    #[must_use]
    pub fn watch(stack: &'a Stack, id: String) -> Self {
        let (watch, lines) = follow(stack, &id);
        Self {
            stack,
            id,
            watch,
            lines,
        }
    }

    /// The run's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The run directory.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        self.stack.root().join(&self.id)
    }

    /// Waits for a line of the watch that holds `word` (a kind such as `engineer_start`).
    ///
    /// # Panics
    /// When the run ends or the time passes without it.
    pub fn wait_for(&self, word: &str) {
        let deadline = Instant::now() + RUN_TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(word) => return,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => panic!("no {word} within {RUN_TIMEOUT:?}"),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the watch ended before {word}");
                }
            }
        }
    }

    /// Watches to the end of the run. A watch that broke with its launcher is taken up again.
    ///
    /// # Panics
    /// When the run does not close in time.
    #[must_use]
    pub fn closed(mut self) -> Closed<'a> {
        let deadline = Instant::now() + RUN_TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => panic!("not closed within {RUN_TIMEOUT:?}"),
                Err(RecvTimeoutError::Disconnected) if self.is_closed() => break,
                Err(RecvTimeoutError::Disconnected) => {
                    drop(self.watch.wait());
                    let (watch, lines) = follow(self.stack, &self.id);
                    (self.watch, self.lines) = (watch, lines);
                }
            }
        }
        Closed {
            dir: self.dir(),
            stack: self.stack,
            id: self.id.clone(),
        }
    }

    fn is_closed(&self) -> bool {
        let ledger = std::fs::read_to_string(self.dir().join("ledger.jsonl")).unwrap_or_default();
        ledger
            .lines()
            .last()
            .is_some_and(|line| line.contains(r#""op":"close""#))
    }
}

impl Drop for WatchedRun<'_> {
    fn drop(&mut self) {
        drop(self.watch.kill());
        drop(self.watch.wait());
    }
}

fn follow(stack: &Stack, id: &str) -> (Child, Receiver<String>) {
    let mut watch = stack
        .vecctl(["watch", id])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("start vecctl watch");
    let stdout = watch.stdout.take().expect("piped");
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    (watch, lines)
}

/// A run whose ledger ends with `close`.
#[derive(Debug)]
pub struct Closed<'a> {
    /// Its directory.
    pub dir: PathBuf,
    /// Its id.
    pub id: String,
    stack: &'a Stack,
}

impl Closed<'_> {
    /// A JSON file of the run.
    ///
    /// # Panics
    /// When it is missing or no JSON.
    #[must_use]
    pub fn json(&self, name: &str) -> Value {
        let bytes = std::fs::read(self.dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Every stored event.
    ///
    /// # Panics
    /// When the archive cannot be read.
    #[must_use]
    pub fn stored(&self) -> Vec<StoredEvent> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let path = self.dir.join("archive.sqlite");
        runtime.block_on(async {
            let mut reader = Archive::open_read_only(&path)
                .await
                .expect("open the archive");
            reader.events_after(0).await.expect("read the events")
        })
    }

    /// Every event, decoded.
    ///
    /// # Panics
    /// When one does not decode.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.stored()
            .iter()
            .map(|event| event.event().expect("decodes"))
            .collect()
    }

    /// `verify --replay` must pass.
    ///
    /// # Panics
    /// With its findings.
    pub fn expect_verified(&self) {
        let said = self
            .stack
            .say(["verify", "--replay", &self.dir.display().to_string()]);
        said.expect_ok();
    }

    /// The run verifies, settled every effect once, and ended with its budget.
    ///
    /// # Panics
    /// With what is not so.
    pub fn expect_sound(&self) {
        self.expect_verified();
        self.expect_each_effect_settled_once();
        let manifest = self.json("stop_manifest.json");
        assert_eq!(manifest["stop_reason"], "budget", "{manifest}");
    }

    /// No effect may have a second end, and none that ended may start again.
    ///
    /// # Panics
    /// Naming the effect.
    pub fn expect_each_effect_settled_once(&self) {
        let mut ended = std::collections::BTreeSet::new();
        for event in self.events() {
            match event {
                Event::EffectEnded { effect, .. } => {
                    assert!(ended.insert(effect.id()), "{} ended twice", effect.id());
                }
                Event::EffectStarted { effect } => {
                    assert!(
                        !ended.contains(&effect.id()),
                        "{} started again",
                        effect.id()
                    );
                }
                _ => {}
            }
        }
    }
}
