//! What the fuzz targets share: a hook that tells this project's panics from those of libraries,
//! edits of valid data that the fuzzer's bytes describe, and one runtime.

pub mod fixture;
pub mod json_edits;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{LazyLock, Mutex, Once, PoisonError};

use storage::ErrorKind;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// Limit on the edits of one input.
const MAX_EDITS: usize = 32;
/// Message of the last panic in a library; it may have been caught.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Runs `target` on one input. A panic in this project's code aborts the process, even where code catches it. A panic
/// in a library aborts only if no code catches it.
pub fn run(target: impl FnOnce()) {
    static HOOK: Once = Once::new();
    // Replaces the fuzzer's hook, which aborts at every panic: the program catches panics of libraries by design.
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let text = panic.to_string();
            if panic.location().is_none_or(|at| is_own(at.file())) {
                eprintln!("{text}\n{}", std::backtrace::Backtrace::force_capture());
                std::process::abort();
            }
            *LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }));
    });
    if catch_unwind(AssertUnwindSafe(target)).is_err() {
        let panic = LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner);
        eprintln!("{panic}");
        std::process::abort();
    }
}

/// Returns whether a source file belongs to this project.
fn is_own(file: &str) -> bool {
    let root = env!("CARGO_MANIFEST_DIR").trim_end_matches("crates/testkit/fuzz");
    Path::new(file).is_relative() || file.starts_with(root)
}

/// Runs `work`; returns `None` if a library panics. It stands for a task whose panics the program
/// catches.
pub fn catch_library_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// Fails if an error is internal, that is a defect of the program, for example a caught panic.
pub fn assert_not_internal(kind: ErrorKind, text: &dyn std::fmt::Display) {
    assert!(kind != ErrorKind::Internal, "an internal error: {text}");
}

/// Runs a future to its end on the runtime that all inputs share.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(64)
            // Code that is compiled without optimisation has large frames.
            .thread_stack_size(8 << 20)
            .enable_all()
            .build();
        runtime.expect("a runtime")
    });
    RUNTIME.block_on(future)
}

/// Returns a directory for temporary files. It stays when the process ends: .ci/fuzz removes it.
pub fn scratch() -> &'static Path {
    static SCRATCH: LazyLock<TempDir> =
        LazyLock::new(|| tempfile::tempdir().expect("a scratch directory"));
    SCRATCH.path()
}

/// Reads the fuzzer's bytes from the front; numbers are 0 after their end.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns whether all bytes have been read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// Reads two bytes as a number.
    pub fn two_bytes(&mut self) -> usize {
        usize::from(self.byte()) | usize::from(self.byte()) << 8
    }

    /// Reads a number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.two_bytes() % end
    }

    /// Reads at most `count` bytes.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// Reads all remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

/// Returns `base` with the edits that the input describes: replaced, inserted, removed and copied bytes. An empty input
/// edits nothing.
pub fn edited(base: &[u8], input: &mut Input<'_>) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for _ in 0..MAX_EDITS {
        if input.is_empty() || bytes.is_empty() {
            break;
        }
        let operation = input.byte();
        let distance = input.below(bytes.len());
        // Half of the positions count from the end: formats have headers and footers.
        let at = match operation & 0x80 {
            0 => distance,
            _ => bytes.len() - 1 - distance,
        };
        match operation & 0x7f {
            0..=31 => bytes[at] = input.byte(),
            32..=63 => bytes[at] ^= 1 << (operation % 8),
            64..=79 => {
                let number: u32 = match input.byte() % 5 {
                    0 => 0,
                    1 => u32::MAX,
                    2 => i32::MAX.cast_unsigned(),
                    3 => bytes.len() as u32,
                    _ => 1 << (operation % 32),
                };
                for (byte, new) in bytes[at..].iter_mut().zip(number.to_le_bytes()) {
                    *byte = new;
                }
            }
            80..=95 => {
                let count = usize::from(input.byte());
                let inserted = input.bytes(count).to_vec();
                bytes.splice(at..at, inserted);
            }
            96..=107 => {
                let end = (at + usize::from(input.byte())).min(bytes.len());
                bytes.drain(at..end);
            }
            108..=111 => bytes.truncate(at),
            _ => {
                let from = input.below(bytes.len());
                let end = (from + usize::from(input.byte())).min(bytes.len());
                let copied = bytes[from..end].to_vec();
                bytes.splice(at..at, copied);
            }
        }
    }
    bytes
}
