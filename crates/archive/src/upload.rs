//! A write to an object store that knows the size and SHA-256 of what went through.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use object_store::ObjectStore;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use parquet::arrow::async_writer::AsyncFileWriter;
use parquet::errors::Result;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;

/// Size and digest of an uploaded file, known when it is complete.
#[derive(Debug, Default)]
pub(crate) struct Uploaded {
    pub(crate) size: u64,
    sha256: Sha256,
}

impl Uploaded {
    pub(crate) fn sha256(&self) -> String {
        hex(&self.sha256.clone().finalize())
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Parquet's writer onto one object, which appears whole when it is completed.
pub(crate) struct Upload {
    writer: BufWriter,
    uploaded: Arc<Mutex<Uploaded>>,
}

impl Upload {
    /// The writer, and where its size and digest can be read afterwards.
    pub(crate) fn new(store: Arc<dyn ObjectStore>, path: Path) -> (Self, Arc<Mutex<Uploaded>>) {
        let uploaded = Arc::new(Mutex::new(Uploaded::default()));
        let writer = BufWriter::new(store, path);
        (
            Self {
                writer,
                uploaded: Arc::clone(&uploaded),
            },
            uploaded,
        )
    }
}

impl AsyncFileWriter for Upload {
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        async move {
            let mut uploaded = self.uploaded.lock().await;
            uploaded.size += bytes.len() as u64;
            uploaded.sha256.update(&bytes);
            drop(uploaded);
            Ok(self.writer.put(bytes).await?)
        }
        .boxed()
    }

    fn complete(&mut self) -> BoxFuture<'_, Result<()>> {
        async move {
            use tokio::io::AsyncWriteExt as _;
            Ok(self.writer.shutdown().await?)
        }
        .boxed()
    }
}
