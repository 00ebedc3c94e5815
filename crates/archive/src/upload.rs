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

use crate::store::give_up;

/// Size and SHA-256 of the bytes that went by.
#[derive(Debug, Default)]
pub(crate) struct Digested {
    pub(crate) size: u64,
    sha256: Sha256,
}

impl std::io::Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Digested {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        self.sha256.update(bytes);
    }

    pub(crate) fn finish(self) -> (u64, String) {
        (self.size, self.sha256())
    }

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
    uploaded: Arc<Mutex<Digested>>,
    /// Whether its end was begun: then it cannot be given up any more.
    ended: bool,
}

impl Upload {
    /// The writer, and where its size and digest can be read afterwards.
    pub(crate) fn new(store: Arc<dyn ObjectStore>, path: Path) -> (Self, Arc<Mutex<Digested>>) {
        let uploaded = Arc::new(Mutex::new(Digested::default()));
        let writer = BufWriter::new(store, path);
        (
            Self {
                writer,
                uploaded: Arc::clone(&uploaded),
                ended: false,
            },
            uploaded,
        )
    }
}

impl AsyncFileWriter for Upload {
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        async move {
            self.uploaded.lock().await.update(&bytes);
            Ok(self.writer.put(bytes).await?)
        }
        .boxed()
    }

    fn complete(&mut self) -> BoxFuture<'_, Result<()>> {
        async move {
            use tokio::io::AsyncWriteExt as _;
            self.ended = true;
            Ok(self.writer.shutdown().await?)
        }
        .boxed()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if !self.ended {
            // Parts of it may be in the store, where they take room and nobody sees them.
            give_up(self.writer.abort());
        }
    }
}
