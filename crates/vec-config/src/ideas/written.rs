//! The front matter as written: every key optional, no value checked.

use serde::Deserialize;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenIdeas {
    pub(super) board: Option<String>,
    pub(super) categories: Option<Vec<String>>,
    pub(super) families: Option<Vec<WrittenFamily>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenFamily {
    pub(super) id: Option<String>,
    pub(super) category: Option<String>,
    pub(super) title: Option<String>,
}
