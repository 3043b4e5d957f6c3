//! The reader of untrusted prediction files: bytes in, a checked [`Matrix`] or a
//! [`FormatProblem`] out. Runs only inside the parser process (`vec-scorer parse`).
//!
//! Accepted: UTF-8 with or without byte order mark, `\n` or `\r\n`, optional double quotes, blanks
//! around fields, empty lines; header `id,prediction`; ids as plain digits; predictions as
//! decimal numbers with optional sign and exponent. Nothing else.

use std::io::{self, Read};

use csv::{ByteRecord, ReaderBuilder};
use vec_metrics::VALUE_MAX;

use crate::matrix::{Matrix, MatrixError};
use crate::problem::{FormatCode, FormatProblem};

/// The only accepted columns.
const COLUMNS: [&[u8]; 2] = [b"id", b"prediction"];

/// What a prediction may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Longest file in bytes.
    pub bytes_max: u64,
    /// Most rows; the number of test ids.
    pub rows_max: u64,
}

/// Why there is no matrix.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// The file is wrong.
    #[error("prediction is not valid: {}", .0.code.as_str())]
    Format(FormatProblem),
    /// Reading it failed.
    #[error("read the prediction")]
    Read(#[source] io::Error),
}

fn refuse<T>(code: FormatCode, detail: impl AsRef<str>) -> Result<T, ParseError> {
    Err(ParseError::Format(FormatProblem::new(code, detail)))
}

/// Reads one prediction file.
///
/// # Errors
/// [`ParseError::Format`] with the first problem met, [`ParseError::Read`] when `input` fails.
pub fn parse_prediction(input: impl Read, caps: Caps) -> Result<Matrix, ParseError> {
    // One byte more than allowed tells a file at the limit from one beyond it.
    let mut counted = Counted {
        input: input.take(caps.bytes_max.saturating_add(1)),
        seen: 0,
    };
    let result = parse_rows(&mut counted, caps.rows_max);
    if counted.seen > caps.bytes_max {
        let detail = format!("the file is longer than {} bytes", caps.bytes_max);
        return refuse(FormatCode::TooLarge, detail);
    }
    if counted.seen == 0 && !matches!(result, Err(ParseError::Read(_))) {
        return refuse(FormatCode::Empty, "the file is empty");
    }
    result
}

struct Counted<R> {
    input: io::Take<R>,
    seen: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.seen += read as u64;
        Ok(read)
    }
}

fn parse_rows(input: impl Read, rows_max: u64) -> Result<Matrix, ParseError> {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(input);
    let mut record = ByteRecord::new();
    if !next(&mut reader, &mut record)? {
        return refuse(FormatCode::Empty, "the file has no lines");
    }
    check_header(&record)?;
    let mut rows: Vec<(u64, f64)> = Vec::new();
    while next(&mut reader, &mut record)? {
        if rows.len() as u64 >= rows_max {
            return refuse(FormatCode::ExtraRows, format!("more than {rows_max} rows"));
        }
        rows.push(parse_row(&record)?);
    }
    rows.sort_by_key(|(id, _)| *id);
    match Matrix::new(rows.iter().copied()) {
        Ok(matrix) => Ok(matrix),
        Err(MatrixError::Order { row }) => {
            let id = rows.get(row).map_or(0, |(id, _)| *id);
            refuse(
                FormatCode::DuplicateId,
                format!("id {id} stands on more than one line"),
            )
        }
        // Values were checked one by one.
        Err(_) => refuse(FormatCode::NotFinite, "a prediction is not finite"),
    }
}

fn next<R: Read>(reader: &mut csv::Reader<R>, record: &mut ByteRecord) -> Result<bool, ParseError> {
    reader
        .read_byte_record(record)
        .map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(source) => ParseError::Read(source),
            // The reader is flexible and yields bytes: nothing else is left to fail.
            _ => ParseError::Format(FormatProblem::new(FormatCode::BadRow, "not a CSV line")),
        })
}

fn check_header(record: &ByteRecord) -> Result<(), ParseError> {
    let found: Vec<&[u8]> = record.iter().take(3).map(<[u8]>::trim_ascii).collect();
    if found == COLUMNS {
        return Ok(());
    }
    if std::str::from_utf8(record.as_slice()).is_err() {
        return refuse(FormatCode::NotUtf8, "line 1 is not UTF-8");
    }
    let columns = record.len();
    refuse(
        FormatCode::BadHeader,
        format!("line 1 must be `id,prediction` (found {columns} columns)"),
    )
}

fn parse_row(record: &ByteRecord) -> Result<(u64, f64), ParseError> {
    let line = record.position().map_or(0, csv::Position::line);
    if std::str::from_utf8(record.as_slice()).is_err() {
        return refuse(FormatCode::NotUtf8, format!("line {line} is not UTF-8"));
    }
    let (2, Some(id), Some(value)) = (record.len(), record.get(0), record.get(1)) else {
        let fields = record.len();
        return refuse(
            FormatCode::BadRow,
            format!("line {line} has {fields} fields, not 2"),
        );
    };
    let Some(id) = parse_id(id.trim_ascii()) else {
        return refuse(
            FormatCode::BadId,
            format!("line {line}: the id is not a whole number"),
        );
    };
    match parse_number(value.trim_ascii()) {
        Ok(value) => Ok((id, value)),
        Err(code) => {
            let what = match code {
                FormatCode::NotFinite => "not a finite number",
                FormatCode::OutOfRange => "beyond ±1e300",
                _ => "not a decimal number",
            };
            refuse(code, format!("line {line}: the prediction is {what}"))
        }
    }
}

/// Plain ASCII digits without leading zeros, so that every id has one text.
fn parse_id(text: &[u8]) -> Option<u64> {
    let plain =
        text.iter().all(u8::is_ascii_digit) && (text.len() == 1 || text.first() != Some(&b'0'));
    if plain {
        std::str::from_utf8(text).ok()?.parse().ok()
    } else {
        None
    }
}

fn parse_number(text: &[u8]) -> Result<f64, FormatCode> {
    let unsigned = text
        .strip_prefix(b"-")
        .or(text.strip_prefix(b"+"))
        .unwrap_or(text);
    let names = [b"nan".as_slice(), b"inf", b"infinity"];
    if names.iter().any(|name| unsigned.eq_ignore_ascii_case(name)) {
        return Err(FormatCode::NotFinite);
    }
    // Rust accepts no hexadecimal floats or digit groups, but it does accept the names above.
    let decimal = |b: &u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E');
    if !text.iter().all(decimal) {
        return Err(FormatCode::NotANumber);
    }
    let text = std::str::from_utf8(text).map_err(|_| FormatCode::NotANumber)?;
    let value: f64 = text.parse().map_err(|_| FormatCode::NotANumber)?;
    if !value.is_finite() {
        Err(FormatCode::NotFinite)
    } else if value.abs() > VALUE_MAX {
        Err(FormatCode::OutOfRange)
    } else {
        Ok(value)
    }
}

#[cfg(test)]
mod tests;
