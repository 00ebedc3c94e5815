//! An HTTP server that answers lookups.
//!
//! ```text
//! connections    accepts at most --connections of them, TLS, timeouts
//! └─▶ routes     checks the host (421) and the token (401), chooses the handler
//!     └─▶ api    1. body: reads the body, if admission has room for it (408, 413, 429)
//!                2. parses it (400)
//!                3. admission: waits for a thread (429, 503)
//!                4. current: looks up, with an answerer of the open index
//!                5. seen: finds and remembers, waits for the disk (503)
//! ```
//!
//! `current` opens new versions of the index in the background. A request keeps the version with which it began.

mod admission;
mod api;
mod body;
mod connections;
mod current;
mod host;
mod metrics;
mod object;
mod problem;
mod routes;
mod tls;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};

use crate::error::{LookupError, Result};
use crate::files::IndexFiles;
use crate::index::Index;
use crate::seen::{Remember, Seen};
use admission::Admission;
use current::Current;
use metrics::Metrics;

pub use tls::TlsFiles;

#[derive(Clone)]
pub struct ServeSettings {
    /// The address to listen on; port 0 takes a free port.
    pub listen: SocketAddr,
    /// Certificate and key, to serve HTTPS.
    pub tls: Option<TlsFiles>,
    /// Allow an address that other machines reach without TLS, or without a token or client certificates.
    pub insecure: bool,
    /// The token that clients must send, as `Authorization: Bearer`. Never printed.
    pub token: Option<String>,
    /// Threads that look up.
    pub threads: usize,
    /// The most bytes of a request's body.
    pub max_body: usize,
    /// The most requests that wait for a thread; more are refused.
    pub queue: usize,
    /// The most open connections; more wait to be accepted.
    pub connections: usize,
    /// Limits four waits: for a TLS handshake or a request to arrive, for a client to take a part of its response, for
    /// an idle connection's next request, and for a thread.
    pub timeout: Duration,
    /// How long requests in progress may go on after the server was asked to stop.
    pub drain: Duration,
    /// How often to look for a new version of the index.
    pub refresh: Duration,
    /// The most bytes of the index to read into the system's page cache when a version is opened.
    pub read_ahead: u64,
    /// Names by which clients reach the server. Without a token and client certificates, it answers requests to these
    /// names, to addresses and to `localhost` only.
    pub host_names: Vec<String>,
    /// Where and how long `POST /v1/seen` remembers documents; if `None`, it answers 404.
    pub remember: Option<Remember>,
    /// Texts by id, which are added to hits.
    pub texts: Arc<HashMap<String, String>>,
}

/// Connections that may wait to be accepted, if the system allows as many. When they are too many, a client tries again
/// after a second.
const BACKLOG: u32 = 4096;

const MAX_BATCH: usize = 10_000;

/// What all requests share.
struct Shared {
    settings: ServeSettings,
    current: Current,
    admission: Admission,
    metrics: Metrics,
    seen: Option<Seen>,
    draining: AtomicBool,
    /// Whether the index was not found lately.
    is_lost: AtomicBool,
    /// Whether anybody may ask, so that only the name that a client uses says whether it means this server.
    checks_host: bool,
}

pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<tokio_rustls::TlsAcceptor>,
    shared: Arc<Shared>,
}

impl Server {
    /// Binds the address, and reads the remembered documents. Connections wait until [`Self::run`].
    ///
    /// # Errors
    /// [`LookupError`] when the address is taken, or reachable from other machines without TLS and a token or client
    /// certificates, or a file cannot be read.
    pub async fn bind(files: &IndexFiles, index: Index, settings: ServeSettings) -> Result<Self> {
        let tls = settings.tls.as_ref().map(TlsFiles::acceptor).transpose()?;
        let is_exposed = !settings.listen.ip().to_canonical().is_loopback();
        let knows_clients = settings
            .tls
            .as_ref()
            .is_some_and(|tls| tls.authority.is_some());
        let is_safe = tls.is_some() && (knows_clients || settings.token.is_some());
        let checks_host = !(knows_clients || settings.token.is_some() || settings.insecure);
        if is_exposed && !is_safe {
            if !settings.insecure {
                return Err(LookupError::Exposed {
                    address: settings.listen,
                });
            }
            tracing::warn!(
                "--insecure: whoever reaches {} can look up documents, or read the traffic of others",
                settings.listen
            );
        }
        let seen = match &settings.remember {
            None => None,
            Some(remember) => Some(Seen::open(remember)?),
        };
        let io = || LookupError::io(format!("listening at {}", settings.listen));
        let listener = listen(settings.listen).map_err(io())?;
        let address = listener.local_addr().map_err(io())?;
        let shared = Shared {
            current: Current::new(files.clone(), index).await?,
            admission: Admission::new(&settings),
            metrics: Metrics::default(),
            seen,
            draining: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            checks_host,
            settings,
        };
        Ok(Self {
            listener,
            address,
            tls,
            shared: Arc::new(shared),
        })
    }

    /// The address that it listens on, with the port that port 0 became.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Serves until `stop` ends, then answers the requests in progress.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        current::read_ahead(&self.shared);
        let refreshing = tokio::spawn(current::refresh(Arc::clone(&self.shared)));
        connections::serve(self.listener, self.tls, Arc::clone(&self.shared), stop).await;
        refreshing.abort();
    }
}

/// Listens at an address. Clients that connect faster than the server accepts them wait in the system's queue.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restarted server must get its address back.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
