//! Word ids: names of views, rulers, families and seed programs. A run holds the same few names in
//! every node, so an id is one pointer to a text that copies share.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Pool;
use crate::ids::{ID_LEN_MAX, IdError, refuse};

const WORD_RULE: &str = "1 to 96 of a-z A-Z 0-9 . _ - and not starting with . or -";

pub(crate) fn is_word(text: &str) -> bool {
    let first = text.bytes().next();
    text.len() <= ID_LEN_MAX
        && first.is_some_and(|b| b != b'.' && b != b'-')
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

macro_rules! word_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<Box<str>>);

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Lets it point at the pool's copy of its text.
            pub fn share(&mut self, pool: &mut Pool<Box<str>>) {
                pool.share(&mut self.0);
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                if is_word(text) {
                    Ok(Self(Arc::new(text.into())))
                } else {
                    Err(refuse($kind, text, WORD_RULE))
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.as_str().to_owned()
            }
        }
    };
}

word_id!(
    /// A view: the inputs that a program may read (`views/<view>/`).
    ViewId, "view id");
word_id!(
    /// A ruler: one local evaluation target.
    RulerId, "ruler id");
word_id!(
    /// A method family of the idea library.
    FamilyId, "family id");
word_id!(
    /// A category of the idea library: what several families have in common (DRF-01).
    CategoryId, "category id");
word_id!(
    /// A seed program's directory name (SED-01).
    SeedProgramId, "seed program id");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_leave_their_directory() {
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "-x",
            ".hidden",
            "a b",
            "ü",
            &"x".repeat(97),
        ] {
            assert!(bad.parse::<ViewId>().is_err(), "{bad}");
        }
        assert!("T1:val".parse::<ViewId>().is_err());
    }

    #[test]
    fn equal_words_come_to_share_one_text() {
        let word = |text: &str| text.parse::<FamilyId>().expect("fits");
        let (mut one, mut same, mut other) = (word("a"), word("a"), word("b"));
        let mut pool = Pool::default();
        for word in [&mut one, &mut same, &mut other] {
            word.share(&mut pool);
        }
        assert!(Arc::ptr_eq(&one.0, &same.0));
        assert_eq!((same.as_str(), other.as_str(), pool.len()), ("a", "b", 2));
        assert_eq!(serde_json::to_string(&same).expect("json"), "\"a\"");
    }
}
