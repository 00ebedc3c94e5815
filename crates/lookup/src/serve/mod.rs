//! An HTTP server that answers lookups.
//!
//! A request goes through `connections` (accept, TLS, timeouts), `routes` (which answer), `admission` (is there room for it) and `api`
//! (JSON in, lookup, JSON out). What it holds in memory at once is bounded at each step: connections, bytes of bodies, requests that wait.
//! `current` follows the index: a new version takes the place of the old one between two requests.

mod admission;
mod api;
mod body;
mod connections;
mod current;
mod metrics;
mod problem;
mod routes;
mod tls;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::error::{LookupError, Result};
use crate::files::IndexFiles;
use crate::index::Index;
use crate::seen::{Remember, Seen};
use admission::Admission;
use current::Current;
use metrics::Metrics;

pub use tls::TlsFiles;

/// How to serve.
#[derive(Clone)]
pub struct ServeSettings {
    /// The address to listen on; port 0 takes a free port.
    pub listen: SocketAddr,
    /// The keys, to serve HTTPS.
    pub tls: Option<TlsFiles>,
    /// Serve other machines without TLS, or without a token or client certificates.
    pub insecure: bool,
    /// What clients must send as `Authorization: Bearer`. Never printed.
    pub token: Option<String>,
    /// Threads that look up.
    pub threads: usize,
    /// Bytes of a request's body, at most.
    pub max_body: usize,
    /// Requests that wait for a thread, at most; more are refused.
    pub queue: usize,
    /// Connections, at most; more wait to be accepted.
    pub connections: usize,
    /// Time for a client to send a request, to read a part of its answer, and for a request to wait for a thread.
    pub timeout: Duration,
    /// Time for requests in progress when the server is asked to stop.
    pub drain: Duration,
    /// How often to look for a new version of the index.
    pub refresh: Duration,
    /// Where `POST /v1/seen` remembers fingerprints; without it, there is no such route.
    pub remember: Option<Remember>,
    /// Texts by id, to show beside hits.
    pub texts: Arc<HashMap<String, String>>,
}

/// Queries of one request, at most.
const MAX_BATCH: usize = 10_000;

/// What all requests share.
struct Shared {
    settings: ServeSettings,
    current: Current,
    admission: Admission,
    metrics: Metrics,
    seen: Option<Seen>,
    draining: AtomicBool,
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<tokio_rustls::TlsAcceptor>,
    shared: Arc<Shared>,
}

impl Server {
    /// Listens, and opens what is remembered. Requests wait until [`Self::run`].
    ///
    /// # Errors
    /// [`LookupError`] when the address is taken, or exposed without TLS, or a file cannot be read.
    pub async fn bind(files: &IndexFiles, index: Index, settings: ServeSettings) -> Result<Self> {
        let tls = settings.tls.as_ref().map(TlsFiles::acceptor).transpose()?;
        let is_exposed = !settings.listen.ip().to_canonical().is_loopback();
        let knows_clients = settings
            .tls
            .as_ref()
            .is_some_and(|tls| tls.authority.is_some());
        let is_safe = tls.is_some() && (knows_clients || settings.token.is_some());
        if is_exposed && !is_safe {
            if !settings.insecure {
                return Err(LookupError::Exposed {
                    address: settings.listen,
                });
            }
            tracing::warn!(
                "listening at {} without encryption, or without a token or client certificates: whoever reaches this port can ask",
                settings.listen
            );
        }
        let seen = match &settings.remember {
            None => None,
            Some(remember) => Some(Seen::open(remember)?),
        };
        let io = || LookupError::io(format!("listening at {}", settings.listen));
        let listener = TcpListener::bind(settings.listen).await.map_err(io())?;
        let address = listener.local_addr().map_err(io())?;
        let shared = Shared {
            current: Current::new(files.clone(), index).await?,
            admission: Admission::new(&settings),
            metrics: Metrics::default(),
            seen,
            draining: AtomicBool::new(false),
            settings,
        };
        Ok(Self {
            listener,
            address,
            tls,
            shared: Arc::new(shared),
        })
    }

    /// The address, with the port that was taken.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Serves until `stop` ends, then answers the requests in progress.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let refreshing = tokio::spawn(current::refresh(Arc::clone(&self.shared)));
        connections::serve(self.listener, self.tls, Arc::clone(&self.shared), stop).await;
        refreshing.abort();
    }
}

/// A file of PEM.
pub(crate) fn read_file(path: &PathBuf) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(LookupError::io(path.display()))
}
