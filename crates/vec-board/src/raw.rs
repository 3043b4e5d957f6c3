//! The raw CSV. Every error names file, line and column, and what would be right.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use csv::StringRecord;
use vec_config::Data;
use vec_types::{Digest, Hasher};

/// Longest accepted raw file in bytes.
const RAW_BYTES_MAX: u64 = 4 << 30;
/// Largest id: whole numbers that every reader of CSV holds exactly.
const ID_MAX: u64 = (1 << 53) - 1;

/// Why the raw data is refused.
#[derive(Debug, thiserror::Error)]
pub enum RawError {
    /// The file cannot be read.
    #[error("{}: cannot read it", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is too long.
    #[error("{}: {bytes} bytes; at most {RAW_BYTES_MAX} are read", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// Something in the file is not as the board says.
    #[error("{}: line {line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line, from 1 (the header).
        line: u64,
        /// What is wrong and what would be right.
        what: String,
    },
}

/// The rows of a raw file; numbers keep the text that they were written with.
pub(crate) struct Raw {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its content.
    pub(crate) sha256: Digest,
    /// Rows in file order.
    pub(crate) rows: Vec<RawRow>,
}

/// One row.
pub(crate) struct RawRow {
    /// Id.
    pub(crate) id: u64,
    /// Feature texts, in the board's order.
    pub(crate) features: Vec<String>,
    /// Target text.
    pub(crate) target: String,
    /// Target.
    pub(crate) target_value: f64,
}

// Positions of the columns that a board uses.
struct Columns {
    id: Option<usize>,
    features: Vec<(usize, String)>,
    target: (usize, String),
}

/// Reads `<dir>/<data.file>`.
pub(crate) fn read(data: &Data, dir: &Path) -> Result<Raw, RawError> {
    let path = dir.join(&data.file);
    let read = |source| RawError::Read {
        path: path.clone(),
        source,
    };
    let bytes = std::fs::metadata(&path).map_err(read)?.len();
    if bytes > RAW_BYTES_MAX {
        return Err(RawError::TooLong { path, bytes });
    }
    let content = std::fs::read(&path).map_err(read)?;
    let mut hasher = Hasher::default();
    hasher.update(&content);
    let rows = rows(data, &content).map_err(|(line, what)| RawError::Line {
        path: path.clone(),
        line,
        what,
    })?;
    Ok(Raw {
        path,
        sha256: hasher.finish(),
        rows,
    })
}

type At = (u64, String);

fn rows(data: &Data, content: &[u8]) -> Result<Vec<RawRow>, At> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .flexible(true)
        .from_reader(content);
    let header = reader.headers().map_err(|error| at(&error))?.clone();
    if header.is_empty() {
        return Err((
            1,
            "the file is empty; a header and data rows are expected".to_owned(),
        ));
    }
    let columns = columns(data, &header).map_err(|what| (1, what))?;
    let mut rows = Vec::new();
    let mut lines: BTreeMap<u64, u64> = BTreeMap::new();
    for record in reader.records() {
        let record = record.map_err(|error| at(&error))?;
        let line = record.position().map_or(0, csv::Position::line);
        if record.len() != header.len() {
            let what = format!("{} fields; the header has {}", record.len(), header.len());
            return Err((line, what));
        }
        let row = row(&columns, &record, rows.len()).map_err(|what| (line, what))?;
        if let Some(first) = lines.insert(row.id, line) {
            return Err((
                line,
                format!("id {} is also on line {first}; ids must differ", row.id),
            ));
        }
        rows.push(row);
    }
    if rows.is_empty() {
        return Err((1, "no rows; a header and data rows are expected".to_owned()));
    }
    Ok(rows)
}

fn at(error: &csv::Error) -> At {
    let line = error.position().map_or(1, csv::Position::line);
    (line, format!("not CSV in UTF-8: {error}"))
}

fn columns(data: &Data, header: &StringRecord) -> Result<Columns, String> {
    let names: Vec<&str> = header.iter().collect();
    let find = |name: &str| {
        let mut found = names
            .iter()
            .enumerate()
            .filter(|(_, column)| **column == name);
        match (found.next(), found.next()) {
            (Some((index, _)), None) => Ok(index),
            (Some(_), Some(_)) => Err(format!("column `{name}` is there twice")),
            (None, _) => Err(format!(
                "no column `{name}`; the header has: {}",
                names.join(", ")
            )),
        }
    };
    let with_name = |name: &String| Ok::<_, String>((find(name)?, name.clone()));
    let columns = Columns {
        id: data.id.as_ref().map(|name| find(name)).transpose()?,
        features: data
            .features
            .iter()
            .map(with_name)
            .collect::<Result<_, _>>()?,
        target: with_name(&data.target)?,
    };
    let expected: Vec<&str> = data
        .id
        .iter()
        .chain(&data.features)
        .chain([&data.target])
        .map(String::as_str)
        .collect();
    match names.iter().find(|name| !expected.contains(*name)) {
        Some(extra) => Err(format!(
            "column `{extra}` is not in the board; expected exactly: {}",
            expected.join(", ")
        )),
        None => Ok(columns),
    }
}

fn row(columns: &Columns, record: &StringRecord, index: usize) -> Result<RawRow, String> {
    let field = |position: usize| record.get(position).unwrap_or_default();
    let id = match columns.id {
        None => index as u64,
        Some(position) => whole(field(position))?,
    };
    let mut features = Vec::with_capacity(columns.features.len());
    for (position, name) in &columns.features {
        number(name, field(*position))?;
        features.push(field(*position).to_owned());
    }
    let (position, name) = &columns.target;
    Ok(RawRow {
        id,
        features,
        target: field(*position).to_owned(),
        target_value: number(name, field(*position))?,
    })
}

fn whole(text: &str) -> Result<u64, String> {
    let id = text.parse().ok().filter(|id| *id <= ID_MAX);
    // One text per id, so that it can be compared as text.
    id.filter(|id: &u64| id.to_string() == text)
        .ok_or_else(|| format!("id `{text}` must be a whole number, 0 to {ID_MAX}"))
}

fn number(column: &str, text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) => Err(format!(
            "column `{column}`: `{text}` is not a finite number"
        )),
        Err(_) => Err(format!("column `{column}`: `{text}` is not a number")),
    }
}
