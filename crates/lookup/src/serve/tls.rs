//! TLS: the server shows a certificate. If an authority is given, each client must show a certificate of it.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::error::{LookupError, Result};

/// Paths of the PEM files for TLS.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// Certificate of the authority that signs client certificates. If `None`, clients need no certificate.
    pub authority: Option<PathBuf>,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

fn read_file(path: &PathBuf) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(LookupError::io(path.display()))
}

impl TlsFiles {
    /// Reads the files, and makes an acceptor for connections.
    pub(super) fn acceptor(&self) -> Result<TlsAcceptor> {
        // Dependencies link two crypto providers, so the process must choose one. The call fails only if it did before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let bad = |path: &PathBuf| {
            let path = path.display().to_string();
            move |reason: String| LookupError::Tls { path, reason }
        };
        let certificates = |path: &PathBuf| -> Result<Vec<CertificateDer<'static>>> {
            let bytes = read_file(path)?;
            let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
            match read {
                Ok(read) if !read.is_empty() => Ok(read),
                Ok(_) => Err(bad(path)("no CERTIFICATE in PEM".into())),
                Err(error) => Err(bad(path)(error.to_string())),
            }
        };
        let key = PrivateKeyDer::from_pem_slice(&read_file(&self.key)?);
        // The error must not quote the key.
        let key = key.map_err(|_| bad(&self.key)("no PRIVATE KEY in PEM".into()))?;
        let builder = match &self.authority {
            None => ServerConfig::builder().with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(authority)? {
                    let added = roots.add(certificate);
                    added.map_err(|error| bad(authority)(error.to_string()))?;
                }
                let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
                let verifier = verifier.map_err(|error| bad(authority)(error.to_string()))?;
                ServerConfig::builder().with_client_cert_verifier(verifier)
            }
        };
        let config = builder
            .with_single_cert(certificates(&self.certificate)?, key)
            .map_err(|error| bad(&self.certificate)(error.to_string()))?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}
