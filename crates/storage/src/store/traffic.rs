//! Counts network traffic: every HTTP request to a store passes through [`CountingClient`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

/// Counters of requests to stores.
#[derive(Debug, Default)]
pub struct Traffic {
    requests: AtomicU64,
    failed: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Traffic {
    /// Requests, including retries.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Requests that failed temporarily (no answer, 5xx, 408, 429): each led to a retry, unless it was the last try.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Bytes of request bodies.
    #[must_use]
    pub fn bytes_sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Bytes of response bodies, by their `Content-Length`.
    #[must_use]
    pub fn bytes_received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

/// Makes HTTP clients that count their traffic.
#[derive(Debug)]
pub(super) struct CountingConnector(pub(super) Arc<Traffic>);

impl HttpConnector for CountingConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(CountingClient {
            inner: ReqwestConnector::default().connect(options)?,
            traffic: Arc::clone(&self.0),
        }))
    }
}

#[derive(Debug)]
struct CountingClient {
    inner: HttpClient,
    traffic: Arc<Traffic>,
}

#[async_trait]
impl HttpService for CountingClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let traffic = &self.traffic;
        traffic.requests.fetch_add(1, Ordering::Relaxed);
        let sent = request.body().content_length() as u64;
        traffic.sent.fetch_add(sent, Ordering::Relaxed);
        let head = request.method().as_str() == "HEAD";
        let answer = self.inner.execute(request).await;
        match &answer {
            Ok(answer) => {
                let status = answer.status();
                let failed = status.is_server_error() || [408, 429].contains(&status.as_u16());
                traffic
                    .failed
                    .fetch_add(u64::from(failed), Ordering::Relaxed);
                let length = answer.headers().get("content-length");
                let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
                let received = if head { 0 } else { length.unwrap_or(0) };
                traffic.received.fetch_add(received, Ordering::Relaxed);
            }
            Err(_) => {
                traffic.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        answer
    }
}
