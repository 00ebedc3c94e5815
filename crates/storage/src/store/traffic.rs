//! Counts network traffic, and checks lists: every HTTP request to a store passes through [`WatchedClient`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};

use super::lists::{Lists, checked, page_request};
use crate::explain::causes;

/// Counters of requests to stores.
#[derive(Debug, Default)]
pub struct Traffic {
    requests: AtomicU64,
    failed: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    lists: Lists,
    has_warned: AtomicBool,
}

impl Traffic {
    /// Requests, including retries.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Requests that failed temporarily (no answer, 5xx, 408, 429): each led to a retry, unless it was the last try.
    pub fn retries(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Bytes of request bodies.
    pub fn bytes_sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Bytes of response bodies, by their `Content-Length`.
    pub fn bytes_received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// The keys below `prefix` that lists left out, because no path can name them.
    pub(crate) fn odd_keys(&self, prefix: &str) -> Vec<String> {
        self.lists.odd_keys(prefix)
    }
}

/// Makes HTTP clients that count their traffic, and check lists.
#[derive(Debug)]
pub(super) struct WatchedConnector(pub(super) Arc<Traffic>);

impl HttpConnector for WatchedConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(WatchedClient {
            inner: ReqwestConnector::default().connect(options)?,
            traffic: Arc::clone(&self.0),
        }))
    }
}

#[derive(Debug)]
struct WatchedClient {
    inner: HttpClient,
    traffic: Arc<Traffic>,
}

#[async_trait]
impl HttpService for WatchedClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let traffic = &self.traffic;
        traffic.requests.fetch_add(1, Ordering::Relaxed);
        let sent = request.body().content_length() as u64;
        traffic.sent.fetch_add(sent, Ordering::Relaxed);
        let head = request.method().as_str() == "HEAD";
        let list = page_request(&request);
        let begins_upload = begins_upload(&request);
        let host = request.uri().authority().map(ToString::to_string);
        let mut answer = self.inner.execute(request).await;
        if let (Some(list), Ok(_)) = (list, &answer) {
            answer = checked(answer?, &list, &traffic.lists).await;
        }
        if begins_upload && answer.is_ok() {
            answer = Ok(with_upload(answer?).await);
        }
        if let Ok(found) = answer {
            answer = Ok(as_last(with_region(found)));
        }
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
            Err(error) => {
                let is_first = error.kind() == HttpErrorKind::Connect
                    && !traffic.has_warned.swap(true, Ordering::Relaxed);
                if is_first {
                    tracing::warn!(
                        "{}: {}: it is asked again, at the longest for --retry-deadline",
                        host.as_deref().unwrap_or("the store"),
                        cause(error)
                    );
                }
                traffic.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        answer
    }
}

/// What an error is at its root, such as `Connection refused`.
fn cause(error: &HttpError) -> String {
    let last = causes(error).last();
    last.map(ToString::to_string).unwrap_or_default()
}

/// Whether a request begins an upload in parts.
fn begins_upload(request: &HttpRequest) -> bool {
    let mut query = request.uri().query().unwrap_or_default().split('&');
    request.method().as_str() == "POST" && query.any(|key| key.trim_end_matches('=') == "uploads")
}

/// The answer to a request that begins an upload. One that is cut off gets status 503, which the client retries: it would not repeat the
/// request for a body that it cannot read.
async fn with_upload(answer: HttpResponse) -> HttpResponse {
    if !answer.status().is_success() {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    let mut body = body.bytes().await.unwrap_or_default();
    if !is_upload(&String::from_utf8_lossy(&body)) {
        parts.status = 503.try_into().unwrap_or(parts.status);
        let error = "<Error><Code>NoUpload</Code><Message>the answer to the begin of an upload is cut off</Message></Error>";
        body = error.into();
    }
    HttpResponse::from_parts(parts, body.into())
}

/// Whether a body names an upload, and is whole.
fn is_upload(body: &str) -> bool {
    let end = "InitiateMultipartUploadResult>";
    body.contains("UploadId>") && body.trim_end().ends_with(end)
}

/// Turns 501 (Not Implemented) into 400, which the client does not retry.
fn as_last(answer: HttpResponse) -> HttpResponse {
    if answer.status().as_u16() != 501 {
        return answer;
    }
    let (mut parts, _) = answer.into_parts();
    parts.status = 400.try_into().unwrap_or(parts.status);
    let body = "<Error><Code>NotImplemented</Code><Message>the service does not have this request</Message></Error>";
    HttpResponse::from_parts(parts, body.to_owned().into())
}

/// The answer of a service that says in a header which region the bucket is in, and nothing in its body, as to a request for a head:
/// as an error that says it in its body.
fn with_region(answer: HttpResponse) -> HttpResponse {
    let status = answer.status();
    let region = answer.headers().get("x-amz-bucket-region");
    let region = region
        .and_then(|region| region.to_str().ok())
        .map(str::to_owned);
    let is_bare = status.as_u16() == 301 && !answer.headers().contains_key("location");
    let Some(region) = region.filter(|_| is_bare) else {
        return answer;
    };
    let (mut parts, _) = answer.into_parts();
    parts.status = 400.try_into().unwrap_or(status);
    let body = format!("<Error><Code>PermanentRedirect</Code><Region>{region}</Region></Error>");
    HttpResponse::from_parts(parts, body.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_upload_whose_begin_is_not_known_is_begun_again() {
        let whole = "<InitiateMultipartUploadResult xmlns=\"s3\"><UploadId>a</UploadId></InitiateMultipartUploadResult>";
        for end in 0..=whole.len() {
            let answer = HttpResponse::new(whole[..end].to_owned().into());
            let status = with_upload(answer).await.status().as_u16();
            assert_eq!(status, if end == whole.len() { 200 } else { 503 }, "{end}");
        }
        let request = |method: &str, query: &str| {
            let mut request = HttpRequest::new(String::new().into());
            *request.method_mut() = method.parse().unwrap();
            *request.uri_mut() = format!("http://s3/bucket/key?{query}").parse().unwrap();
            begins_upload(&request)
        };
        assert!(request("POST", "uploads") && request("POST", "uploads="));
        assert!(!request("POST", "uploadId=uploads") && !request("GET", "uploads"));
    }
}
