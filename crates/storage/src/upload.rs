//! An upload to an object store that computes the size and SHA-256 of what it sends.

use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStore;
use object_store::buffered::BufWriter;
use object_store::path::Path;

use crate::digest::Digester;
use crate::store::wait_briefly;

/// An upload of one object. [`Self::complete`] makes the object visible; dropping the upload before
/// that aborts it.
pub struct Upload {
    writer: BufWriter,
    sent: Digester,
    /// Whether `complete` was called; after that, the upload cannot be aborted.
    ended: bool,
}

impl Upload {
    /// Begins the upload of the object at `path`.
    pub fn new(store: Arc<dyn ObjectStore>, path: Path) -> Self {
        Self {
            writer: BufWriter::new(store, path),
            sent: Digester::default(),
            ended: false,
        }
    }

    pub async fn write(&mut self, bytes: Bytes) -> object_store::Result<()> {
        self.sent.update(&bytes);
        self.writer.put(bytes).await
    }

    /// Makes the object visible.
    pub async fn complete(&mut self) -> std::io::Result<()> {
        use tokio::io::AsyncWriteExt as _;
        self.ended = true;
        self.writer.shutdown().await
    }

    /// Size in bytes and SHA-256, in hexadecimal, of what was written so far.
    pub fn digest(&self) -> (u64, String) {
        self.sent.found()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if !self.ended {
            // Parts that were sent take room in the store, although no listing shows them.
            wait_briefly(self.writer.abort());
        }
    }
}
