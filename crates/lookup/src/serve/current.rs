//! The index that answers now, and the next one.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use simhash::Model;

use super::Shared;
use crate::answer::Answerer;
use crate::error::Result;
use crate::files::IndexFiles;
use crate::index::Index;

/// The latest version of the index that was opened.
pub(super) struct Current {
    files: IndexFiles,
    serving: RwLock<Arc<Serving>>,
}

/// One version of the index, with answerers that are not in use.
pub(super) struct Serving {
    index: Index,
    model: Model,
    idle: Mutex<Vec<Answerer>>,
}

impl Serving {
    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    /// Calls `work` with an answerer that nobody else uses.
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
        let serving = Serving {
            model: index.model().await?,
            index,
            idle: Mutex::default(),
        };
        Ok(Self {
            files,
            serving: RwLock::new(Arc::new(serving)),
        })
    }

    /// What answers now. A request keeps it until it is answered.
    pub(super) fn serving(&self) -> Arc<Serving> {
        Arc::clone(&self.serving.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens the latest version, if it is newer. Returns whether it is.
    async fn follow(&self) -> Result<bool> {
        let serving = self.serving();
        let Some(index) = serving.index.newer(&self.files).await? else {
            return Ok(false);
        };
        serving.index.drop_copies(&self.files, &index);
        let next = Serving {
            model: index.model().await?,
            index,
            idle: Mutex::default(),
        };
        *self.serving.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        Ok(true)
    }
}

/// Follows the index, for as long as the server runs. If it cannot be read, the version before goes on answering.
pub(super) async fn refresh(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(shared.settings.refresh).await;
        match shared.current.follow().await {
            Ok(true) => {
                let version = shared.current.serving().index().version();
                tracing::info!("version {version} of the index answers now");
            }
            Ok(false) => {}
            Err(error) => tracing::warn!(
                "the next version of the index: {}",
                storage::scrub(&error.to_string())
            ),
        }
        if let Some(seen) = &shared.seen {
            seen.forget_old();
        }
    }
}
