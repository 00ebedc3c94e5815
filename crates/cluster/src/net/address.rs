//! Addresses of schedulers (`df://host:port`) and of executors, and gRPC endpoints made of them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tonic::transport::Endpoint;
use url::Url;

use super::tls::{Tls, tls_error};
use super::{CONNECT_TIMEOUT, KEEP_ALIVE};
use crate::error::{ClusterError, Result};

/// Port of a scheduler whose address names none.
const DEFAULT_PORT: u16 = 50050;
/// Limit on one gRPC call.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Host and port of a scheduler, written `df://host:port`, or of an executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// Creates the address of a scheduler or an executor.
    #[must_use]
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
        }
    }

    /// Returns the name or IP address of the machine.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns whether the host is `localhost` or a loopback IP address.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let host = self.host.trim_matches(['[', ']']);
        let address = host.parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// Returns a gRPC endpoint for this address, with mutual TLS if `tls` is given.
    pub(crate) fn endpoint(&self, tls: Option<&Tls>) -> Result<Endpoint> {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{}:{}", self.host, self.port))
            .map_err(|error| ClusterError::Address {
                given: self.to_string(),
                reason: storage::plain_message(&error),
            })?;
        Ok(with_connection_settings(endpoint, tls)
            .map_err(tls_error)?
            .timeout(CALL_TIMEOUT))
    }
}

/// Returns the endpoint with the settings that all connections share.
fn with_connection_settings(
    endpoint: Endpoint,
    tls: Option<&Tls>,
) -> std::result::Result<Endpoint, tonic::transport::Error> {
    let endpoint = endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(2 * KEEP_ALIVE)
        .keep_alive_while_idle(true);
    match tls {
        Some(tls) => endpoint.tls_config(tls.client_config()),
        None => Ok(endpoint),
    }
}

impl FromStr for Address {
    type Err = ClusterError;

    fn from_str(given: &str) -> Result<Self> {
        let invalid = |reason: &str| ClusterError::Address {
            // An address has no password; the error must not show one that was given by mistake.
            given: given.rsplit('@').next().unwrap_or(given).to_owned(),
            reason: reason.to_owned(),
        };
        let form = "a scheduler's address is df://HOST:PORT";
        let with_scheme = match given.contains("://") {
            true => given.to_owned(),
            false => format!("df://{given}"),
        };
        let url = Url::parse(&with_scheme).map_err(|_| invalid(form))?;
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
            && matches!(url.path(), "" | "/");
        match url.host_str() {
            Some(host) if url.scheme() == "df" && is_plain && !host.is_empty() => {
                Ok(Self::new(host, url.port().unwrap_or(DEFAULT_PORT)))
            }
            _ => Err(invalid(form)),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "df://{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (given, address) in [
            ("df://scheduler:50050", "df://scheduler:50050"),
            ("df://scheduler", "df://scheduler:50050"),
            ("scheduler:1", "df://scheduler:1"),
            ("127.0.0.1:7", "df://127.0.0.1:7"),
            ("df://[::1]:7/", "df://[::1]:7"),
        ] {
            assert_eq!(given.parse::<Address>().unwrap().to_string(), address);
        }
        for given in [
            "",
            "df://",
            "http://a:1",
            "df://a:b",
            "df://a:99999",
            "df://u:secret@a:1",
            "df://a:1/path",
            "df://a:1?x",
        ] {
            assert!(given.parse::<Address>().is_err(), "{given}");
        }
    }
}
