//! The known key that somebody probably meant.

/// The candidate with the smallest edit distance to `word`, the first of equals.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    candidates
        .into_iter()
        .min_by_key(|candidate| strsim::osa_distance(word, candidate))
}
