//! The memory limits of a reader of one row file.

use crate::error::DocumentsError;

/// The most bytes of a record, however much memory there is: Arrow counts the bytes of a column with 31 bits.
const MAX_RECORD: usize = 256 << 20;
/// A record may take a thread's share of the memory, divided by this: a parser holds a few copies
/// of it, and a thread reads two files of a store at the same time.
const COPIES: usize = 4;
/// The fewest threads that the memory is divided among.
const LEAST_THREADS: usize = 2;
/// The largest window of a zstd frame, as a power of two: the default limit of the zstd library.
const MAX_WINDOW_LOG: u32 = 27;
/// The smallest limit of a window, as a power of two: what the zstd format recommends that decoders support.
const MIN_WINDOW_LOG: u32 = 23;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) record: usize,
    /// Whether a larger memory limit would allow longer records.
    by_memory: bool,
    /// The largest window of a zstd frame, as a power of two.
    pub(crate) window_log: u32,
    threads: usize,
}

impl Limit {
    /// The limits of each reader when `threads` threads read files within `memory` bytes.
    pub(crate) fn from_memory(memory: usize, threads: usize) -> Self {
        let threads = threads.max(LEAST_THREADS);
        let share = memory / COPIES.saturating_mul(threads);
        Self {
            record: share.min(MAX_RECORD),
            by_memory: share < MAX_RECORD,
            window_log: share.max(1).ilog2().clamp(MIN_WINDOW_LOG, MAX_WINDOW_LOG),
            threads,
        }
    }

    /// The error of a longer record; `object` names the file and the line.
    pub(super) fn exceeded(self, object: String) -> DocumentsError {
        let bytes = self.record;
        if self.by_memory {
            self.out_of_memory(&format!("{object} is longer than {bytes} bytes"))
        } else {
            let reason = format!("a record of more than {bytes} bytes; no record may be longer");
            DocumentsError::bad_data(object, reason)
        }
    }

    /// The error of a larger window; `object` names the file and the line.
    pub(super) fn window_exceeded(self, object: String) -> DocumentsError {
        let large = format!(
            "compressed with a window of more than {} MiB",
            (1_u64 << self.window_log) >> 20
        );
        if self.window_log < MAX_WINDOW_LOG {
            self.out_of_memory(&format!("{object}: {large}"))
        } else {
            DocumentsError::bad_data(object, format!("{large}; compress it again without --long"))
        }
    }

    /// The error when `what` needs more memory, or fewer threads.
    fn out_of_memory(self, what: &str) -> DocumentsError {
        let threads = self.threads;
        let fewer = if threads > LEAST_THREADS {
            " (fewer --threads allow more)"
        } else {
            ""
        };
        DocumentsError::OutOfMemory {
            what: format!("{what}, the most that it allows on {threads} threads{fewer}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use storage::ErrorKind;

    use super::*;

    #[test]
    fn records_are_limited_by_the_memory_and_by_arrow() {
        for threads in [1, 2] {
            let small = Limit::from_memory(64 << 20, threads);
            assert_eq!((small.record, small.window_log), (8 << 20, 23));
            let error = small.exceeded("a, line 3".into());
            assert_eq!(error.kind(), ErrorKind::TryAgain);
            assert_eq!(
                error.to_string(),
                "out of the memory limit: a, line 3 is longer than 8388608 bytes, the most that it allows on 2 threads; raise --memory-limit"
            );
        }
        let shared = Limit::from_memory(64 << 20, 8);
        assert_eq!((shared.record, shared.window_log), (2 << 20, 23));
        let error = shared.exceeded("a, line 3".into()).to_string();
        assert!(error.contains("8 threads (fewer --threads"), "{error}");
        assert_eq!(Limit::from_memory(1 << 30, 4).window_log, 26);
        let large = Limit::from_memory(usize::MAX, 2);
        assert_eq!((large.record, large.window_log), (MAX_RECORD, 27));
        assert_eq!(large.exceeded("a, line 3".into()).kind(), ErrorKind::Data);
        assert_eq!(Limit::from_memory(0, usize::MAX).record, 0);
    }
}
