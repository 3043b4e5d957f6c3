//! Prediction files arriving in pieces: bounded in size, number and time; hashed as they come.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tokio_stream::{Stream, StreamExt};
use tonic::Status;
use vec_proto::UploadItem;
use vec_proto::pb::scorer::v1::Upload;
use vec_types::{Digest, Hasher, ViewId};

use crate::problem::{FormatCode, FormatProblem};

/// Most files in one upload.
pub const VIEWS_MAX: usize = 16;

/// Longest wait for the next piece.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest upload.
pub const UPLOAD_TIMEOUT: Duration = Duration::from_secs(120);

/// Bytes read at most, as a multiple of what could be accepted: a sender a little beyond the limit
/// is told `too_large`, a sender without end is cut off.
const EXCESS_FACTOR: u64 = 4;

/// Files by view.
pub(crate) type Files = BTreeMap<ViewId, Vec<u8>>;

/// A whole upload.
#[derive(Debug)]
pub(crate) struct Received {
    /// sha256 over names and contents of all files, refused ones included.
    pub(crate) input: Digest,
    /// The files, or why they cannot be predictions.
    pub(crate) files: Result<Files, FormatProblem>,
}

/// Puts pieces together.
#[derive(Debug)]
pub(crate) struct Assembler {
    views: BTreeSet<ViewId>,
    bytes_max: u64,
    seen_bytes: u64,
    hashes: Vec<(ViewId, Hasher)>,
    files: Files,
    current: Option<ViewId>,
    problem: Option<FormatProblem>,
}

impl Assembler {
    /// Expects one file of at most `bytes_max` bytes for each of `views`.
    pub(crate) const fn new(views: BTreeSet<ViewId>, bytes_max: u64) -> Self {
        Self {
            views,
            bytes_max,
            seen_bytes: 0,
            hashes: Vec::new(),
            files: BTreeMap::new(),
            current: None,
            problem: None,
        }
    }

    pub(crate) fn push(&mut self, upload: Upload) -> Result<(), Status> {
        let UploadItem { view, data } = upload.try_into()?;
        self.seen_bytes += data.len() as u64;
        let views = self.views.len().max(1) as u64;
        if self.seen_bytes
            > self
                .bytes_max
                .saturating_mul(views)
                .saturating_mul(EXCESS_FACTOR)
        {
            return Err(Status::invalid_argument(
                "too_large: the upload does not end",
            ));
        }
        if let Some(view) = view {
            self.begin_file(view)?;
        }
        let Some((_, hash)) = self.hashes.last_mut() else {
            return Err(Status::invalid_argument(
                "the first piece of a file must name its view",
            ));
        };
        hash.update(&data);
        let Some(file) = self
            .current
            .as_ref()
            .and_then(|view| self.files.get_mut(view))
        else {
            return Ok(());
        };
        if (file.len() + data.len()) as u64 > self.bytes_max {
            let detail = format!("a prediction file is longer than {} bytes", self.bytes_max);
            self.refuse(FormatCode::TooLarge, detail);
        } else {
            file.extend_from_slice(&data);
        }
        Ok(())
    }

    fn begin_file(&mut self, view: ViewId) -> Result<(), Status> {
        if self.hashes.len() >= VIEWS_MAX {
            return Err(Status::invalid_argument(format!(
                "too_many_views: at most {VIEWS_MAX} files in one upload"
            )));
        }
        self.hashes.push((view.clone(), Hasher::default()));
        self.current = None;
        if !self.views.contains(&view) {
            self.refuse(
                FormatCode::UnknownView,
                format!("the board scores no view {view}"),
            );
        } else if self.files.contains_key(&view) {
            self.refuse(
                FormatCode::DuplicateView,
                format!("two files for view {view}"),
            );
        } else if self.problem.is_none() {
            self.files.insert(view.clone(), Vec::new());
            self.current = Some(view);
        }
        Ok(())
    }

    // After the first problem bytes are hashed and dropped.
    fn refuse(&mut self, code: FormatCode, detail: String) {
        self.current = None;
        self.files.clear();
        self.problem
            .get_or_insert_with(|| FormatProblem::new(code, detail));
    }

    pub(crate) fn finish(mut self) -> Received {
        if let Some(missing) = self
            .views
            .iter()
            .find(|view| !self.files.contains_key(*view))
        {
            let detail = format!("no prediction file for view {missing}");
            self.refuse(FormatCode::MissingView, detail);
        }
        let mut hasher = Hasher::default();
        for (view, hash) in self.hashes {
            hasher.update(format!("{view} {}\n", hash.finish()).as_bytes());
        }
        Received {
            input: hasher.finish(),
            files: self.problem.map_or(Ok(self.files), Err),
        }
    }
}

/// Reads the next item, at most [`IDLE_TIMEOUT`] from now and not after `end`.
pub(crate) async fn next_item<T>(
    stream: &mut (impl Stream<Item = Result<T, Status>> + Unpin),
    end: Instant,
) -> Result<Option<T>, Status> {
    let until = end.min(Instant::now() + IDLE_TIMEOUT);
    match timeout_at(until, stream.next()).await {
        Ok(item) => item.transpose(),
        Err(_) if until == end => Err(Status::deadline_exceeded("the upload took too long")),
        Err(_) => Err(Status::deadline_exceeded("no data arrived for too long")),
    }
}

/// Reads a whole upload.
pub(crate) async fn receive(
    stream: &mut (impl Stream<Item = Result<Upload, Status>> + Unpin),
    mut assembler: Assembler,
) -> Result<Received, Status> {
    let end = Instant::now() + UPLOAD_TIMEOUT;
    while let Some(upload) = next_item(stream, end).await? {
        assembler.push(upload)?;
    }
    Ok(assembler.finish())
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    fn assembler(bytes_max: u64) -> Assembler {
        let views = ["a", "b"].map(|view| view.parse().expect("view"));
        Assembler::new(views.into(), bytes_max)
    }

    fn piece(view: &str, data: &[u8]) -> Upload {
        Upload {
            view: view.to_owned(),
            data: data.to_vec(),
        }
    }

    fn outcome(bytes_max: u64, pieces: &[Upload]) -> Result<Files, FormatCode> {
        let mut assembler = assembler(bytes_max);
        for piece in pieces {
            assembler.push(piece.clone()).expect("within limits");
        }
        assembler.finish().files.map_err(|problem| problem.code)
    }

    #[test]
    fn pieces_become_files_within_limits() {
        let files =
            outcome(4, &[piece("a", b"12"), piece("", b"34"), piece("b", b"")]).expect("files");
        assert_eq!(
            files.values().cloned().collect::<Vec<_>>(),
            [b"1234".to_vec(), b"".to_vec()]
        );
        for (pieces, code) in [
            (
                vec![piece("a", b"12345"), piece("b", b"")],
                FormatCode::TooLarge,
            ),
            (
                vec![piece("a", b"12"), piece("", b"345"), piece("b", b"1")],
                FormatCode::TooLarge,
            ),
            (vec![piece("a", b"1")], FormatCode::MissingView),
            (vec![], FormatCode::MissingView),
            (
                vec![piece("a", b""), piece("b", b""), piece("c", b"")],
                FormatCode::UnknownView,
            ),
            (
                vec![piece("a", b""), piece("a", b""), piece("b", b"")],
                FormatCode::DuplicateView,
            ),
        ] {
            assert_eq!(outcome(4, &pieces), Err(code), "{pieces:?}");
        }
    }

    #[test]
    fn endless_nameless_and_many_files_are_cut_off() {
        let mut one = assembler(4);
        assert!(one.push(piece("", b"x")).is_err(), "no view");
        let mut one = assembler(4);
        one.push(piece("a", &[0; 32]))
            .expect("4 bytes x 2 views x 4");
        assert_eq!(
            one.push(piece("", b"x")).expect_err("endless").code(),
            Code::InvalidArgument
        );
        let mut one = assembler(4);
        for k in 0..VIEWS_MAX {
            one.push(piece(&format!("v{k}"), b"")).expect("file");
        }
        let error = one.push(piece("w", b"")).expect_err("too many");
        assert!(error.message().contains("too_many_views"), "{error}");
    }

    #[test]
    fn the_input_digest_does_not_depend_on_pieces_and_covers_refused_bytes() {
        let digest = |pieces: &[Upload]| {
            let mut assembler = assembler(4);
            for piece in pieces {
                assembler.push(piece.clone()).expect("push");
            }
            assembler.finish().input
        };
        let whole = digest(&[piece("a", b"1234"), piece("b", b"x")]);
        assert_eq!(
            whole,
            digest(&[piece("a", b"1"), piece("", b"234"), piece("b", b"x")])
        );
        assert_ne!(whole, digest(&[piece("a", b"123"), piece("b", b"4x")]));
        assert_ne!(digest(&[piece("c", b"1")]), digest(&[piece("c", b"2")]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_and_a_dripping_sender_are_given_up() {
        let mut silent = tokio_stream::pending();
        let error = receive(&mut silent, assembler(4))
            .await
            .expect_err("silent");
        assert_eq!(error.message(), "no data arrived for too long");
        let drip = tokio_stream::iter(std::iter::repeat_with(|| Ok(piece("a", b""))).take(1_000));
        let drip = drip.throttle(IDLE_TIMEOUT - Duration::from_secs(1));
        tokio::pin!(drip);
        let error = receive(&mut drip, Assembler::new(BTreeSet::new(), 4))
            .await
            .expect_err("drip");
        assert_eq!(error.message(), "the upload took too long");
    }
}
