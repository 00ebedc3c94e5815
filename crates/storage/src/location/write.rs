//! Writes small objects whole.

use bytes::Bytes;
use object_store::{ObjectStoreExt as _, PutMode, PutOptions, PutPayload};

use super::Location;
use crate::error::Result;

impl Location {
    /// Writes the file or object, and replaces one that is there.
    pub async fn write(&self, bytes: Bytes) -> Result<()> {
        let put = self.store.put(&self.path, PutPayload::from(bytes)).await;
        put.map(|_| ()).map_err(|error| self.store_error(error))
    }

    /// Creates the file or object; returns false if one with other bytes is there.
    pub async fn create(&self, bytes: Bytes) -> Result<bool> {
        let options = PutOptions::from(PutMode::Create);
        let payload = PutPayload::from(bytes);
        match self.store.put_opts(&self.path, payload, options).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(self.store_error(error)),
        }
    }

    /// Copies the file or object to `target` in the same store, without passing its bytes through this process if the store can;
    /// replaces one that is there.
    pub async fn copy_within_store(&self, target: &Self) -> Result<()> {
        let copied = self.store.copy(&self.path, &target.path).await;
        copied.map_err(|error| self.store_error(error))
    }
}
