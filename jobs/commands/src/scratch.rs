//! Creates a process's scratch directory, and removes those that killed processes left.

use std::fs::{DirEntry, File, Permissions, TryLockError};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use storage::StorageError;
use storage::boot_tag::{self, Origin};
use tempfile::TempDir;

use crate::args::CommonArgs;
use crate::exit::Failure;

/// The prefix of scratch directories' names; the tag of the machine and its boot follows.
const PREFIX: &str = "dedup-job-";
/// A file in each scratch directory, locked while its process lives.
const LOCK: &str = ".lock";
/// Younger directories are not removed: their process may not have locked them yet.
const YOUNG: Duration = Duration::from_secs(60);

/// A directory that is removed when this is dropped.
pub struct Scratch {
    directory: TempDir,
    /// Locked as long as the process lives.
    _lock: File,
}

impl Scratch {
    /// Removes the directories of killed processes, then creates one in --scratch or the system's
    /// temporary directory.
    pub fn create(common: &CommonArgs) -> Result<Self, Failure> {
        let given = common.scratch.clone();
        let parent = given.unwrap_or_else(std::env::temp_dir);
        remove_abandoned(&parent);
        let failed = StorageError::io(parent.display());
        let directory = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", boot_tag::tag()))
            // Other users must not read texts, ids and fingerprints, whatever the umask.
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .map_err(&failed)?;
        let lock = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(directory.path().join(LOCK))
            .map_err(&failed)?;
        // On a file system without locks, directories of killed processes stay.
        let _ = lock.try_lock();
        Ok(Self {
            directory,
            _lock: lock,
        })
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The directory in which it was made: that of --scratch, or the system's for temporary files.
    pub fn parent(&self) -> &Path {
        self.path().parent().unwrap_or(self.path())
    }
}

/// Removes the directories of dead processes; file permissions protect those of other users.
fn remove_abandoned(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if rest.is_some_and(|rest| is_abandoned(&entry, boot_tag::origin(rest))) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether the directory's process is certainly dead.
fn is_abandoned(directory: &DirEntry, origin: Option<Origin>) -> bool {
    let path = directory.path().join(LOCK);
    // To open a pipe that somebody put there would wait for its writer.
    let is_file = || std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
    let lock = || {
        if is_file() {
            File::open(&path).map(|lock| lock.try_lock())
        } else {
            Err(std::io::ErrorKind::InvalidInput.into())
        }
    };
    match origin {
        // Locks of other hosts may be invisible here.
        Some(Origin::OtherHost) => false,
        // If the lock is held, the process lives: it runs on another machine with the same tag.
        Some(Origin::EarlierBoot) => !matches!(lock(), Ok(Err(TryLockError::WouldBlock))),
        // An earlier version of dedup-job made a directory without a tag; its process may be alive.
        Some(Origin::ThisBoot) | None => is_old(directory) && matches!(lock(), Ok(Ok(()))),
    }
}

fn is_old(directory: &DirEntry) -> bool {
    let age = || directory.metadata().ok()?.modified().ok()?.elapsed().ok();
    age().is_some_and(|age| age >= YOUNG)
}
