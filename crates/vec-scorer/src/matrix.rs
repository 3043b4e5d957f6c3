//! The flat matrix that a parser process hands to the metric step, and nothing else passes.
//!
//! Format, version 1, little-endian: 8 bytes `VECMAT\x01\x00`, u64 row count n, then n times
//! (u64 id, f64 prediction), ids strictly ascending, predictions finite and within ±1e300, no
//! byte after the last row. The reader checks all of it again: the writer has seen hostile bytes.

use vec_metrics::VALUE_MAX;

const MAGIC: [u8; 8] = *b"VECMAT\x01\x00";
const HEADER_LEN: usize = 16;
const ROW_LEN: usize = 16;

/// Predictions by id, ids strictly ascending.
#[derive(Clone, PartialEq, Default)]
pub struct Matrix {
    ids: Vec<u64>,
    values: Vec<f64>,
}

/// Why bytes are no matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// Not the version that this program reads.
    #[error("not a flat matrix of version 1")]
    Magic,
    /// The length does not fit the row count.
    #[error("length does not fit the row count")]
    Length,
    /// Ids do not ascend. `row` counts from 0.
    #[error("ids do not ascend at row {row}")]
    Order {
        /// The row, from 0.
        row: usize,
    },
    /// A value is not finite or beyond ±1e300. `row` counts from 0.
    #[error("value at row {row} is not finite")]
    Value {
        /// The row, from 0.
        row: usize,
    },
}

impl Matrix {
    /// Checks and wraps rows.
    ///
    /// # Errors
    /// [`MatrixError`] for ids that do not ascend and for values that are not finite.
    pub fn new(rows: impl IntoIterator<Item = (u64, f64)>) -> Result<Self, MatrixError> {
        let (ids, values): (Vec<u64>, Vec<f64>) = rows.into_iter().unzip();
        if let Some(before) = ids.windows(2).position(|pair| pair[0] >= pair[1]) {
            return Err(MatrixError::Order { row: before + 1 });
        }
        let within = |value: &f64| value.is_finite() && value.abs() <= VALUE_MAX;
        match values.iter().position(|value| !within(value)) {
            Some(row) => Err(MatrixError::Value { row }),
            None => Ok(Self { ids, values }),
        }
    }

    /// Ids, strictly ascending.
    #[must_use]
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// Prediction for `id`.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<f64> {
        let row = self.ids.binary_search(&id).ok()?;
        self.values.get(row).copied()
    }

    /// Longest encoding of a matrix with at most `rows` rows.
    #[must_use]
    pub const fn encoded_len(rows: usize) -> usize {
        HEADER_LEN + rows * ROW_LEN
    }

    /// The flat form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::encoded_len(self.ids.len()));
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&(self.ids.len() as u64).to_le_bytes());
        for (id, value) in self.ids.iter().zip(&self.values) {
            bytes.extend_from_slice(&id.to_le_bytes());
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// Reads and checks the flat form.
    ///
    /// # Errors
    /// [`MatrixError`] for anything that [`Self::encode`] does not write.
    pub fn decode(bytes: &[u8]) -> Result<Self, MatrixError> {
        let (magic, rest) = bytes.split_first_chunk::<8>().ok_or(MatrixError::Magic)?;
        if *magic != MAGIC {
            return Err(MatrixError::Magic);
        }
        let (count, body) = rest.split_first_chunk::<8>().ok_or(MatrixError::Length)?;
        let fits = usize::try_from(u64::from_le_bytes(*count))
            .ok()
            .and_then(|rows| rows.checked_mul(ROW_LEN))
            .is_some_and(|len| len == body.len());
        if !fits {
            return Err(MatrixError::Length);
        }
        let rows = body.chunks_exact(ROW_LEN).filter_map(|row| {
            let (id, value) = row.split_first_chunk::<8>()?;
            let value = value.first_chunk::<8>()?;
            Some((u64::from_le_bytes(*id), f64::from_le_bytes(*value)))
        });
        Self::new(rows)
    }
}

// Predictions are the candidate's secret from nobody, but they do not belong in logs.
impl std::fmt::Debug for Matrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Matrix({} rows)", self.ids.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_broken_form_is_refused() {
        let good = Matrix::new([(1, 0.5), (7, -2.0)]).expect("rows").encode();
        assert_eq!(good.len(), Matrix::encoded_len(2));
        assert!(Matrix::decode(&good).is_ok());
        let with = |at: usize, bytes: &[u8]| {
            let mut broken = good.clone();
            broken[at..at + bytes.len()].copy_from_slice(bytes);
            Matrix::decode(&broken)
        };
        assert_eq!(with(0, b"X"), Err(MatrixError::Magic));
        assert_eq!(with(8, &u64::MAX.to_le_bytes()), Err(MatrixError::Length));
        assert_eq!(
            with(8, &(1_u64 << 60).to_le_bytes()),
            Err(MatrixError::Length)
        );
        assert_eq!(with(8, &1_u64.to_le_bytes()), Err(MatrixError::Length));
        assert_eq!(
            with(32, &1_u64.to_le_bytes()),
            Err(MatrixError::Order { row: 1 })
        );
        for bad in [f64::NAN, f64::INFINITY, 2e300] {
            assert_eq!(
                with(24, &bad.to_le_bytes()),
                Err(MatrixError::Value { row: 0 })
            );
        }
        for len in 0..good.len() {
            assert!(Matrix::decode(&good[..len]).is_err(), "{len}");
        }
        assert_eq!(
            Matrix::decode(&[good.as_slice(), b"x"].concat()),
            Err(MatrixError::Length)
        );
    }

    proptest! {
        #[test]
        fn the_flat_form_round_trips(rows in proptest::collection::btree_map(any::<u64>(), -1e300..1e300_f64, 0..50)) {
            let matrix = Matrix::new(rows.clone()).expect("rows");
            prop_assert_eq!(Matrix::decode(&matrix.encode()), Ok(matrix.clone()));
            prop_assert!(rows.iter().all(|(id, value)| matrix.get(*id) == Some(*value)));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut framed = MAGIC.to_vec();
            framed.extend_from_slice(&bytes);
            prop_assert!(Matrix::decode(&bytes).is_err() || bytes.starts_with(&MAGIC));
            drop(Matrix::decode(&framed));
        }
    }
}
