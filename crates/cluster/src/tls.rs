//! Mutual TLS: each process shows a certificate of one authority, and talks to none that does not.

use std::path::PathBuf;
use std::time::Duration;

use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

use crate::error::{ClusterError, Result, innermost};

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// That keys and certificates cannot be used together.
pub(crate) fn refused(error: tonic::transport::Error) -> ClusterError {
    ClusterError::Tls {
        path: "the key and the certificates".into(),
        reason: innermost(&error).unwrap_or_else(|| error.to_string()),
    }
}

/// The keys of a process.
#[derive(Clone)]
pub struct Tls {
    authority: Certificate,
    identity: Identity,
}

// A private key is no thing to print.
impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads PEM files: the certificate of the authority, that of the process, and its private key.
    ///
    /// # Errors
    /// [`ClusterError::Tls`] when one cannot be read, or is none.
    pub fn read(authority: &PathBuf, certificate: &PathBuf, key: &PathBuf) -> Result<Self> {
        // Two are built in, for others' sake; nobody has chosen if this fails, or else somebody has already.
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

    /// For a process that asks.
    #[must_use]
    pub fn client(&self) -> ClientTlsConfig {
        ClientTlsConfig::new()
            .ca_certificate(self.authority.clone())
            .identity(self.identity.clone())
            .timeout(HANDSHAKE)
    }

    /// For a process that is asked.
    #[must_use]
    pub fn server(&self) -> ServerTlsConfig {
        ServerTlsConfig::new()
            .identity(self.identity.clone())
            .client_ca_root(self.authority.clone())
            .timeout(HANDSHAKE)
    }
}
