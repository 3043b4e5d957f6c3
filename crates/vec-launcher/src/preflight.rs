//! The self-test before spending (`decisions.md`): every item looks at one thing that a run needs,
//! and says in one line what is wrong and what to do. A launch refuses on the first item that
//! fails. Items that depend on content only are cached by it.

mod cache;
mod host;
mod models;
mod sandbox;
mod scorer;

use std::collections::BTreeSet;
use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use vec_config::IsolationLevel;

use crate::deps::Deps;
use crate::prepare::Prepared;

pub(crate) use scorer::Prebuilt;

/// Longest single item.
const ITEM_TIMEOUT: Duration = Duration::from_secs(60);

/// One looked-at thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// One word.
    pub name: String,
    /// In order.
    pub ok: bool,
    /// What was seen, or what is wrong and what to do.
    pub detail: String,
    /// Time that it took in milliseconds.
    pub wall_ms: u32,
}

/// What preflight found out for the lock.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) items: Vec<Item>,
    pub(crate) isolation: BTreeSet<IsolationLevel>,
    /// Absent if the scorer failed.
    pub(crate) prebuilt: Option<Prebuilt>,
}

impl Findings {
    /// The first item that failed.
    pub(crate) fn failed(&self) -> Option<&Item> {
        self.items.iter().find(|item| !item.ok)
    }

    // Records an item and gives its value, if it is in order.
    async fn look<T>(
        &mut self,
        name: &str,
        work: impl Future<Output = Result<(T, String), String>>,
    ) -> Option<T> {
        let began = Instant::now();
        let seen = tokio::time::timeout(ITEM_TIMEOUT, work).await;
        let (value, detail) = match seen {
            Ok(Ok((value, detail))) => (Some(value), detail),
            Ok(Err(problem)) => (None, problem),
            Err(_) => (
                None,
                format!("no result within {} s", ITEM_TIMEOUT.as_secs()),
            ),
        };
        self.items.push(Item {
            name: name.to_owned(),
            ok: value.is_some(),
            detail,
            wall_ms: u32::try_from(began.elapsed().as_millis()).unwrap_or(u32::MAX),
        });
        value
    }
}

/// Looks at everything; later items run even if earlier ones failed, so that a person sees all
/// problems at once.
pub(crate) async fn preflight(deps: &Deps, prepared: &Prepared, root: &Path) -> Findings {
    let mut found = Findings {
        items: Vec::new(),
        isolation: BTreeSet::new(),
        prebuilt: None,
    };
    found
        .look("disk", async { host::disk(prepared, root) })
        .await;
    found.look("memory", async { host::memory(prepared) }).await;
    found
        .look("runtime_dir", async { host::runtime_dir(&deps.runtime) })
        .await;
    found
        .look("models", async { models::models(prepared) })
        .await;
    found
        .look("supervisor", async { Ok(((), deps.supervision.words())) })
        .await;
    let isolation = found.look("sandbox", sandbox::probe(prepared)).await;
    let works = isolation.is_some();
    found.isolation = isolation.unwrap_or_default();
    let key = cache::key(prepared, deps.surroundings.uid);
    let cached = key.and_then(|key| cache::read(&prepared.data_root, key));
    if let Some(cached) = cached.filter(|_| works) {
        let python = cached.python.clone();
        found
            .look("python", async { Ok(((), format!("{python} (cached)"))) })
            .await;
        let numbers = cached.prebuilt.words();
        found
            .look("scorer", async { Ok(((), format!("{numbers} (cached)"))) })
            .await;
        found.prebuilt = Some(cached.prebuilt);
        return found;
    }
    if works {
        found
            .look("python", sandbox::python(prepared, &deps.runtime))
            .await;
    }
    found.prebuilt = found.look("scorer", scorer::prebuild(prepared)).await;
    if let (Some(key), Some(prebuilt), None) = (key, &found.prebuilt, found.failed()) {
        let python = found.items.iter().find(|item| item.name == "python");
        let python = python.map(|item| item.detail.clone()).unwrap_or_default();
        cache::write(&prepared.data_root, key, python, prebuilt.clone());
    }
    found
}
