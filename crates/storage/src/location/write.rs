//! Writes small objects whole.

use bytes::Bytes;
use object_store::{Error, ObjectStoreExt as _, PutMode, PutOptions, PutPayload};

use super::Location;
use crate::error::{Result, StorageError};

impl Location {
    /// Writes the file or object, and replaces one that is there.
    pub async fn write(&self, bytes: Bytes) -> Result<()> {
        let put = self.store.put(&self.path, PutPayload::from(bytes)).await;
        put.map(|_| ()).map_err(|error| self.store_error(error))
    }

    /// Writes an object as [`Self::write`], and then checks that the store has all its bytes. For objects that are named by their
    /// content, which nobody compares later.
    ///
    /// # Errors
    /// [`StorageError::NotKept`], or as [`Self::write`].
    pub async fn write_checked(&self, bytes: Bytes) -> Result<()> {
        let expected = bytes.len() as u64;
        self.write(bytes).await?;
        self.check_kept(expected).await
    }

    /// Checks that a store has all bytes that were written.
    async fn check_kept(&self, expected: u64) -> Result<()> {
        if self.local.is_some() {
            return Ok(());
        }
        let found = match self.current_size().await {
            Err(StorageError::NotFound { .. }) => 0,
            found => found?,
        };
        if found == expected {
            Ok(())
        } else {
            Err(StorageError::NotKept {
                path: self.to_string(),
                found,
                expected,
            })
        }
    }

    /// Creates the file or object; returns false if one with other bytes is there.
    pub async fn create(&self, bytes: Bytes) -> Result<bool> {
        let options = PutOptions::from(PutMode::Create);
        let payload = PutPayload::from(bytes);
        match self.store.put_opts(&self.path, payload, options).await {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
            Err(error) => Err(self.store_error(error)),
        }
    }

    /// Copies the file or object to `target` in the same store, without passing its bytes through this process if the store can. It
    /// replaces an object at `target`. Afterwards it asks the store for both sizes: a target of another size, and a source that was
    /// replaced since this process first saw it, are errors.
    pub async fn copy_within_store(&self, target: &Self) -> Result<()> {
        let copied = self.store.copy(&self.path, &target.path).await;
        copied.map_err(|error| self.store_error(error))?;
        target.check_kept(self.current_size().await?).await
    }
}
