//! A local file that is opened again and again, and must stay the same file.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::{ArchiveError, Result};
use crate::upload::Digested;

/// A file, and what it was when it was first looked at.
#[derive(Debug, Clone)]
pub struct LocalFile {
    path: PathBuf,
    identity: Identity,
}

/// What changes when a file is replaced or written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl LocalFile {
    /// Looks at the file at `path` for the first time.
    ///
    /// # Errors
    /// [`ArchiveError::NotFound`], or [`ArchiveError::Io`].
    pub fn at(path: &Path) -> Result<Self> {
        let metadata = path.metadata().map_err(|source| failed(path, source))?;
        Ok(Self {
            path: path.to_owned(),
            identity: Identity::of(&metadata),
        })
    }

    /// Its size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.identity.size
    }

    /// Its size and SHA-256, read now.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn digest(&self) -> Result<(u64, String)> {
        let mut file = self.open()?;
        let io = |source| failed(&self.path, source);
        let read = tokio::task::spawn_blocking(move || {
            let mut found = Digested::default();
            std::io::copy(&mut file, &mut found).map(|_| found.finish())
        });
        read.await
            .unwrap_or_else(|panic| Err(std::io::Error::other(panic)))
            .map_err(io)
    }

    /// Opens it.
    ///
    /// # Errors
    /// [`ArchiveError::Changed`] when it is no longer what it was, and as [`Self::at`].
    pub fn open(&self) -> Result<File> {
        let io = |source| failed(&self.path, source);
        let file = File::open(&self.path).map_err(io)?;
        if Identity::of(&file.metadata().map_err(io)?) != self.identity {
            return Err(ArchiveError::Changed {
                path: self.path.display().to_string(),
            });
        }
        Ok(file)
    }
}

fn failed(path: &Path, source: std::io::Error) -> ArchiveError {
    let path = path.display().to_string();
    match source.kind() {
        std::io::ErrorKind::NotFound => ArchiveError::NotFound { path },
        _ => ArchiveError::Io { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_replaced_or_written_to_is_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let file = LocalFile::at(&path).unwrap();
        assert_eq!(file.size(), 3);
        file.open().unwrap();
        let other = directory.path().join("b");
        std::fs::write(&other, "two").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(matches!(file.open(), Err(ArchiveError::Changed { .. })));
        let file = LocalFile::at(&path).unwrap();
        std::fs::write(&path, "longer").unwrap();
        assert!(matches!(file.open(), Err(ArchiveError::Changed { .. })));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(file.open(), Err(ArchiveError::NotFound { .. })));
    }
}
