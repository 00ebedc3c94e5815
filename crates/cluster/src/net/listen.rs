//! Opens listening ports, and builds gRPC servers with the settings that all our servers share.
//!
//! Ballista's servers listen at any address. Here, a port that other machines reach needs TLS or an
//! explicit `--insecure`.

use std::net::SocketAddr;

use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use super::KEEP_ALIVE;
use super::tls::{Tls, tls_error};
use crate::error::{ClusterError, Result};

/// Returns whether other machines can reach a port at `address`.
#[must_use]
pub fn is_exposed(address: SocketAddr) -> bool {
    // The canonical form of ::ffff:127.0.0.1 is 127.0.0.1.
    !address.ip().to_canonical().is_loopback()
}

/// Listens at `address`; returns the incoming connections and the bound address, which has a free
/// port in place of port 0.
///
/// Without TLS, refuses an address that other machines reach unless `insecure` is set.
pub(crate) async fn listen(
    address: SocketAddr,
    tls: Option<&Tls>,
    insecure: bool,
) -> Result<(TcpIncoming, SocketAddr)> {
    if tls.is_none() && is_exposed(address) {
        if !insecure {
            return Err(ClusterError::Exposed { address });
        }
        tracing::warn!(
            "listening at {address} without encryption: whoever reaches this port can submit work and read its results"
        );
    }
    let failed = |source| ClusterError::Listen {
        address: address.to_string(),
        source,
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    Ok((incoming, bound))
}

/// Returns a gRPC server to which services can be added.
pub(crate) fn server(tls: Option<&Tls>) -> Result<Server> {
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(2 * KEEP_ALIVE));
    match tls {
        Some(tls) => server.tls_config(tls.server_config()).map_err(tls_error),
        None => Ok(server),
    }
}

#[cfg(test)]
mod tests {
    use storage::ErrorKind;

    use super::*;

    #[test]
    fn loopback_is_this_machine_alone() {
        for address in [
            "127.0.0.1:0",
            "127.8.9.10:50050",
            "[::1]:0",
            "[::ffff:127.0.0.1]:0",
        ] {
            assert!(!is_exposed(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.0.0.0:0",
            "[::]:0",
            "[::ffff:0.0.0.0]:0",
            "10.1.2.3:50050",
            "[fe80::1]:0",
        ] {
            assert!(is_exposed(address.parse().unwrap()), "{address}");
        }
    }

    /// Fault 47 (docs/faults.md), a process that is not ours: the library itself refuses, not only the command line.
    #[tokio::test]
    async fn an_exposed_port_without_keys_is_refused() {
        let exposed: SocketAddr = "0.0.0.0:0".parse().unwrap();
        let error = listen(exposed, None, false).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        let said = error.to_string();
        assert!(
            said.contains("0.0.0.0:0") && said.contains("--insecure") && said.contains("--tls-ca"),
            "{said}"
        );
        assert!(listen(exposed, None, true).await.is_ok());
        let loopback = "127.0.0.1:0".parse().unwrap();
        assert!(listen(loopback, None, false).await.is_ok());
    }
}
