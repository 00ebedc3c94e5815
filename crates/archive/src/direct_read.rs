//! Reads of local files past the system's page cache (`O_DIRECT`).
//!
//! The kernel spends about one second of processor time per GB that it reads into its cache. An
//! archive larger than the memory evicts itself from the cache before a run reads it again, so that
//! time buys nothing. Bytes that the cache holds already are read from the cache.

use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use storage::UnchangedFile;

/// Alignment of offsets, lengths and memory: the largest block size of common disks.
const BLOCK: u64 = 4096;

/// Longer ranges are read in the usual way, piece by piece. A row group of this program has up to 8 MB of fingerprints.
const MAX_BYTES: u64 = 16 << 20;

/// Memory that is reused: the first touch of new memory costs as much as the read itself.
#[derive(Debug, Clone, Default)]
pub struct DirectBuffers(Arc<Mutex<Vec<Vec<u8>>>>);

/// Bytes in a buffer of [`DirectBuffers`]; dropping them returns the buffer.
struct Filled {
    memory: Vec<u8>,
    range: Range<usize>,
    buffers: DirectBuffers,
}

impl AsRef<[u8]> for Filled {
    fn as_ref(&self) -> &[u8] {
        &self.memory[self.range.clone()]
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        let free = self.buffers.0.lock();
        free.unwrap_or_else(PoisonError::into_inner).push(memory);
    }
}

impl DirectBuffers {
    /// Memory of at least `length` bytes.
    fn take(&self, length: usize) -> Vec<u8> {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut memory = free.unwrap_or_default();
        if memory.len() < length {
            memory.resize(length, 0);
        }
        memory
    }

    /// The bytes at `range` of a file, read past the cache. `None` if the cache holds them, or if
    /// the read fails: the file system may refuse it, or the file may have changed. The caller then
    /// reads them in the usual way, which reports the error if it lasts.
    pub(crate) fn read(&self, file: &UnchangedFile, range: &Range<u64>) -> Option<Bytes> {
        if range.is_empty()
            || range.end - range.start > MAX_BYTES
            || is_cached(&file.open().ok()?, range)
        {
            return None;
        }
        let direct = file.open_direct().ok()?;
        let first = range.start / BLOCK * BLOCK;
        let length = (range.end - first).next_multiple_of(BLOCK);
        let (length, wanted) = (usize::try_from(length).ok()?, (range.end - first) as usize);
        let memory = self.take(length + BLOCK as usize);
        let start = memory.as_ptr().align_offset(BLOCK as usize);
        let mut filled = Filled {
            range: start..start,
            buffers: self.clone(),
            memory,
        };
        let mut read = 0;
        while read < wanted {
            let target = &mut filled.memory[start + read..start + length];
            match direct.read_at(target, first + read as u64) {
                Ok(0) => return None,
                Ok(bytes) => read += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        filled.range = start + (range.start - first) as usize..start + wanted;
        Some(Bytes::from_owner(filled))
    }
}

/// Whether the bytes of a file are in the system's cache, judged by three of them.
#[cfg(target_os = "linux")]
fn is_cached(file: &std::fs::File, range: &Range<u64>) -> bool {
    use rustix::io::{ReadWriteFlags, preadv2};
    // Where a read would have to wait, it still brings its page into the cache. So each run tests other places.
    let random = std::hash::RandomState::new();
    let place = |number: u32| {
        let random = std::hash::BuildHasher::hash_one(&random, number);
        range.start + random % (range.end - range.start)
    };
    let is_here = |offset| {
        let mut byte = [0];
        let mut buffers = [std::io::IoSliceMut::new(&mut byte)];
        // `preadv2` fails if it would have to wait for the disk.
        preadv2(file, &mut buffers, offset, ReadWriteFlags::NOWAIT).is_ok()
    };
    (0..3).map(place).all(is_here)
}

/// Says that the bytes are in the cache: without `O_DIRECT`, all reads are usual ones.
#[cfg(not(target_os = "linux"))]
fn is_cached(_: &std::fs::File, _: &Range<u64>) -> bool {
    true
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_file() {
        // Not below the temporary directory, which may be in memory.
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("file");
        let content: Vec<u8> = (0..100_000_u32).flat_map(|at| at.to_le_bytes()).collect();
        std::fs::write(&path, &content).unwrap();
        let file = UnchangedFile::at(&path).unwrap();
        let buffers = DirectBuffers::default();
        let opened = file.open().unwrap();
        opened.sync_all().unwrap();
        let mut direct = 0;
        for range in [0..400_000, 1..2, 4095..4097, 8192..12_288, 399_999..400_000] {
            rustix::fs::fadvise(&opened, 0, None, rustix::fs::Advice::DontNeed).unwrap();
            let expected = &content[range.start as usize..range.end as usize];
            // `None` where this file system keeps all in memory, or refuses.
            if let Some(bytes) = buffers.read(&file, &range) {
                assert_eq!(&bytes[..], expected);
                direct += 1;
                // A second reader gets memory of its own.
                let again = buffers.read(&file, &range);
                assert!(again.is_none_or(|again| again == expected));
            }
        }
        let free = buffers.0.lock().unwrap().len();
        assert!(
            free <= 2 && (free > 0) == (direct > 0),
            "{free} buffers of {direct} reads"
        );
        // The range ends one byte after the file, which ends inside a block.
        assert!(buffers.read(&file, &(399_999..400_001)).is_none());
        // In the cache.
        std::fs::read(&path).unwrap();
        assert!(buffers.read(&file, &(0..400_000)).is_none());
    }
}
