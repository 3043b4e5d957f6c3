//! The two steps of every scoring, `workers` at a time: parser process per file, then the metric
//! on what it returned.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinError;
use vec_types::ScoreReport;

use crate::parser::{Parser, ParserFailure};
use crate::problem::FormatProblem;
use crate::scoring::{Predictions, RowChoice, ScoreFailure, Scoring};
use crate::upload::Files;

/// Why a scoring has no result: a fault of ours, never of the prediction.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkFailure {
    /// The parser process failed for reasons of its own.
    #[error("parse a prediction")]
    Parser(#[source] ParserFailure),
    /// The metric failed.
    #[error("score a prediction")]
    Score(#[source] ScoreFailure),
    /// The metric step panicked or was cancelled.
    #[error("metric step ended early")]
    Ended(#[source] JoinError),
    /// The daemon stops.
    #[error("the scorer is stopping")]
    Stopping,
}

/// Does the work; shared by all services.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) scoring: Arc<Scoring>,
    pub(crate) parser: Parser,
    workers: Semaphore,
}

impl Work {
    pub(crate) fn new(scoring: Scoring, parser: Parser, workers: u32) -> Self {
        // A limit of 0 would wait for ever.
        let workers = Semaphore::new(workers.max(1) as usize);
        Self {
            scoring: Arc::new(scoring),
            parser,
            workers,
        }
    }

    /// Reads and checks all files. The inner error is the files' fault.
    pub(crate) async fn read(
        &self,
        files: Files,
    ) -> Result<Result<Predictions, FormatProblem>, WorkFailure> {
        let mut predictions = Predictions::new();
        for (view, bytes) in files {
            let permit = self
                .workers
                .acquire()
                .await
                .map_err(|_| WorkFailure::Stopping)?;
            let parsed = self
                .parser
                .parse(&bytes, self.scoring.test_ids().len())
                .await;
            drop(permit);
            let checked = match parsed {
                Ok(matrix) => self.scoring.check(&matrix).map(|()| matrix),
                Err(ParserFailure::Format(problem)) => Err(problem),
                Err(failure) => return Err(WorkFailure::Parser(failure)),
            };
            match checked {
                Ok(matrix) => predictions.insert(view, matrix),
                Err(problem) => return Ok(Err(problem)),
            };
        }
        Ok(Ok(predictions))
    }

    /// Scores checked predictions.
    pub(crate) async fn score(
        &self,
        rows: RowChoice,
        predictions: Predictions,
    ) -> Result<ScoreReport, WorkFailure> {
        let _permit = self
            .workers
            .acquire()
            .await
            .map_err(|_| WorkFailure::Stopping)?;
        let scoring = Arc::clone(&self.scoring);
        tokio::task::spawn_blocking(move || scoring.score(rows, &predictions))
            .await
            .map_err(WorkFailure::Ended)?
            .map_err(WorkFailure::Score)
    }
}
