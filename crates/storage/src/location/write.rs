//! Writes small objects whole.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use object_store::{ObjectStoreExt as _, PutMode, PutOptions, PutPayload};

use super::Location;
use crate::error::{Result, StorageError};
use crate::upload::Upload;

/// Bytes that every store copies in one request: Amazon S3 refuses more than 5 GB.
const COPIED_BY_STORE: u64 = 4 << 30;

impl Location {
    /// Writes the file or object, and replaces one that is there.
    ///
    /// # Errors
    /// When the store refuses or fails.
    pub async fn write(&self, bytes: Bytes) -> Result<()> {
        let put = self.store.put(&self.path, PutPayload::from(bytes)).await;
        put.map(|_| ()).map_err(|error| self.store_error(error))
    }

    /// Creates the file or object; returns false if one with other bytes is there.
    ///
    /// # Errors
    /// When the store refuses or fails.
    pub async fn create(&self, bytes: Bytes) -> Result<bool> {
        let options = PutOptions::from(PutMode::Create);
        let payload = PutPayload::from(bytes);
        match self.store.put_opts(&self.path, payload, options).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(self.store_error(error)),
        }
    }

    /// Copies the file or object of `size` bytes to `target` in the same store; replaces one that is there. The bytes pass through
    /// this process only if a store does not copy as many in one request.
    ///
    /// # Errors
    /// When the store refuses or fails, or the size differs.
    pub async fn copy_within_store(&self, size: u64, target: &Self) -> Result<()> {
        if size > COPIED_BY_STORE && self.local.is_none() {
            return self.pass_on(size, target).await;
        }
        let copied = self.store.copy(&self.path, &target.path).await;
        copied.map_err(|error| self.store_error(error))
    }

    /// Reads this object and writes it to `target`, which appears whole.
    async fn pass_on(&self, size: u64, target: &Self) -> Result<()> {
        let read = self.store.get(&self.path).await;
        let mut pieces = read.map_err(|error| self.store_error(error))?.into_stream();
        let mut upload = Upload::new(Arc::clone(&target.store), target.path.clone());
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| self.store_error(error))?;
            let written = upload.write(piece).await;
            written.map_err(|error| target.store_error(error))?;
        }
        if upload.size() != size {
            return Err(StorageError::Changed {
                path: self.to_string(),
            });
        }
        let completed = upload.complete().await;
        completed.map_err(|source| StorageError::Io {
            path: target.to_string(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use url::Url;

    use super::*;
    use crate::store::Stores;

    #[tokio::test]
    async fn bytes_that_pass_through_are_the_objects_own_or_nothing_appears() {
        let stores = Stores::default();
        let memory = Arc::new(InMemory::new());
        stores.register(&Url::parse("s3://bucket").unwrap(), memory);
        let [from, to] = ["from", "to"].map(|name| stores.locate(&format!("s3://bucket/{name}")));
        let (from, to) = (from.unwrap(), to.unwrap());
        // More than one request of the upload.
        let bytes: Bytes = (0..6_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let size = bytes.len() as u64;
        from.write(bytes.clone()).await.unwrap();
        let error = from.pass_on(size + 1, &to).await.unwrap_err();
        assert!(matches!(error, StorageError::Changed { .. }), "{error}");
        assert!(!to.exists().await.unwrap());
        from.pass_on(size, &to).await.unwrap();
        assert!(to.read().await.unwrap() == bytes);
    }
}
