//! A file on its way to its place: it appears there whole, or not at all.
//!
//! For a local place it is written beside it and renamed. For a store it is written to the scratch directory, sent in
//! parts, and becomes visible when the upload is completed, in place of any object that was there.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use archive::{ArchiveError, LocalFile, Location};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::{MultipartUpload, ObjectStoreExt as _};
use tempfile::TempPath;

use crate::error::{EngineError, Result};

/// Bytes of a part; larger for files that would have more than [`PARTS`].
const PART: u64 = 8 << 20;
/// Parts that every service takes.
const PARTS: u64 = 9000;
/// Parts on their way at the same time.
const AT_ONCE: usize = 4;

/// See the module.
#[derive(Debug)]
pub struct Draft {
    file: TempPath,
    target: Location,
    upload: Option<Box<dyn MultipartUpload>>,
}

impl Draft {
    /// An empty file that is to become `target`.
    ///
    /// # Errors
    /// [`EngineError::Io`] when it cannot be created.
    pub fn new(target: &Location, scratch: &Path) -> Result<Self> {
        let directory = match target.local() {
            Some(local) => local.parent().unwrap_or(Path::new("/")),
            None => scratch,
        };
        let file = tempfile::Builder::new()
            .prefix(&format!(".{}.", target.name()))
            .suffix(".tmp")
            .permissions(permissions())
            .tempfile_in(directory)
            .map_err(|source| failed(target, source))?;
        Ok(Self {
            file: file.into_temp_path(),
            target: target.clone(),
            upload: None,
        })
    }

    /// Where it is for now.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Opens it, to be written.
    ///
    /// # Errors
    /// [`EngineError::Io`] when it cannot be opened.
    pub fn open(&self) -> Result<File> {
        let file = File::options().read(true).write(true).open(&self.file);
        file.map_err(|source| failed(&self.target, source))
    }

    /// Has all that was written on the disk, or in the store, but not yet under its name. Gives its size.
    ///
    /// # Errors
    /// [`EngineError`] when it cannot be written, or sent.
    pub async fn send(&mut self) -> Result<u64> {
        let io = |source| failed(&self.target, source);
        let mut file = File::open(&self.file).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        if self.target.local().is_some() {
            file.sync_all().map_err(io)?;
            return Ok(size);
        }
        let store = |error| EngineError::from(ArchiveError::stored(&self.target, error));
        let (objects, path) = (self.target.store(), self.target.path());
        let upload = objects.put_multipart(path).await.map_err(store)?;
        // From now on it is given up if anything fails.
        let upload = self.upload.insert(upload);
        let part = PART.max(size.div_ceil(PARTS));
        let parts = size.div_ceil(part).max(1);
        futures::stream::iter(0..parts)
            .map(|_| {
                let mut bytes = Vec::new();
                let read = (&mut file).take(part).read_to_end(&mut bytes);
                let sending = read.map(|_| upload.put_part(Bytes::from(bytes).into()));
                async move { sending.map_err(io)?.await.map_err(store) }
            })
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
        Ok(size)
    }

    /// Gives the file its name, in place of any that had it.
    ///
    /// # Errors
    /// [`EngineError`] when that cannot be done; what was there before is there still.
    pub async fn publish(mut self) -> Result<()> {
        if self.upload.is_none() {
            // A second time for a local file, where that costs nothing.
            self.send().await?;
        }
        if let Some(local) = self.target.local() {
            let directory = local.parent().unwrap_or(Path::new("/"));
            return std::fs::rename(&self.file, local)
                .and_then(|()| File::open(directory)?.sync_all())
                .map_err(|source| failed(&self.target, source));
        }
        let Some(mut upload) = self.upload.take() else {
            return Err(EngineError::Internal("an upload that was not begun".into()));
        };
        let Err(error) = upload.complete().await else {
            return Ok(());
        };
        // The answer may be lost, and the upload complete.
        let own = LocalFile::at(&self.file)?.digest().await?;
        if self.target.digest().await.is_ok_and(|found| found == own) {
            let told = archive::error::told(&error);
            tracing::info!(target = %self.target, "the upload is complete, though the store answered: {told}");
            return Ok(());
        }
        // Given up when this is dropped.
        self.upload = Some(upload);
        Err(ArchiveError::stored(&self.target, error).into())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // An upload that is neither completed nor aborted is not visible, but takes room in the store.
        if let Some(mut upload) = self.upload.take() {
            archive::store::give_up(async move { upload.abort().await });
        }
    }
}

/// As other programs' files, not as secrets: temporary files are private by default.
fn permissions() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o644)
}

fn failed(target: &Location, source: std::io::Error) -> EngineError {
    EngineError::Io {
        path: target.to_string(),
        source,
    }
}
