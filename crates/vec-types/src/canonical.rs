//! The one way in which documents that we hash are written: compact JSON, sorted keys, shortest
//! round-trip numbers, integers below 2^53 (`decisions.md`, Formats).

use serde::Serialize;
use serde_json::{Number, Value};

/// Integers at or above this do not survive readers that use doubles.
const INTEGER_LIMIT: u64 = 1 << 53;

/// Why a value cannot be written canonically.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// The value has no JSON form.
    #[error("encode as JSON")]
    Encode(#[source] serde_json::Error),
    /// An integer outside ±2^53, which JSON readers round.
    #[error("integer {0} is outside ±2^53 and would not survive a JSON reader")]
    Integer(Number),
}

/// Compact JSON with sorted keys.
///
/// # Errors
/// [`CanonicalError`] when the value has no JSON form or holds an integer outside ±2^53.
pub fn canonical_json<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let value = checked(value)?;
    serde_json::to_vec(&value).map_err(CanonicalError::Encode)
}

/// Indented JSON with sorted keys and a final newline, for files that people read.
///
/// # Errors
/// As [`canonical_json`].
pub fn pretty_json<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let value = checked(value)?;
    let mut bytes = serde_json::to_vec_pretty(&value).map_err(CanonicalError::Encode)?;
    bytes.push(b'\n');
    Ok(bytes)
}

// serde_json's map is a BTreeMap (feature `preserve_order` off), so a Value has sorted keys.
fn checked<T: Serialize + ?Sized>(value: &T) -> Result<Value, CanonicalError> {
    let value = serde_json::to_value(value).map_err(CanonicalError::Encode)?;
    check_integers(&value)?;
    Ok(value)
}

fn check_integers(value: &Value) -> Result<(), CanonicalError> {
    match value {
        Value::Number(number) => {
            let magnitude = match (number.as_u64(), number.as_i64()) {
                (Some(n), _) => n,
                (None, Some(n)) => n.unsigned_abs(),
                (None, None) => 0,
            };
            if magnitude >= INTEGER_LIMIT {
                return Err(CanonicalError::Integer(number.clone()));
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(check_integers),
        Value::Object(map) => map.values().try_for_each(check_integers),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_sorted_and_numbers_short() {
        let bytes = canonical_json(&json!({"b": 0.1, "a": [1, -2, 1e300]})).expect("encodes");
        assert_eq!(bytes, br#"{"a":[1,-2,1e+300],"b":0.1}"#);
    }

    #[test]
    fn integers_that_doubles_cannot_hold_are_refused() {
        assert!(canonical_json(&json!([INTEGER_LIMIT - 1])).is_ok());
        assert!(canonical_json(&json!({"x": [INTEGER_LIMIT]})).is_err());
        assert!(canonical_json(&json!(i64::MIN)).is_err());
    }

    #[test]
    fn non_finite_numbers_become_null_never_text() {
        assert_eq!(canonical_json(&f64::NAN).expect("encodes"), b"null");
    }
}
