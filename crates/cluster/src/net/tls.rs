//! Mutual TLS: every process shows a certificate of one authority, and refuses peers that do not.
//!
//! Ballista 55 has no TLS settings for its servers, and no authentication at all, so these
//! certificates are the only authentication.

use std::path::PathBuf;
use std::time::Duration;

use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

use crate::error::{ClusterError, Result, innermost_cause};

/// Limit on a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the error for a key and certificates that do not fit together.
pub(crate) fn tls_error(error: tonic::transport::Error) -> ClusterError {
    ClusterError::Tls {
        path: "the key and the certificates".into(),
        reason: innermost_cause(&error).unwrap_or_else(|| error.to_string()),
    }
}

/// The private key and the certificates of a process.
#[derive(Clone)]
pub struct Tls {
    authority: Certificate,
    identity: Identity,
}

// The debug output must not show the private key.
impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads three PEM files: the certificates of the authority and of the process, and its private key.
    ///
    /// # Errors
    /// [`ClusterError::Tls`] when a file cannot be read, or contains no certificate or key.
    pub fn read(authority: &PathBuf, certificate: &PathBuf, key: &PathBuf) -> Result<Self> {
        // Dependencies link two crypto providers, so the process must choose one. The call fails
        // only if it has chosen one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let failed = |path: &PathBuf, reason: String| ClusterError::Tls {
            path: path.display().to_string(),
            reason,
        };
        let pem = |path: &PathBuf, label: &str| {
            let text = std::fs::read(path).map_err(|error| failed(path, error.to_string()))?;
            let begin = format!("{label}-----");
            match text
                .windows(begin.len())
                .any(|part| part == begin.as_bytes())
            {
                true => Ok(text),
                false => Err(failed(path, format!("no {label} in PEM"))),
            }
        };
        Ok(Self {
            authority: Certificate::from_pem(pem(authority, "CERTIFICATE")?),
            identity: Identity::from_pem(
                pem(certificate, "CERTIFICATE")?,
                pem(key, "PRIVATE KEY")?,
            ),
        })
    }

    /// Returns the TLS settings of a client.
    #[must_use]
    pub fn client_config(&self) -> ClientTlsConfig {
        ClientTlsConfig::new()
            .ca_certificate(self.authority.clone())
            .identity(self.identity.clone())
            .timeout(HANDSHAKE_TIMEOUT)
    }

    /// Returns the TLS settings of a server.
    #[must_use]
    pub fn server_config(&self) -> ServerTlsConfig {
        ServerTlsConfig::new()
            .identity(self.identity.clone())
            .client_ca_root(self.authority.clone())
            .timeout(HANDSHAKE_TIMEOUT)
    }
}
