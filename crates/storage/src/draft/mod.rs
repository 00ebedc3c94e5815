//! Output files that appear whole or not at all.
//!
//! A draft is a temporary file that becomes its target when it is published:
//!
//! | target | written to | published by |
//! |---|---|---|
//! | local path | a file beside it | a rename |
//! | object in a store | the scratch directory | an upload in parts, visible once completed |
//! | standard output | the scratch directory | a copy |

mod temporary;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::{MultipartUpload, ObjectStoreExt as _};
use tempfile::TempPath;

use crate::error::{Result, StorageError};
use crate::explain::plain_message;
use crate::location::Location;
use crate::store::wait_briefly;
use crate::unchanged_file::{UnchangedFile, directory_of};

/// The name of standard output in errors.
pub const STANDARD_OUTPUT: &str = "standard output";

/// Bytes of one part of an upload. A file of more than [`MAX_PARTS`] such parts gets larger parts.
const PART_BYTES: u64 = 8 << 20;
/// Maximum parts of one upload; every service accepts this many.
const MAX_PARTS: u64 = 9000;
const CONCURRENT_PARTS: usize = 4;

/// A temporary file that becomes its target when it is published; see the module.
#[derive(Debug)]
pub struct Draft {
    file: TempPath,
    /// `None` is standard output.
    target: Option<Location>,
    /// The file that a local target is, behind symlinks.
    local: Option<PathBuf>,
    /// The upload that [`Draft::send`] began; completed by [`Draft::publish`].
    upload: Option<Box<dyn MultipartUpload>>,
    /// The open temporary file. It holds a lock if it lies beside its target, see [`temporary`].
    /// Closed after `file` is removed.
    _lock: File,
}

impl Draft {
    /// Creates an empty draft of `target`. Beside a local target, removes the temporary files of killed processes.
    pub fn new(target: &Location, scratch: &Path) -> Result<Self> {
        let failed = |source| io_error(Some(target), source);
        let local = target
            .local()
            .map(behind_links)
            .transpose()
            .map_err(failed)?;
        let name = local.as_deref().and_then(Path::file_name);
        let name = name.map_or_else(|| target.file_name(), |name| name.to_string_lossy().into());
        let made = match local.as_deref().map(directory_of) {
            Some(directory)
                if canonical_or_absolute(directory) != canonical_or_absolute(scratch) =>
            {
                temporary::create(directory, &name)
            }
            _ => create_private(scratch, &name),
        };
        let (lock, file) = made.map_err(failed)?;
        if let Some(replaced) = local.as_deref().and_then(|local| local.metadata().ok()) {
            // While it is written, its owner may write it, and nobody may read it who may not read the old one.
            let mode = replaced.permissions().mode() & 0o777 | 0o600;
            let written = lock.set_permissions(std::fs::Permissions::from_mode(mode));
            written.map_err(failed)?;
        }
        Ok(Self {
            file,
            target: Some(target.clone()),
            local,
            upload: None,
            _lock: lock,
        })
    }

    /// Creates an empty draft of standard output.
    pub fn to_stdout(scratch: &Path) -> Result<Self> {
        let (lock, file) =
            create_private(scratch, "stdout").map_err(|source| io_error(None, source))?;
        Ok(Self {
            file,
            target: None,
            local: None,
            upload: None,
            _lock: lock,
        })
    }

    /// The temporary file.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Whether it is a draft of standard output.
    pub fn is_to_stdout(&self) -> bool {
        self.target.is_none()
    }

    /// Opens the temporary file for reading and writing.
    pub fn open(&self) -> Result<File> {
        let file = File::options().read(true).write(true).open(&self.file);
        file.map_err(|source| io_error(self.target.as_ref(), source))
    }

    /// Replaces the draft's bytes by those of another file, and keeps the draft's permissions.
    pub fn fill_from(&self, path: &Path) -> Result<()> {
        let mut file = self.open()?;
        let copied = file
            .set_len(0)
            .and_then(|()| std::io::copy(&mut File::open(path)?, &mut file));
        copied
            .map(|_| ())
            .map_err(|source| io_error(self.target.as_ref(), source))
    }

    /// The draft's size in bytes and its SHA-256 in hexadecimal, as [`Location::digest`] returns
    /// them.
    pub async fn digest(&mut self) -> Result<(u64, String)> {
        UnchangedFile::at(&self.file)?.digest().await
    }

    /// Syncs the draft of a local file to the disk, or sends the draft of an object to the store;
    /// [`Self::publish`] makes it visible. Returns its size in bytes.
    pub async fn send(&mut self) -> Result<u64> {
        let io = |source| io_error(self.target.as_ref(), source);
        let mut file = File::open(&self.file).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        let Some(target) = &self.target else {
            return Ok(size);
        };
        if target.local().is_some() {
            file.sync_all().map_err(io)?;
            return Ok(size);
        }
        let failed = |error| StorageError::store(target)(error);
        let (store, path) = (target.store(), target.path());
        let upload = store.put_multipart(path).await.map_err(failed)?;
        // Dropping `self` aborts an upload that it holds, so an error below aborts it.
        let upload = self.upload.insert(upload);
        let part = PART_BYTES.max(size.div_ceil(MAX_PARTS));
        let parts = size.div_ceil(part).max(1);
        futures::stream::iter(0..parts)
            .map(|_| {
                let mut bytes = Vec::new();
                let read = (&mut file).take(part).read_to_end(&mut bytes);
                let sending = read.map(|_| upload.put_part(Bytes::from(bytes).into()));
                async move { sending.map_err(io)?.await.map_err(failed) }
            })
            .buffer_unordered(CONCURRENT_PARTS)
            .try_collect::<()>()
            .await?;
        Ok(size)
    }

    /// Where it is to be; `None` for standard output.
    pub fn target(&self) -> Option<&Location> {
        self.target.as_ref()
    }

    /// Turns the draft into its target, replacing a file or object of that name, or copies it to standard output.
    ///
    /// # Errors
    /// When the draft cannot be published; an existing file or object of that name then stays.
    /// [`is_closed_pipe`] recognises the error for a standard output that its reader closed.
    pub async fn publish(mut self) -> Result<()> {
        let Some(target) = self.target.clone() else {
            let file = self.open()?;
            return copy_to_stdout(file).await;
        };
        if self.upload.is_none() {
            // `send` may have synced a local file before; syncing it again costs nothing.
            self.send().await?;
        }
        if let Some(local) = &self.local {
            if let Ok(replaced) = local.metadata() {
                let io = |source| io_error(Some(&target), source);
                take_rights(&self._lock, &replaced).map_err(io)?;
            }
            return std::fs::rename(&self.file, local)
                .and_then(|()| File::open(directory_of(local))?.sync_all())
                .map_err(|source| io_error(Some(&target), source));
        }
        let Some(mut upload) = self.upload.take() else {
            return Err(StorageError::Internal(
                "an upload that was not begun".into(),
            ));
        };
        let Err(error) = upload.complete().await else {
            return Ok(());
        };
        // The store may have completed the upload though its answer was lost, so compare the
        // digests.
        let sent = UnchangedFile::at(&self.file)?.digest().await?;
        if target.digest().await.is_ok_and(|found| found == sent) {
            let message = plain_message(&error);
            tracing::info!(%target, "the upload is complete, though the store answered: {message}");
            return Ok(());
        }
        // Dropping `self` aborts the upload.
        self.upload = Some(upload);
        Err(StorageError::store(&target)(error))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // An upload that is neither completed nor aborted is invisible, but takes room in the store.
        if let Some(mut upload) = self.upload.take() {
            wait_briefly(async move { upload.abort().await });
        }
    }
}

async fn copy_to_stdout(mut file: File) -> Result<()> {
    // Copies on a thread that may block: a slow reader must not delay the handling of signals.
    let copied = tokio::task::spawn_blocking(move || {
        let mut stdout = std::io::stdout().lock();
        std::io::copy(&mut file, &mut stdout).and_then(|_| stdout.flush())
    });
    let copied = copied.await.unwrap_or_else(|panic| Err(panic.into()));
    copied.map_err(|source| io_error(None, source))
}

/// Whether the error says that the reader of standard output closed the pipe.
pub fn is_closed_pipe(error: &StorageError) -> bool {
    matches!(error, StorageError::Io { path, source }
        if path == STANDARD_OUTPUT && source.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Creates a file in the scratch directory that only its owner may read.
fn create_private(scratch: &Path, name: &str) -> std::io::Result<(File, TempPath)> {
    let file = tempfile::Builder::new()
        .prefix(&format!(".{}.", temporary::shortened(name)))
        .suffix(".tmp")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .tempfile_in(scratch)?;
    Ok(file.into_parts())
}

/// Symlinks that are followed, one to the other, as Linux does.
const MAX_LINKS: usize = 40;

/// The path that a path leads to if it is a symlink, also one to a file that is not there yet.
fn behind_links(path: &Path) -> std::io::Result<PathBuf> {
    let mut real = path.to_owned();
    for _ in 0..MAX_LINKS {
        match std::fs::read_link(&real) {
            Ok(next) => real = directory_of(&real).join(next),
            // It is no link, or is not there.
            Err(_) => return Ok(real),
        }
    }
    Err(std::io::Error::other(
        "too many symlinks lead to each other",
    ))
}

/// Gives a draft the mode of the file that it replaces, and its owner and group where this process may.
fn take_rights(draft: &File, replaced: &std::fs::Metadata) -> std::io::Result<()> {
    let own = draft.metadata()?;
    let owner = (replaced.uid() != own.uid()).then_some(replaced.uid());
    let group = (replaced.gid() != own.gid()).then_some(replaced.gid());
    let mut mode = replaced.permissions().mode() & 0o7777;
    // Only root may give a file away; its owner may give it to his other groups.
    let has_both = (owner.is_none() && group.is_none()) || fchown(draft, owner, group).is_ok();
    let has_group = has_both || group.is_none() || fchown(draft, None, group).is_ok();
    if !has_group {
        // The rights of the old group are not those of another.
        mode &= !0o070;
    }
    draft.set_permissions(std::fs::Permissions::from_mode(mode))
}

/// The absolute path, without symlinks and dots if the path exists.
fn canonical_or_absolute(path: &Path) -> PathBuf {
    let real = path.canonicalize().or_else(|_| std::path::absolute(path));
    real.unwrap_or_else(|_| path.to_owned())
}

fn io_error(target: Option<&Location>, source: std::io::Error) -> StorageError {
    StorageError::Io {
        path: target.map_or_else(|| STANDARD_OUTPUT.to_owned(), ToString::to_string),
        source,
    }
}
