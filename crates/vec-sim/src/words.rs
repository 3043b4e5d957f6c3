//! One list per enum: variants, their words and `ALL` from the same lines, so none is forgotten.

/// An enum without data whose variants have words.
macro_rules! words {
    ($(#[$head:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$head])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Every variant, in the order of the reports.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word in reports.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

pub(crate) use words;
