//! The object stores behind paths and URLs, made once per process and shared.
//!
//! Local paths go to the file system, `s3://`, `az://` and `gs://` to the services, with credentials from their usual
//! environment variables. Each is wrapped so that what is read is what was opened, that a conditional create has a
//! known outcome, and that what is written locally is on the disk; see the modules.

mod connect;
mod create;
mod durable;
mod explain;
mod guarded;
mod preflight;
mod secrets;
mod traffic;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use tokio::runtime::{Handle, RuntimeFlavor};
use url::Url;

pub(crate) use durable::STAGED;
pub(crate) use explain::{REPLACED, explain, of_chain};
pub(crate) use guarded::short;
pub(crate) use preflight::preflight;
pub use secrets::scrub;
pub use traffic::Traffic;

use crate::error::Result;
use durable::DurableLocal;
use guarded::Guarded;

/// How stores are reached.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreOptions {
    /// Address of the service, where it is not the provider's own.
    pub endpoint: Option<String>,
    /// Whether a service may be talked to without encryption.
    pub allow_http: bool,
    /// How often a request that failed for the moment is sent again.
    pub retries: usize,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// For how long a request is sent again at most.
    pub deadline: Duration,
}

impl std::fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreOptions")
            // It may have a password in it, until that is refused.
            .field("endpoint", &self.endpoint.as_deref().map(without_user))
            .field("allow_http", &self.allow_http)
            .field("retries", &self.retries)
            .field("request_timeout", &self.request_timeout)
            .field("deadline", &self.deadline)
            .finish()
    }
}

/// A URL without user and password.
fn without_user(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None => url.to_owned(),
    }
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            endpoint: None,
            allow_http: false,
            retries: 10,
            request_timeout: Duration::from_secs(30),
            deadline: Duration::from_secs(180),
        }
    }
}

/// The stores of a process. Cheap to clone; clones share connections and counters.
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
    /// Stores that are reached as `options` say, each connected to when it is first asked for.
    #[must_use]
    pub fn new(options: StoreOptions) -> Self {
        let local = DurableLocal::new(LocalFileSystem::new());
        Self(Arc::new(Inner {
            local: Arc::new(Guarded::local(Arc::new(local))),
            options,
            traffic: Arc::default(),
            remote: Mutex::default(),
        }))
    }

    /// Has `store` serve all URLs that begin as `url` does, up to its authority: one that is slow, or fails, to see
    /// what comes of it.
    pub fn register(&self, url: &Url, store: Arc<dyn ObjectStore>) {
        let guarded = Arc::new(Guarded::remote(store, self.0.options.deadline));
        let mut remote = self.0.remote.lock().unwrap_or_else(PoisonError::into_inner);
        remote.insert(key(url), guarded);
    }

    /// What went over the network so far.
    #[must_use]
    pub fn traffic(&self) -> &Traffic {
        &self.0.traffic
    }

    /// The file system of this machine.
    pub(crate) fn local(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.0.local)
    }

    /// The store that holds `url`, which is not a `file:` one.
    ///
    /// # Errors
    /// [`ArchiveError::BadPath`] for a scheme that there is no store for, and what is missing to reach it.
    pub(crate) fn remote(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let key = key(url);
        let mut remote = self.0.remote.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = remote.get(&key) {
            return Ok(Arc::clone(store));
        }
        let store = connect::connect(url, &self.0.options, &self.0.traffic)?;
        let guarded: Arc<dyn ObjectStore> =
            Arc::new(Guarded::remote(store, self.0.options.deadline));
        remote.insert(key, Arc::clone(&guarded));
        Ok(guarded)
    }
}

/// How long an upload that is given up may take to be forgotten by its store.
const GIVE_UP: Duration = Duration::from_millis(500);

/// Waits a moment for an upload to be given up, where waiting is possible: for use when one is dropped.
pub fn give_up<T>(abort: impl Future<Output = T>) {
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    if runtime.runtime_flavor() == RuntimeFlavor::MultiThread {
        let abort = async { tokio::time::timeout(GIVE_UP, abort).await };
        let _ = tokio::task::block_in_place(|| runtime.block_on(abort));
    }
}

/// What tells stores apart.
fn key(url: &Url) -> String {
    format!("{}://{}", url.scheme(), url.authority())
}
