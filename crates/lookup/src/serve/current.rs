//! The open version of the index, and its replacement by newer ones.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use super::Shared;
use crate::answer::Answerer;
use crate::error::{LookupError, Result};
use crate::files::IndexFiles;
use crate::index::Index;
use crate::text_model::TextModel;

/// Where requests get the open version of the index.
pub(super) struct Current {
    files: IndexFiles,
    serving: RwLock<Arc<OpenVersion>>,
}

/// An open version of the index, with a pool of answerers.
pub(super) struct OpenVersion {
    pub(super) index: Index,
    model: TextModel,
    idle: Mutex<Vec<Answerer>>,
    is_damaged: AtomicBool,
}

impl OpenVersion {
    async fn new(index: Index) -> Result<Self> {
        Ok(Self {
            model: index.model().await?,
            index,
            idle: Mutex::default(),
            is_damaged: AtomicBool::new(false),
        })
    }

    /// Notes damage of the index, so that damaged copies of its segments are replaced.
    pub(super) fn note(&self, error: &LookupError) {
        if matches!(error, LookupError::Damaged { .. }) {
            self.is_damaged.store(true, Ordering::Relaxed);
        }
    }

    /// Calls `work` with an answerer from the pool, or a new one.
    pub(super) fn with_answerer<T>(&self, work: impl FnOnce(&mut Answerer) -> T) -> T {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut answerer = taken.unwrap_or_else(|| Answerer::new(&self.index, &self.model));
        let done = work(&mut answerer);
        idle().push(answerer);
        done
    }
}

impl Current {
    pub(super) async fn new(files: IndexFiles, index: Index) -> Result<Self> {
        let serving = OpenVersion::new(index).await?;
        Ok(Self {
            files,
            serving: RwLock::new(Arc::new(serving)),
        })
    }

    /// The open version. A request keeps it to its end, even if a newer one is opened.
    pub(super) fn serving(&self) -> Arc<OpenVersion> {
        Arc::clone(&self.serving.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens the latest version if it is newer than the open one. Returns whether it was.
    async fn follow(&self) -> Result<bool> {
        let serving = self.serving();
        let mut next = serving.index.newer(&self.files).await?;
        if next.is_none() && serving.is_damaged.swap(false, Ordering::Relaxed) {
            next = serving.index.repaired(&self.files).await?;
        }
        let Some(index) = next else {
            return Ok(false);
        };
        let next = OpenVersion::new(index).await?;
        // Only now is it certain that the new version answers.
        serving.index.drop_copies(&self.files, &next.index);
        *self.serving.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        Ok(true)
    }
}

/// Reads the open version into the system's page cache, in the background.
pub(super) fn read_ahead(shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        let index = shared.current.serving().index.clone();
        let is_old = || {
            shared.draining.load(Ordering::Relaxed)
                || shared.current.serving().index.version() != index.version()
        };
        let (begin, limit) = (Instant::now(), shared.settings.read_ahead);
        index.read_ahead(limit, is_old);
        tracing::info!("read the index ahead in {:.1?}", begin.elapsed());
    });
}

/// Opens new versions of the index, and forgets old documents, for as long as the server runs. If a version cannot be
/// opened, requests go on with the one before.
pub(super) async fn refresh(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(shared.settings.refresh).await;
        let followed = shared.current.follow().await;
        match &followed {
            Ok(_) => shared.is_lost.store(false, Ordering::Relaxed),
            Err(LookupError::NotAnIndex { .. }) => shared.is_lost.store(true, Ordering::Relaxed),
            // The store does not say.
            Err(_) => {}
        }
        match followed {
            Ok(true) => {
                let version = shared.current.serving().index.version();
                tracing::info!("opened version {version} of the index");
                read_ahead(&shared);
            }
            Ok(false) => {}
            Err(error) => tracing::warn!(
                "cannot open the next version of the index: {}",
                storage::scrub(&error.to_string())
            ),
        }
        let forgetting = Arc::clone(&shared);
        let forget_old = move || {
            if let Some(seen) = &forgetting.seen {
                seen.forget_old();
            }
        };
        // If this panics, the next turn tries again.
        let _ = tokio::task::spawn_blocking(forget_old).await;
    }
}
