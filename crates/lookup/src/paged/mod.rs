//! Files with a checksum for each page: written once, from front to back, then mapped into memory.
//!
//! ```text
//! 0        magic "DDJINDEX", format u32, zero u32
//! 16       sections, each from the next multiple of 64
//!          zeros up to a multiple of 4096
//! S        checksums: XXH3-64 of each page of 4096 bytes before S
//! F        footer: JSON with the sections and the facts of the file
//! end-32   S u64, F u64, XXH3-64 of the bytes from S to here u64, magic "DDJINDEX"
//! ```
//!
//! Numbers are little-endian. A page is checked when it is first used: a damaged one is an error that names the file and the
//! page, never a wrong answer.

mod direct;
mod read;
mod write;

pub(crate) use read::{PagedFile, Section, is_in_one_page, u32_at, u64_at};
pub(crate) use write::PagedWriter;

/// The first and the last bytes of every file.
const MAGIC: &[u8; 8] = b"DDJINDEX";
/// The format that this release writes.
pub(crate) const FORMAT: u32 = 1;
/// Bytes before the first section.
const HEADER: usize = 16;
/// Bytes after the footer.
const TRAILER: usize = 32;
/// Bytes of a page, the unit of checksums and the least that the system reads from a disk.
const PAGE: usize = 4096;
/// Sections begin at multiples of this: a cache line.
const ALIGNMENT: u64 = 64;
