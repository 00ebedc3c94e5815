//! Reads files at a location, and removes directories.

use std::io::Write as _;
use std::time::SystemTime;

use futures::{Stream, TryStreamExt as _};
use object_store::{ObjectMeta, ObjectStoreExt as _};

use super::Location;
use crate::digest::Digester;
use crate::error::{Result, StorageError};
use crate::error_kind::ErrorKind;
use crate::explain::has_known_code;
use crate::unchanged_file::UnchangedFile;

const REMOVED_AT_ONCE: usize = 32;

impl Location {
    /// Size of the file in bytes, as a listing or [`Self::with_table_facts`] gave it, or else from
    /// a request to its store.
    pub async fn size(&self) -> Result<u64> {
        if let Some(size) = self.size {
            return Ok(size);
        }
        self.current_size().await
    }

    /// Size of the file in bytes, requested from its store now.
    pub async fn current_size(&self) -> Result<u64> {
        Ok(self.head().await?.size)
    }

    /// Size, modification time, entity tag and version of the file as one text. Rewriting the file
    /// changes it.
    pub async fn version(&self) -> Result<String> {
        let meta = self.head().await?;
        Ok(format!(
            "{} {} {} {}",
            meta.size,
            meta.last_modified.to_rfc3339(),
            meta.e_tag.unwrap_or_default(),
            meta.version.unwrap_or_default()
        ))
    }

    /// Reads the whole file.
    pub async fn read(&self) -> Result<bytes::Bytes> {
        let got = self.store.get(&self.path).await;
        let got = got.map_err(|error| self.store_error(error))?;
        got.bytes().await.map_err(|error| self.store_error(error))
    }

    /// Reads the file, and returns its size in bytes and its SHA-256 in hexadecimal.
    pub async fn digest(&self) -> Result<(u64, String)> {
        if let Some(local) = &self.local {
            return UnchangedFile::at(local)?.digest().await;
        }
        let mut parts = self.parts().await?;
        let mut digester = Digester::default();
        while let Some(part) = parts.try_next().await? {
            digester.update(&part);
        }
        Ok(digester.found())
    }

    /// Copies the whole file to a local file, and returns its size in bytes.
    pub async fn copy_to(&self, mut file: std::fs::File) -> Result<u64> {
        let mut parts = self.parts().await?;
        let mut copied = 0;
        while let Some(part) = parts.try_next().await? {
            copied += part.len() as u64;
            file.write_all(&part)
                .map_err(StorageError::io(format!("a copy of {self}")))?;
        }
        Ok(copied)
    }

    /// Removes this file or object. A missing one is no error.
    pub async fn remove(&self) -> Result<()> {
        match self.store.delete(&self.path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.store_error(error)),
        }
    }

    /// Removes this directory and everything below it. A missing directory is no error.
    pub async fn remove_all(&self) -> Result<()> {
        if let Some(local) = &self.local {
            return match std::fs::remove_dir_all(local) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(StorageError::io(local.display())(error))
                }
                _ => Ok(()),
            };
        }
        // One list may leave out objects, which nobody would find afterwards.
        for _ in 0..2 {
            let listed = self.store.list(Some(&self.path));
            let removed = listed.map_ok(|object| async move {
                match self.store.delete(&object.location).await {
                    // Somebody else removes it, too.
                    Err(object_store::Error::NotFound { .. }) => Ok(()),
                    removed => removed,
                }
            });
            let removed = removed.try_buffer_unordered(REMOVED_AT_ONCE);
            let removed = removed.try_collect::<()>().await;
            removed.map_err(|error| self.store_error(error))?;
        }
        Ok(())
    }

    /// The files or objects below this directory.
    pub async fn list(&self) -> Result<Vec<ObjectMeta>> {
        let listed = self.store.list(Some(&self.path)).try_collect().await;
        listed.map_err(StorageError::store(self))
    }

    /// Whether there is a file or object at the path.
    pub async fn exists(&self) -> Result<bool> {
        Ok(self.last_modified().await?.is_some())
    }

    /// When the file was written last; `None` if it does not exist.
    pub async fn last_modified(&self) -> Result<Option<SystemTime>> {
        match self.head().await {
            Err(StorageError::NotFound { .. } | StorageError::Gone { .. }) => Ok(None),
            meta => Ok(Some(meta?.last_modified.into())),
        }
    }

    /// What the store says of the file. The answer to a `HEAD` that fails has no body with the
    /// reason, so this then lists the path, and returns the listing's error if the store refuses
    /// that, too, or cannot be reached.
    async fn head(&self) -> Result<ObjectMeta> {
        let error = match self.store.head(&self.path).await {
            Ok(meta) => return Ok(meta),
            Err(error) => self.store_error(error),
        };
        let is_refusal = |error: &StorageError| {
            matches!(error.kind(), ErrorKind::Permission | ErrorKind::Unreachable)
        };
        if !is_refusal(&error) {
            return Err(error);
        }
        let listed = self.store.list(Some(&self.path)).try_next().await;
        Err(match listed.map_err(|listed| self.store_error(listed)) {
            Err(explained) if is_refusal(&explained) => explained,
            _ => error,
        })
    }

    /// The bytes of the file, one part after the other.
    async fn parts(&self) -> Result<impl Stream<Item = Result<bytes::Bytes>> + Unpin> {
        let got = self.store.get(&self.path).await;
        let got = got.map_err(|error| self.store_error(error))?;
        let parts = got.into_stream();
        Ok(parts.map_err(|error| self.store_error(error)))
    }

    /// Wraps an error of the store that concerns this location: as [`StorageError::NotFound`], [`StorageError::Gone`] or
    /// [`StorageError::Store`].
    pub fn store_error(&self, error: object_store::Error) -> StorageError {
        let path = || self.given.clone();
        match error {
            // Not the object is missing, but its bucket.
            object_store::Error::NotFound { .. } if has_known_code(&error) => {
                StorageError::store(self)(error)
            }
            object_store::Error::NotFound { .. } if self.is_found => {
                StorageError::Gone { path: path() }
            }
            object_store::Error::NotFound { .. } => StorageError::NotFound { path: path() },
            error => StorageError::store(self)(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;
    use object_store::path::Path;
    use url::Url;

    use super::*;
    use crate::store::Stores;

    #[tokio::test]
    async fn a_replaced_object_is_refused() {
        let store = Arc::new(InMemory::new());
        let stores = Stores::default();
        stores.register(&Url::parse("s3://bucket").unwrap(), Arc::clone(&store) as _);
        let location = stores.locate("s3://bucket/a").unwrap();
        store.put(&Path::from("a"), "one".into()).await.unwrap();
        assert_eq!(location.read().await.unwrap(), "one");
        assert_eq!(location.read().await.unwrap(), "one");
        store.put(&Path::from("a"), "two".into()).await.unwrap();
        let error = location.read().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TryAgain, "{error}");
    }
}
