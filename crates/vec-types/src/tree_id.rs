//! Git object ids, kept as bytes: a node holds three of them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::digest::nibble;
use crate::ids::{IdError, refuse};

const SHA1_LEN: usize = 20;
const SHA256_LEN: usize = 32;

/// A git tree id of programs.git or of `code/`: lower-case hex, 64 digits in a SHA-256
/// repository, 40 in a SHA-1 one. Ordered as its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TreeId {
    /// A SHA-1 id is filled up with zeros.
    bytes: [u8; SHA256_LEN],
    format: Format,
}

/// A shorter text stands before the longer one that it begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Format {
    Sha1,
    Sha256,
}

impl TreeId {
    /// The raw bytes, 20 or 32.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self.format {
            Format::Sha1 => &self.bytes[..SHA1_LEN],
            Format::Sha256 => &self.bytes,
        }
    }
}

impl fmt::Display for TreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.as_bytes() {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for TreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TreeId({self})")
    }
}

impl FromStr for TreeId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let refused = || refuse("git object id", text, "40 or 64 lower-case hex digits");
        let format = match text.len() / 2 {
            _ if !text.len().is_multiple_of(2) => return Err(refused()),
            SHA1_LEN => Format::Sha1,
            SHA256_LEN => Format::Sha256,
            _ => return Err(refused()),
        };
        let mut bytes = [0; SHA256_LEN];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let high = nibble(pair[0]).ok_or_else(refused)?;
            let low = nibble(pair[1]).ok_or_else(refused)?;
            *byte = high << 4 | low;
        }
        Ok(Self { bytes, format })
    }
}

impl TryFrom<String> for TreeId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<TreeId> for String {
    fn from(id: TreeId) -> Self {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_round_trip_and_keep_their_order(
            a in "[0-9a-f]{40}([0-9a-f]{24})?",
            b in "[0-9a-f]{40}([0-9a-f]{24})?",
        ) {
            let ids = (a.parse::<TreeId>().expect("hex"), b.parse::<TreeId>().expect("hex"));
            prop_assert_eq!(&ids.0.to_string(), &a);
            prop_assert_eq!(ids.0.cmp(&ids.1), a.cmp(&b));
        }
    }

    #[test]
    fn a_short_id_stands_before_its_long_one() {
        let [short, long] = [40, 64].map(|len| "0".repeat(len).parse::<TreeId>().expect("hex"));
        assert!(short < long);
        assert_ne!(short, long);
    }

    #[test]
    fn other_texts_are_refused() {
        for bad in [
            "",
            "ab",
            &"a".repeat(41),
            &"a".repeat(63),
            &"A".repeat(64),
            &"é".repeat(20),
        ] {
            assert!(bad.parse::<TreeId>().is_err(), "{bad}");
        }
    }
}
