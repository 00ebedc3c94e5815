//! Settings of connections to object stores.

use std::time::Duration;

/// How object stores are reached.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreOptions {
    /// Address of the service, if it is not the provider's own.
    pub endpoint: Option<String>,
    /// Whether a service may be reached without encryption.
    pub allow_http: bool,
    /// How many times at most a request is retried after temporary failures.
    pub retries: usize,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// How long a request may take with all its retries.
    pub deadline: Duration,
}

impl std::fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreOptions")
            // `connect` refuses an endpoint with a password, but only later.
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
            // The deadline ends them.
            retries: 10_000,
            request_timeout: Duration::from_secs(30),
            deadline: Duration::from_secs(180),
        }
    }
}
