//! The side of a connection that is asked: a port, and a server with the settings of all of ours.

use std::net::SocketAddr;

use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::client::ALIVE;
use crate::error::{ClusterError, Result};
use crate::tls::{Tls, refused};

/// Listens at `address`, where port 0 takes a free one; gives the connections, and where they come in.
pub(crate) async fn listen(address: SocketAddr) -> Result<(TcpIncoming, SocketAddr)> {
    let failed = |source| ClusterError::Listen {
        address: address.to_string(),
        source,
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    Ok((incoming, bound))
}

/// A server without services yet.
pub(crate) fn server(tls: Option<&Tls>) -> Result<Server> {
    // Who vanishes is noticed.
    let server = Server::builder()
        .http2_keepalive_interval(Some(ALIVE))
        .http2_keepalive_timeout(Some(2 * ALIVE));
    match tls {
        Some(tls) => server.tls_config(tls.server()).map_err(refused),
        None => Ok(server),
    }
}
