//! Size and SHA-256 of objects: while they are written, and of those that are stored.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, TryStreamExt as _};
use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use parquet::arrow::async_writer::AsyncFileWriter;
use parquet::errors::Result;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;

use crate::error::ArchiveError;
use crate::location::Location;
use crate::store::give_up;

/// Size and digest of an uploaded file, known when it is complete.
#[derive(Debug, Default)]
pub(crate) struct Uploaded {
    pub(crate) size: u64,
    sha256: Sha256,
}

impl std::io::Write for Uploaded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.size += bytes.len() as u64;
        self.sha256.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Uploaded {
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
    uploaded: Arc<Mutex<Uploaded>>,
    /// Whether its end was begun: then it cannot be given up any more.
    ended: bool,
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
                ended: false,
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

/// Size and SHA-256 of what is stored.
pub(crate) async fn digest_of(object: &Location) -> Result<(u64, String), ArchiveError> {
    let failed = |error| match error {
        object_store::Error::NotFound { .. } => ArchiveError::NotFound {
            path: object.to_string(),
        },
        error => ArchiveError::store(object.to_string())(error),
    };
    let got = object.store().get(object.path()).await.map_err(failed)?;
    let mut stream = got.into_stream();
    let mut found = Uploaded::default();
    while let Some(bytes) = stream.try_next().await.map_err(failed)? {
        found.size += bytes.len() as u64;
        found.sha256.update(&bytes);
    }
    Ok((found.size, found.sha256()))
}
