//! The log of remembered documents: records are appended to a file, and synced before the request is answered.
//!
//! ```text
//! 0    length of the bytes from 12 on u32
//! 4    XXH3-64 of them u64
//! 12   seconds since 1970 u64, fingerprint u64, id
//! ```
//!
//! A killed process leaves at most part of a record at the end of its file. Each process begins a new file, and another
//! one every hour, so that old files can be removed.

use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use storage::create_dir_all_synced;
use tokio::sync::oneshot;
use twox_hash::XxHash3_64;

use super::{Remembered, now};
use crate::error::{LookupError, Result};
use crate::paged::{u32_at, u64_at};

/// Seconds after which a new file begins.
const FILE_SECONDS: u64 = 3600;
/// Bytes of a record before its id.
const FIXED: usize = 28;
const PREFIX: &str = "seen-";
const ENDING: &str = ".log";
const LOCK: &str = "lock";

/// An open log; one process at a time has it.
pub(super) struct Log {
    directory: PathBuf,
    records: Sender<Records>,
    failures: Arc<AtomicU64>,
    /// Locks the directory until this is dropped.
    _lock: File,
}

/// Encoded records to write, and the sender that reports when they are on the disk.
struct Records {
    bytes: Vec<u8>,
    /// Writes that had failed when they were sent.
    failures: u64,
    done: oneshot::Sender<Result<(), String>>,
}

impl Log {
    /// Calls `each` with every record that is not older than `oldest`, and begins a new file.
    pub(super) fn open(
        directory: &Path,
        oldest: u64,
        mut each: impl FnMut(u64, Remembered),
    ) -> Result<Self> {
        let io = |path: &Path| LookupError::io(path.display().to_string());
        create_dir_all_synced(directory).map_err(io(directory))?;
        let lock_path = directory.join(LOCK);
        let lock = File::create(&lock_path).map_err(io(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LookupError::InUse {
                    path: directory.display().to_string(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(io(&lock_path)(error)),
        }
        for (_, path) in files(directory).map_err(io(directory))? {
            let bytes = std::fs::read(&path).map_err(io(&path))?;
            let read = read_records(&bytes, |time, entry| {
                if time >= oldest {
                    each(time, entry);
                }
            });
            if read < bytes.len() {
                tracing::warn!(
                    "{}: the last {} bytes are not a whole record and were ignored",
                    path.display(),
                    bytes.len() - read
                );
            }
        }
        let (records, received) = channel();
        let failures = Arc::new(AtomicU64::new(0));
        let writer = Writer::new(directory, Arc::clone(&failures))?;
        std::thread::spawn(move || writer.run(&received));
        Ok(Self {
            directory: directory.to_owned(),
            records,
            failures,
            _lock: lock,
        })
    }

    /// Appends entries. The future ends when they are on the disk, and all that were appended before.
    pub(super) fn append(
        &self,
        time: u64,
        entries: &[Remembered],
    ) -> impl Future<Output = Result<()>> + use<> {
        let mut bytes = Vec::new();
        for entry in entries {
            encode(time, entry, &mut bytes);
        }
        let (done, written) = oneshot::channel();
        let directory = self.directory.display().to_string();
        // If the writer is gone, `written` says so.
        let failures = self.failures.load(Ordering::Relaxed);
        let records = Records {
            bytes,
            failures,
            done,
        };
        let _ = self.records.send(records);
        async move {
            let written = written
                .await
                .unwrap_or_else(|_| Err("the log's writer has ended".into()));
            written.map_err(|reason| LookupError::io(directory)(std::io::Error::other(reason)))
        }
    }

    /// Whether a write has failed. Entries of before may then be missing.
    pub(super) fn has_failed(&self) -> bool {
        self.failures.load(Ordering::Relaxed) > 0
    }
}

/// Removes the files of a log in which all records are from before `oldest`.
pub(super) fn remove_before(directory: &Path, oldest: u64) {
    for (begun, path) in files(directory).unwrap_or_default() {
        if begun + 2 * FILE_SECONDS < oldest {
            // If this fails, the next start ignores the records, because they are too old.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn encode(time: u64, entry: &Remembered, bytes: &mut Vec<u8>) {
    let mut rest = Vec::with_capacity(FIXED + entry.id.len());
    rest.extend_from_slice(&time.to_le_bytes());
    rest.extend_from_slice(&entry.fingerprint.to_le_bytes());
    rest.extend_from_slice(entry.id.as_bytes());
    bytes.extend_from_slice(&(rest.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&XxHash3_64::oneshot(&rest).to_le_bytes());
    bytes.append(&mut rest);
}

/// Calls `each` with each record before the first that is not whole. Returns the length of those records in bytes.
fn read_records(bytes: &[u8], mut each: impl FnMut(u64, Remembered)) -> usize {
    let mut at = 0;
    loop {
        let record = || {
            let length = u32_at(bytes, at)? as usize;
            let rest = bytes.get(at + 12..(at + 12).checked_add(length)?)?;
            let is_whole = u64_at(bytes, at + 4)? == XxHash3_64::oneshot(rest);
            let id = String::from_utf8(rest.get(16..)?.to_vec()).ok()?;
            let fingerprint = u64_at(rest, 8)?;
            is_whole.then_some((length, u64_at(rest, 0)?, Remembered { fingerprint, id }))
        };
        let Some((length, time, entry)) = record() else {
            return at;
        };
        each(time, entry);
        at += 12 + length;
    }
}

/// The files of a log, the oldest first, each with the time at which it was begun, in seconds since 1970.
fn files(directory: &Path) -> std::io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let begun = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(ENDING));
        let begun = begun.and_then(|begun| begun.split('-').next()?.parse().ok());
        files.extend(begun.map(|begun| (begun, entry.path())));
    }
    files.sort();
    Ok(files)
}

/// Writes records, on a thread of its own.
struct Writer {
    directory: PathBuf,
    begun: u64,
    /// Files that this process has begun.
    number: u32,
    file: File,
    /// Whether the last write failed.
    is_broken: bool,
    failures: Arc<AtomicU64>,
}

impl Writer {
    fn new(directory: &Path, failures: Arc<AtomicU64>) -> Result<Self> {
        let begun = now();
        let file = begin(directory, begun, 0).map_err(LookupError::io(directory.display()))?;
        Ok(Self {
            directory: directory.to_owned(),
            begun,
            number: 0,
            file,
            is_broken: false,
            failures,
        })
    }

    /// Group commit: writes all records that have arrived, syncs once, and reports to each sender.
    fn run(mut self, received: &Receiver<Records>) {
        while let Ok(first) = received.recv() {
            let mut bytes = first.bytes;
            let mut waiting = vec![(first.failures, first.done)];
            for more in received.try_iter() {
                bytes.extend_from_slice(&more.bytes);
                waiting.push((more.failures, more.done));
            }
            let written = self.write(&bytes).map_err(|error| error.to_string());
            if written.is_err() {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
            let failures = self.failures.load(Ordering::Relaxed);
            for (before, done) in waiting {
                // Its entries may be known from records whose write failed since.
                let all = if written.is_ok() && before < failures {
                    Err("an earlier write failed; send it again".to_owned())
                } else {
                    written.clone()
                };
                // The request may have been dropped meanwhile.
                let _ = done.send(all);
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        // A restart reads a file up to the first partial record, so records after a failure go to another file.
        if self.is_broken || now() > self.begun + FILE_SECONDS {
            self.number += 1;
            self.begun = now();
            self.file = begin(&self.directory, self.begun, self.number)?;
            self.is_broken = false;
        }
        let written = self
            .file
            .write_all(bytes)
            .and_then(|()| self.file.sync_data());
        self.is_broken = written.is_err();
        written
    }
}

/// Creates a log file under a name that is not in use.
fn begin(directory: &Path, begun: u64, number: u32) -> std::io::Result<File> {
    for attempt in 0.. {
        let name = format!(
            "{PREFIX}{begun:012}-{:06}{ENDING}",
            u64::from(number) + attempt
        );
        match File::options()
            .write(true)
            .create_new(true)
            .open(directory.join(name))
        {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => {
                File::open(directory)?.sync_all()?;
                return Ok(file);
            }
        }
    }
    unreachable!("the loop returns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_up_to_the_first_that_is_cut_off() {
        let entries: Vec<Remembered> = (0..3)
            .map(|number| Remembered {
                fingerprint: number,
                id: "é".repeat(number as usize),
            })
            .collect();
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        for entry in &entries {
            encode(5, entry, &mut bytes);
            ends.push(bytes.len());
        }
        for length in 0..=bytes.len() {
            let mut read = Vec::new();
            let end = read_records(&bytes[..length], |time, entry| {
                assert_eq!(time, 5);
                read.push(entry);
            });
            let whole = ends.iter().rposition(|end| *end <= length).unwrap();
            assert_eq!((end, &read[..]), (ends[whole], &entries[..whole]));
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let mut read = Vec::new();
            read_records(&damaged, |_, entry| read.push(entry));
            assert!(read.len() < 3 && entries.starts_with(&read));
        }
    }
}
