//! Counts the rows that repeat the id of an earlier one, by hashes of the ids.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use arrow::array::{ArrayRef, AsArray as _};
use arrow::datatypes::Int64Type;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::prelude::SessionContext;
use rayon::slice::ParallelSliceMut as _;
use storage::StorageError;

use crate::error::{EngineError, Result};
use streams::{free_bytes, thread_pool};

/// The hash of an id: the chance that any two of a billion ids share one is 10⁻¹¹, unless somebody chose them so.
type Hash = [u32; 3];

/// Hashes that are in memory before they go to a file.
const IN_MEMORY: usize = 1 << 20;
/// The least bytes of hashes that are counted at once, however little memory is free.
const LEAST_BYTES: usize = 4 << 20;

/// Hashes of the ids of a batch.
#[derive(Debug)]
pub(crate) struct IdCount {
    hashes: Vec<Hash>,
    path: PathBuf,
    /// The hashes that are not in memory.
    file: Option<File>,
    /// Their number.
    written: u64,
}

impl IdCount {
    /// Counts ids; those that are many are in a file below `scratch`.
    pub(crate) fn new(scratch: &Path) -> Self {
        Self {
            hashes: Vec::new(),
            path: scratch.join("ids"),
            file: None,
            written: 0,
        }
    }

    fn failed(&self, source: std::io::Error) -> EngineError {
        StorageError::io(self.path.display())(source).into()
    }

    pub(crate) fn add(&mut self, ids: &ArrayRef) -> Result<()> {
        each_id(ids, |id| {
            let [hash, more] = simhash::hash::murmur3_128(id, 0);
            self.hashes
                .push([hash as u32, (hash >> 32) as u32, more as u32]);
        });
        if self.hashes.len() > IN_MEMORY {
            self.write().map_err(|error| self.failed(error))
        } else {
            Ok(())
        }
    }

    fn write(&mut self) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(File::create(&self.path)?),
        };
        let mut bytes = Vec::with_capacity(size_of_val(&*self.hashes));
        for word in self.hashes.as_flattened() {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        file.write_all(&bytes)?;
        self.written += self.hashes.len() as u64;
        self.hashes.clear();
        Ok(())
    }

    /// The number of rows that repeat the id of an earlier row. Reads the file several times if its hashes do not fit the memory.
    pub(crate) fn duplicates(mut self, context: &SessionContext) -> Result<u64> {
        let threads = thread_pool(context)?;
        let pool = &context.runtime_env().memory_pool;
        let memory = MemoryConsumer::new("hashes of ids").register(pool);
        let bytes = size_of::<Hash>() as u64 * self.written;
        let at_once = (free_bytes(pool) / 2).max(LEAST_BYTES) as u64;
        let passes = bytes.div_ceil(at_once).max(1);
        // What cannot be reserved is at most `LEAST_BYTES`.
        let _ = memory.try_grow((bytes / passes) as usize);
        let mut duplicates = 0;
        for pass in 0..passes {
            let is_now = |hash: &Hash| (u64::from(hash[0]) * passes) >> 32 == pass;
            let mut hashes: Vec<Hash> = Vec::new();
            // Random hashes are spread evenly.
            hashes.reserve_exact(((self.written / passes) as usize / 16) * 17);
            hashes.extend(self.hashes.iter().copied().filter(is_now));
            let read = self.read(|hash| {
                if is_now(&hash) {
                    hashes.push(hash);
                }
            });
            read.map_err(|error| self.failed(error))?;
            // The closure makes this crate compile the sort, optimised; without it, the sort is that of
            // a dependency, which is not.
            threads.install(|| hashes.par_sort_unstable_by(|a, b| a.cmp(b)));
            let pairs = hashes.windows(2);
            duplicates += pairs.filter(|pair| pair[0] == pair[1]).count() as u64;
        }
        if self.file.take().is_some() {
            // The scratch directory is removed anyway.
            let _ = std::fs::remove_file(&self.path);
        }
        Ok(duplicates)
    }

    /// Calls `each` with every hash in the file.
    fn read(&mut self, mut each: impl FnMut(Hash)) -> std::io::Result<()> {
        if self.file.is_none() {
            return Ok(());
        }
        let mut reader = File::open(&self.path)?;
        let mut bytes = vec![0; size_of::<Hash>() * IN_MEMORY / 16];
        let mut left = self.written as usize * size_of::<Hash>();
        while left > 0 {
            let now = left.min(bytes.len());
            reader.read_exact(&mut bytes[..now])?;
            for hash in bytes[..now].as_chunks::<{ size_of::<Hash>() }>().0 {
                let words = hash.as_chunks::<4>().0;
                each([0, 1, 2].map(|at: usize| u32::from_le_bytes(words[at])));
            }
            left -= now;
        }
        Ok(())
    }
}

/// Calls `each` with every id, as bytes.
fn each_id(ids: &ArrayRef, mut each: impl FnMut(&[u8])) {
    if let Some(text) = ids.as_string_opt::<i32>() {
        text.iter().flatten().for_each(|id| each(id.as_bytes()));
    } else if let Some(numbers) = ids.as_primitive_opt::<Int64Type>() {
        numbers
            .values()
            .iter()
            .for_each(|id| each(&id.to_le_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringArray};

    use super::*;
    use crate::session::test_session;

    #[test]
    fn repeated_ids_are_counted_in_several_passes() {
        let directory = tempfile::tempdir().unwrap();
        // A million hashes take 12 MB; with 1 MiB of memory, each pass counts 4 MiB of them.
        for (memory, ids) in [
            (1 << 20, 1_000_000i64),
            (1 << 30, 1_000_000),
            (1 << 30, 1000),
        ] {
            let context = test_session(directory.path(), memory);
            let mut count = IdCount::new(directory.path());
            for from in (0..ids).step_by(1000) {
                let numbers: ArrayRef = Arc::new(
                    (from..from + 1000)
                        .map(|id| id / 3 * 3)
                        .collect::<Int64Array>(),
                );
                count.add(&numbers).unwrap();
            }
            let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "a"]));
            count.add(&texts).unwrap();
            let distinct = (0..ids)
                .map(|id| id / 3 * 3)
                .collect::<std::collections::HashSet<_>>();
            let expected = ids as u64 - distinct.len() as u64 + 1;
            assert_eq!(count.duplicates(&context).unwrap(), expected);
        }
    }
}
