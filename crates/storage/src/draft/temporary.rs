//! Temporary files beside local outputs, called `.NAME.HOST-BOOT-XXXXXX.tmp`.
//!
//! A process holds a lock on its temporary file while it lives. The next process with the same output removes the files
//! that killed processes left.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tempfile::TempPath;

use crate::boot_tag::{self, Origin};

/// Suffix of the names of temporary files.
const SUFFIX: &str = ".tmp";
/// Number of random characters before the suffix.
const RANDOM_CHARACTERS: usize = 6;
/// Maximum bytes of the output's name in the name of a temporary file; a file name has at most 255
/// bytes.
const MAX_NAME_BYTES: usize = 200;
/// Maximum attempts to create a file, if other processes remove it before this process locks it.
const ATTEMPTS: usize = 16;

/// An output's name, cut to [`MAX_NAME_BYTES`] bytes, as the names of its temporary files contain
/// it.
pub(super) fn shortened(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME_BYTES)]
}

/// Removes the temporary files for `name` that killed processes left in `directory`, and creates a
/// new one. The returned file holds its lock until it is closed.
pub(super) fn create(directory: &Path, name: &str) -> io::Result<(File, TempPath)> {
    sweep_known(directory, name);
    let name = shortened(name);
    for _ in 0..ATTEMPTS {
        let (file, path) = tempfile::Builder::new()
            .prefix(&format!(".{name}.{}-", boot_tag::tag()))
            .rand_bytes(RANDOM_CHARACTERS)
            .suffix(SUFFIX)
            // The file becomes the output, so others may read it; by default, `tempfile` makes
            // private files.
            .permissions(std::fs::Permissions::from_mode(0o644))
            .tempfile_in(directory)?
            .into_parts();
        // Before this lock, the sweep of another process may have locked or removed the file. On a
        // file system without locks, no sweep removes a file of this boot.
        let is_swept = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        if !is_swept && is_at(&file, &path) {
            return Ok((file, path));
        }
    }
    Err(io::Error::other(
        "its temporary files are removed as soon as they are made",
    ))
}

/// The temporary files that were in each directory when this process first made one there: what killed processes left is among
/// them. To list a directory of many outputs for each of them would take the square of their number.
static KNOWN: LazyLock<Mutex<HashMap<PathBuf, Arc<[String]>>>> = LazyLock::new(Mutex::default);

/// Removes the temporary files for `name` that were in the directory when this process first made one there.
fn sweep_known(directory: &Path, name: &str) {
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all.entry(directory.to_owned());
    let known = Arc::clone(known.or_insert_with(|| temporary_files(directory).into()));
    drop(all);
    sweep(directory, name, &known);
}

/// The names of the temporary files of all outputs in a directory.
fn temporary_files(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| name.starts_with('.') && name.ends_with(SUFFIX))
        .collect()
}

/// Removes those of the `files` of a directory that are temporary files for `name` and whose processes are dead. Ignores files that it
/// may not remove: they are another user's.
fn sweep(directory: &Path, name: &str, files: &[String]) {
    for file in files {
        let is_this_boot = match origin_in(file, name) {
            Some(Origin::ThisBoot) => true,
            Some(Origin::EarlierBoot) => false,
            Some(Origin::OtherHost) | None => continue,
        };
        let path = directory.join(file);
        // Opening a pipe or a device may block.
        if path.symlink_metadata().is_ok_and(|found| found.is_file()) {
            remove_if_abandoned(&path, is_this_boot);
        }
    }
}

/// Where a temporary file for `name` was made; `None` for other files.
fn origin_in(file: &str, name: &str) -> Option<Origin> {
    let rest = file.strip_prefix('.')?.strip_prefix(shortened(name))?;
    let tagged = rest.strip_prefix('.')?.strip_suffix(SUFFIX)?;
    let (_, random) = tagged.rsplit_once('-')?;
    let is_random =
        random.len() == RANDOM_CHARACTERS && random.bytes().all(|b| b.is_ascii_alphanumeric());
    is_random.then(|| boot_tag::origin(tagged)).flatten()
}

/// Removes a file unless its process lives. Holds the file's lock meanwhile, so that no other process uses the file.
fn remove_if_abandoned(path: &Path, is_this_boot: bool) {
    let Ok(file) = File::options().read(true).write(true).open(path) else {
        return;
    };
    let is_abandoned = match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        // On a file system without locks, only processes of an earlier boot are certainly dead.
        Err(TryLockError::Error(_)) => !is_this_boot,
    };
    if is_abandoned && is_at(&file, path) && std::fs::remove_file(path).is_ok() {
        tracing::info!(path = %path.display(), "removed the temporary file of a killed process");
    }
}

/// Whether the path still names the open file.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As [`create`] in another process.
    fn create_elsewhere(directory: &Path, name: &str) -> io::Result<(File, TempPath)> {
        KNOWN.lock().unwrap().remove(directory);
        create(directory, name)
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn names_of_temporary_files_are_recognised() {
        let tag = boot_tag::tag();
        let own = format!(".hits.csv.{tag}-abc123.tmp");
        assert_eq!(origin_in(&own, "hits.csv"), Some(Origin::ThisBoot));
        for other in [
            ".hits.csv.abc123.tmp".to_owned(),
            format!("hits.csv.{tag}-abc123.tmp"),
            format!(".other.csv.{tag}-abc123.tmp"),
            format!(".hits.csv.{tag}-abc123"),
            format!(".hits.csv.{tag}-abc12.tmp"),
            format!(".hits.csv.more.{tag}-abc123.tmp"),
        ] {
            assert_eq!(origin_in(&other, "hits.csv"), None, "{other}");
        }
    }

    /// Fault 46 (docs/faults.md): names of 255 bytes, the maximum of a file name; in the last two,
    /// the cut falls into a character.
    #[test]
    fn long_names_are_cut() {
        let directory = tempfile::tempdir().unwrap();
        for name in [
            "a".repeat(255),
            "中".repeat(85),
            format!("a{}", "é".repeat(127)),
        ] {
            let (file, path) = create(directory.path(), &name).unwrap();
            let made = path.file_name().unwrap().to_str().unwrap();
            assert!(made.len() < 255, "{made}");
            assert_eq!(origin_in(made, &name), Some(Origin::ThisBoot));
            let killed = path.keep().unwrap();
            drop(file);
            let (_next, _path) = create_elsewhere(directory.path(), &name).unwrap();
            assert!(!killed.exists());
        }
    }

    /// Fault 46 (docs/faults.md).
    #[test]
    fn files_of_killed_processes_are_swept_and_no_others() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let tag = boot_tag::tag();
        let (host, _) = tag.split_once('-').unwrap();
        let left = format!(".a.csv.{tag}-killed.tmp");
        let rebooted = format!(".a.csv.{host}-0a1b2c3d-killed.tmp");
        let stays = [
            ".a.csv.abc123.tmp".to_owned(),
            ".a.csv.3d2c1b0a-0a1b2c3d-killed.tmp".to_owned(),
            format!(".b.csv.{tag}-killed.tmp"),
        ];
        for name in stays.iter().chain([&left, &rebooted]) {
            std::fs::write(at.join(name), "x").unwrap();
        }
        let (first, first_path) = create(at, "a.csv").unwrap();
        assert!(!at.join(&left).exists() && !at.join(&rebooted).exists());
        // The first lives, and its file stays.
        let (_second, second_path) = create_elsewhere(at, "a.csv").unwrap();
        assert!(first_path.exists() && second_path.exists());
        assert_eq!(names(at).len(), stays.len() + 2);
        // As after a kill: nothing removes the file, and nothing holds its lock.
        let killed = first_path.keep().unwrap();
        drop(first);
        let (_third, _path) = create_elsewhere(at, "a.csv").unwrap();
        assert!(!killed.exists() && second_path.exists());
        assert!(stays.iter().all(|name| at.join(name).exists()));
    }

    /// Fault 46 (docs/faults.md): many processes with one output, each sweeping while others make their files.
    #[test]
    fn a_file_is_never_swept_from_under_its_process() {
        let directory = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let (file, path) = create_elsewhere(directory.path(), "a.csv").unwrap();
                        assert!(is_at(&file, &path));
                        let all = temporary_files(directory.path());
                        sweep(directory.path(), "a.csv", &all);
                        assert!(is_at(&file, &path));
                    }
                });
            }
        });
        assert!(names(directory.path()).is_empty());
    }
}
