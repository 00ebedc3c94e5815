//! Connections between the processes of a cluster: scheduler addresses, mutual TLS, listening ports.
//!
//! Ballista's own `main` functions open servers without TLS and with gRPC messages of at most 16 MiB. Here every server
//! and every connection can have mutual TLS, larger messages, and keep-alive pings that notice a peer that vanished.

use std::time::Duration;

use tonic::Status;

use crate::error::innermost_cause;

pub(crate) mod address;
pub(crate) mod listen;
pub(crate) mod tls;

/// Largest gRPC message, in bytes. The client splits a map over a large archive into several jobs,
/// so that no plan exceeds this.
pub(crate) const MAX_MESSAGE: usize = 64 << 20;
/// Limit on opening a connection.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of HTTP/2 keep-alive pings; a peer that does not answer one within twice this interval
/// counts as gone.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Returns the reason why a gRPC call failed, in one line.
pub(crate) fn status_text(status: &Status) -> String {
    innermost_cause(status).unwrap_or_else(|| storage::scrub(status.message()))
}
