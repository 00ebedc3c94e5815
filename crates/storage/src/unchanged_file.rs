//! [`UnchangedFile`]: a local file that is opened several times and must stay the same file.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::digest::Digester;
use crate::error::{Result, StorageError};

/// Bytes that are read at once for a digest: few enough to stay in the processor's cache.
const DIGESTED_BYTES: usize = 128 << 10;

/// A local file, and its attributes when it was first seen.
#[derive(Debug, Clone)]
pub struct UnchangedFile {
    path: PathBuf,
    attributes: Attributes,
}

/// Attributes of a file that change when it is replaced or written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Attributes {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Attributes {
    fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl UnchangedFile {
    /// Records the attributes that the file at `path` has now.
    ///
    /// # Errors
    /// [`StorageError::NotFound`], or [`StorageError::Io`].
    pub fn at(path: &Path) -> Result<Self> {
        let metadata = path.metadata().map_err(|source| io_error(path, source))?;
        Ok(Self {
            path: path.to_owned(),
            attributes: Attributes::from_metadata(&metadata),
        })
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.attributes.size
    }

    /// Reads the file, and returns its size in bytes and its SHA-256 in hexadecimal.
    pub async fn digest(&self) -> Result<(u64, String)> {
        let mut file = self.open()?;
        let io = |source| io_error(&self.path, source);
        let read = tokio::task::spawn_blocking(move || {
            let mut digester = Digester::default();
            let mut buffer = vec![0; DIGESTED_BYTES];
            loop {
                match file.read(&mut buffer) {
                    Ok(0) => return Ok(digester.found()),
                    Ok(read) => digester.update(&buffer[..read]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        });
        read.await
            .unwrap_or_else(|panic| Err(std::io::Error::other(panic)))
            .map_err(io)
    }

    /// Opens the file.
    ///
    /// # Errors
    /// [`StorageError::Changed`] when it was replaced or written to, and as [`Self::at`].
    pub fn open(&self) -> Result<File> {
        self.open_with(File::options().read(true))
    }

    /// Opens the file for reads past the system's page cache: offsets, lengths and memory must be aligned.
    #[cfg(target_os = "linux")]
    pub fn open_direct(&self) -> Result<File> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
        self.open_with(File::options().read(true).custom_flags(flags))
    }

    /// Opens the file for reads past the system's page cache, which only Linux has.
    #[cfg(not(target_os = "linux"))]
    pub fn open_direct(&self) -> Result<File> {
        Err(io_error(&self.path, std::io::ErrorKind::Unsupported.into()))
    }

    fn open_with(&self, options: &OpenOptions) -> Result<File> {
        let io = |source| match io_error(&self.path, source) {
            StorageError::NotFound { path } => StorageError::Gone { path },
            error => error,
        };
        let file = options.open(&self.path).map_err(io)?;
        if Attributes::from_metadata(&file.metadata().map_err(io)?) != self.attributes {
            return Err(StorageError::Changed {
                path: self.path.display().to_string(),
            });
        }
        Ok(file)
    }
}

pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        // The parent of a relative path with one component is empty.
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    }
}

fn io_error(path: &Path, source: std::io::Error) -> StorageError {
    let path = path.display().to_string();
    match source.kind() {
        std::io::ErrorKind::NotFound => StorageError::NotFound { path },
        _ => StorageError::Io { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_replaced_or_written_to_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let file = UnchangedFile::at(&path).unwrap();
        assert_eq!(file.size(), 3);
        file.open().unwrap();
        let other = directory.path().join("b");
        std::fs::write(&other, "two").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(matches!(file.open(), Err(StorageError::Changed { .. })));
        let file = UnchangedFile::at(&path).unwrap();
        std::fs::write(&path, "longer").unwrap();
        assert!(matches!(file.open(), Err(StorageError::Changed { .. })));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(file.open(), Err(StorageError::Gone { .. })));
    }
}
