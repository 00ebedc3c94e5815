//! Sorts fingerprints by their trailing half, for the table `rotated`: a bucket sort that spills to the disk.
//!
//! The leading bits of a rotated fingerprint choose its partition. A partition collects a run of values in memory; with
//! a spill file, a full run goes to the disk. At the end, threads read, sort and encode the partitions. Each is a range
//! of whole blocks, so that its encoded blocks are appended to the table as they are.

use std::fs::File;
use std::num::NonZero;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use rayon::prelude::*;

use crate::error::{LookupError, Result};
use crate::paged::PagedWriter;
use crate::table::{BLOCK_BITS, Encoder, TableWriter};

/// Values of a full run.
const RUN: usize = 1 << 13;
/// Values of a partition, about.
const PARTITION_VALUES: u64 = 1 << 20;
/// log₂ of the most partitions; each has a run in memory.
const MAX_PARTITION_BITS: u32 = 12;

/// Runs that may wait to be written.
const WAITING: usize = 256;

/// A file of runs; a thread of its own writes them.
struct Spill {
    full: SyncSender<(u64, Vec<u64>)>,
    empty: Receiver<Vec<u64>>,
    thread: JoinHandle<std::io::Result<File>>,
}

impl Spill {
    fn new(file: File) -> Self {
        let (full, received) = sync_channel(WAITING);
        let (returned, empty) = channel();
        Self {
            full,
            empty,
            thread: std::thread::spawn(move || write_runs(file, &received, &returned)),
        }
    }

    /// Waits until all runs are written.
    fn finish(self) -> std::io::Result<File> {
        drop(self.full);
        let written = self.thread.join();
        written.unwrap_or_else(|_| Err(std::io::Error::other("the writer of runs has failed")))
    }
}

/// Writes runs, each where it is to begin, as they come.
fn write_runs(
    file: File,
    full: &Receiver<(u64, Vec<u64>)>,
    empty: &Sender<Vec<u64>>,
) -> std::io::Result<File> {
    for (at, mut run) in full {
        file.write_all_at(bytemuck::cast_slice(&run), at)?;
        run.clear();
        // The other end is gone if the sort was dropped.
        let _ = empty.send(run);
    }
    Ok(file)
}

/// Collects rotated fingerprints, to sort them and write the table.
pub(super) struct RotatedSort {
    partitions: Partitions,
    /// `None` if all stays in memory.
    spill: Option<Spill>,
    spilled: u64,
}

impl RotatedSort {
    /// A sort of about `values` values; if that is more than `memory`, it spills to a file in `scratch`.
    pub(super) fn new(
        name: &str,
        bucket_bits: u32,
        values: u64,
        memory: u64,
        scratch: &std::path::Path,
    ) -> Result<Self> {
        let wanted = (values / PARTITION_VALUES).max(1).ilog2();
        let partition_bits = wanted.min(MAX_PARTITION_BITS).min(bucket_bits - BLOCK_BITS);
        let spill = if values > memory {
            let file = tempfile::tempfile_in(scratch);
            Some(Spill::new(
                file.map_err(LookupError::io(scratch.display()))?,
            ))
        } else {
            None
        };
        Ok(Self {
            partitions: Partitions {
                name: name.to_owned(),
                bucket_bits,
                partition_bits,
                runs: vec![Vec::new(); 1 << partition_bits],
                written: vec![Vec::new(); 1 << partition_bits],
            },
            spill,
            spilled: 0,
        })
    }

    /// Adds a fingerprint, rotated.
    #[inline]
    pub(super) fn push(&mut self, value: u64) -> Result<()> {
        let partitions = &mut self.partitions;
        let partition = value.checked_shr(64 - partitions.partition_bits);
        let partition = partition.unwrap_or(0) as usize;
        let run = &mut partitions.runs[partition];
        run.push(value);
        if run.len() >= RUN && self.spill.is_some() {
            return self.write_run(partition);
        }
        Ok(())
    }

    #[cold]
    fn write_run(&mut self, partition: usize) -> Result<()> {
        let Some(spill) = &self.spill else {
            return Ok(());
        };
        let next = spill
            .empty
            .try_recv()
            .unwrap_or_else(|_| Vec::with_capacity(RUN));
        let run = std::mem::replace(&mut self.partitions.runs[partition], next);
        let (at, bytes) = (self.spilled, size_of_val(&run[..]) as u64);
        self.partitions.written[partition].push(at);
        self.spilled += bytes;
        if spill.full.send((at, run)).is_err() {
            // The thread has ended, because it could not write.
            let written = self.spill.take().map(Spill::finish);
            let error = written.and_then(std::io::Result::err);
            let error =
                error.unwrap_or_else(|| std::io::Error::other("the writer of runs has ended"));
            return Err(LookupError::io(&self.partitions.name)(error));
        }
        Ok(())
    }

    /// Sorts and encodes all partitions on the threads of `pool`, and writes them to `table`.
    pub(super) fn write(
        self,
        table: &mut TableWriter,
        file: &mut PagedWriter,
        pool: &rayon::ThreadPool,
    ) -> Result<()> {
        let partitions = self.partitions;
        let spill = self.spill.map(Spill::finish).transpose();
        let spill = spill.map_err(LookupError::io(&partitions.name))?;
        let spill = spill.as_ref();
        let numbers: Vec<usize> = (0..partitions.runs.len()).collect();
        // Two partitions for each thread keep the threads busy while the slowest one ends.
        let together = 2 * pool.current_num_threads();
        partitions.request(spill, 0..together);
        for (number, some) in numbers.chunks(together).enumerate() {
            partitions.request(spill, (number + 1) * together..(number + 2) * together);
            let encoded: Vec<_> = pool.install(|| {
                let some = some.par_iter();
                some.map(|&partition| partitions.blocks(spill, partition))
                    .collect()
            });
            for blocks in encoded {
                let (bytes, lengths) = blocks?;
                table.push_blocks(file, &bytes, &lengths)?;
            }
        }
        Ok(())
    }
}

/// Values by their leading bits, in runs: the last run of each partition is in memory, the others are in the file of runs.
struct Partitions {
    name: String,
    bucket_bits: u32,
    partition_bits: u32,
    /// The last values of each partition.
    runs: Vec<Vec<u64>>,
    /// Where each of its other runs begins in the file.
    written: Vec<Vec<u64>>,
}

impl Partitions {
    /// Asks the system to read the runs of some partitions, without waiting for them.
    fn request(&self, file: Option<&File>, partitions: Range<usize>) {
        let Some(file) = file else { return };
        let bytes = NonZero::new((RUN * size_of::<u64>()) as u64);
        let partitions = self
            .written
            .iter()
            .skip(partitions.start)
            .take(partitions.len());
        for start in partitions.flatten() {
            // A refusal only makes the later read wait.
            let _ = rustix::fs::fadvise(file, *start, bytes, rustix::fs::Advice::WillNeed);
        }
    }

    /// All values of a partition, sorted.
    fn sorted(&self, file: Option<&File>, partition: usize) -> Result<Vec<u64>> {
        let starts = &self.written[partition];
        let last = &self.runs[partition];
        let mut values = vec![0u64; starts.len() * RUN];
        for (run, start) in values.chunks_exact_mut(RUN).zip(starts) {
            let Some(file) = file else { break };
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(run);
            file.read_exact_at(bytes, *start)
                .map_err(LookupError::io(&self.name))?;
        }
        values.extend_from_slice(last);
        values.sort_unstable();
        Ok(values)
    }

    /// The blocks of a partition, and the length of each in bytes.
    fn blocks(&self, file: Option<&File>, partition: usize) -> Result<(Vec<u8>, Vec<u32>)> {
        let values = self.sorted(file, partition)?;
        let blocks = 1u32 << (self.bucket_bits - BLOCK_BITS - self.partition_bits);
        let mut lengths = Vec::with_capacity(blocks as usize);
        let mut bytes = Vec::with_capacity(values.len() * 5);
        let mut encoder = Encoder::new(self.bucket_bits);
        let mut left = &values[..];
        for _ in 0..blocks {
            let number = |value: u64| {
                value
                    .checked_shr(64 - self.bucket_bits + BLOCK_BITS)
                    .unwrap_or(0)
            };
            let wanted = (partition as u64) * u64::from(blocks) + lengths.len() as u64;
            let count = left
                .iter()
                .take_while(|value| number(**value) == wanted)
                .count();
            let (block, rest) = left.split_at(count);
            block.iter().for_each(|value| encoder.push(*value, 1));
            let before = bytes.len();
            encoder.encode(0, &mut bytes);
            let length = u32::try_from(bytes.len() - before);
            lengths.push(
                length
                    .map_err(|_| LookupError::damaged(&self.name, "a block of more than 4 GiB"))?,
            );
            left = rest;
        }
        Ok((bytes, lengths))
    }
}
