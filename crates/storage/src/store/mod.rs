//! The object stores behind paths and URLs, each connected to once per process and shared.
//!
//! Local paths go to the file system, `s3://`, `az://` and `gs://` to the services, with credentials from their usual
//! environment variables. Wrappers add three guarantees: reads return the object that was seen first (`pinned`), a
//! conditional create has a known outcome (`create`), and local writes survive a power cut (`durable`).

mod connect;
mod create;
mod durable;
mod lists;
mod options;
mod pinned;
mod traffic;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use tokio::runtime::{Handle, RuntimeFlavor};
use url::Url;

pub use durable::{UNFINISHED_MARK, create_dir_all_synced};
pub use options::StoreOptions;
pub(crate) use pinned::NoReadBack;
pub use pinned::short_body;
pub use traffic::Traffic;

use crate::error::Result;
use durable::DurableLocal;
use pinned::PinnedStore;

/// The object stores of a process. Cheap to clone; clones share connections and counters.
#[derive(Debug, Clone)]
pub struct Stores(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: StoreOptions,
    traffic: Arc<Traffic>,
    local: Arc<dyn ObjectStore>,
    /// By scheme and authority.
    remote: Mutex<HashMap<String, Arc<dyn ObjectStore>>>,
}

impl Default for Stores {
    fn default() -> Self {
        Self::new(StoreOptions::default())
    }
}

impl Stores {
    /// Stores with these settings. Connects to each store when it is first used.
    pub fn new(options: StoreOptions) -> Self {
        let local = DurableLocal(LocalFileSystem::new());
        Self(Arc::new(Inner {
            local: Arc::new(PinnedStore::new(Arc::new(local), None)),
            options,
            traffic: Arc::default(),
            remote: Mutex::default(),
        }))
    }

    /// Serves all URLs with the scheme and authority of `url` from `store`. Tests and benchmarks
    /// register stores that are slow or fail.
    pub fn register(&self, url: &Url, store: Arc<dyn ObjectStore>) {
        let pinned = Arc::new(PinnedStore::new(store, Some(self.0.options.deadline)));
        let mut remote = self.0.remote.lock().unwrap_or_else(PoisonError::into_inner);
        remote.insert(scheme_and_authority(url), pinned);
    }

    /// Counters of network traffic so far.
    pub fn traffic(&self) -> &Traffic {
        &self.0.traffic
    }

    pub(crate) fn local(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.0.local)
    }

    /// The store that holds `url`, which must not be a `file:` URL.
    ///
    /// # Errors
    /// [`BadPath`](crate::StorageError::BadPath) for a scheme without a store; an error that names the missing
    /// credential or the unusable setting.
    pub(crate) fn remote(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let key = scheme_and_authority(url);
        let mut remote = self.0.remote.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = remote.get(&key) {
            return Ok(Arc::clone(store));
        }
        let store = connect::connect(url, &self.0.options, &self.0.traffic)?;
        let pinned: Arc<dyn ObjectStore> =
            Arc::new(PinnedStore::new(store, Some(self.0.options.deadline)));
        remote.insert(key, Arc::clone(&pinned));
        Ok(pinned)
    }
}

fn scheme_and_authority(url: &Url) -> String {
    format!("{}://{}", url.scheme(), url.authority())
}

const BRIEFLY: Duration = Duration::from_millis(500);

/// Runs `work` for at most 500 ms, and blocks the caller meanwhile. `drop`, which is not async,
/// calls it to abort an upload. Does nothing without a multi-threaded runtime.
pub fn wait_briefly<T>(work: impl Future<Output = T>) {
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    if runtime.runtime_flavor() == RuntimeFlavor::MultiThread {
        let work = async { tokio::time::timeout(BRIEFLY, work).await };
        let _ = tokio::task::block_in_place(|| runtime.block_on(work));
    }
}
