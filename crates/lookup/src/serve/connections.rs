//! Accepts connections, and serves HTTP/1.1 on each.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;

use super::Shared;
use super::routes::respond;

/// The most bytes of a request's headers.
const HEADER: usize = 16 << 10;

/// Serves until `stop` ends, then waits for the requests in progress, for at most the setting `drain`.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    stop: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(shared.settings.connections));
    let graceful = GracefulShutdown::new();
    let mut stop = pin!(stop);
    let mut refused = Refused::default();
    loop {
        let accepted = async {
            // Beyond the limit, connections wait in the system's queue.
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            Some((listener.accept().await, place))
        };
        let (stream, place) = tokio::select! {
            () = &mut stop => break,
            accepted = accepted => match accepted {
                Some((Ok((stream, _)), place)) => (stream, place),
                Some((Err(error), _)) => {
                    refused.note(&error);
                    // The process may have no file descriptors left: wait for connections to close.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
                None => break,
            },
        };
        shared.metrics.connections.fetch_add(1, Ordering::Relaxed);
        let connection = connection(
            stream,
            tls.clone(),
            Arc::clone(&shared),
            graceful.watcher(),
            place,
        );
        tokio::spawn(connection);
    }
    shared.draining.store(true, Ordering::Relaxed);
    drop(listener);
    let drained = tokio::time::timeout(shared.settings.drain, graceful.shutdown()).await;
    if drained.is_err() {
        tracing::warn!(
            "requests in progress were cut off after {:?}",
            shared.settings.drain
        );
    }
}

/// Connections that could not be accepted: with no file descriptors left, these are many.
#[derive(Default)]
struct Refused {
    /// Since the last line of the log.
    number: u64,
    said: Option<Instant>,
}

impl Refused {
    /// Counts an error, and says it at most once a minute.
    fn note(&mut self, error: &std::io::Error) {
        const MINUTE: Duration = Duration::from_secs(60);
        self.number += 1;
        if self.said.is_none_or(|said| said.elapsed() >= MINUTE) {
            let number = std::mem::take(&mut self.number);
            tracing::warn!("accepting a connection: {error} ({number} times since the last line)");
            self.said = Some(Instant::now());
        }
    }
}

async fn connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    watcher: Watcher,
    place: OwnedSemaphorePermit,
) {
    let _place = place;
    // A response is one write, so Nagle's algorithm would only delay it.
    let _ = stream.set_nodelay(true);
    let timeout = shared.settings.timeout;
    let mut stream = TimeoutStream::new(stream);
    // A client that does not read must not keep its response in memory for ever.
    stream.set_write_timeout(Some(timeout));
    let Some(tls) = tls else {
        return serve_http(Box::pin(stream), shared, watcher).await;
    };
    match tokio::time::timeout(timeout, tls.accept(Box::pin(stream))).await {
        Ok(Ok(stream)) => serve_http(stream, shared, watcher).await,
        Ok(Err(error)) => tracing::debug!("TLS: {error}"),
        Err(_) => tracing::debug!("TLS: no handshake in time"),
    }
}

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    shared: Arc<Shared>,
    watcher: Watcher,
) {
    let timeout = shared.settings.timeout;
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(respond(&shared, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // This also limits how long a connection may be idle.
        .header_read_timeout(timeout)
        .max_buf_size(HEADER)
        // A client may close its side after its request, and wait for the answer.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!("a connection: {error}");
    }
}
