//! Writes a paged file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use serde::Serialize;
use twox_hash::XxHash3_64;

use super::direct::DirectFile;
use super::{ALIGNMENT, FORMAT, HEADER, MAGIC, PAGE};
use crate::error::{LookupError, Result};
use crate::paged::read::Footer;

/// Bytes that are collected before they are written.
const BUFFER: usize = 1 << 20;
/// The most full buffers that wait for the disk.
const WAITING: usize = 32;

/// A paged file that is being written. A thread of its own computes the checksums and writes.
pub(crate) struct PagedWriter {
    /// The file's name in errors.
    pub(crate) name: String,
    buffer: Vec<u8>,
    /// Bytes that were handed to the thread.
    flushed: u64,
    sections: BTreeMap<String, (u64, u64)>,
    section_start: u64,
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    /// `None` once it was joined.
    thread: Option<JoinHandle<Written>>,
}

/// The file, and the checksums of all pages.
type Written = std::io::Result<(File, Vec<u64>)>;

/// Writes whole pages as they come.
fn write_pages(file: File, full: &Receiver<Vec<u8>>, empty: &Sender<Vec<u8>>) -> Written {
    let mut checksums = Vec::new();
    let mut file = DirectFile::new(file);
    for mut pages in full {
        checksums.extend(pages.chunks_exact(PAGE).map(XxHash3_64::oneshot));
        file.write(&pages)?;
        pages.clear();
        // The other end is gone if the writer was dropped.
        let _ = empty.send(pages);
    }
    Ok((file.finish()?, checksums))
}

impl PagedWriter {
    /// Begins a file; errors name it `name`.
    pub(crate) fn new(name: &str, file: File) -> Self {
        let mut buffer = Vec::with_capacity(BUFFER + PAGE);
        buffer.extend_from_slice(MAGIC);
        buffer.extend_from_slice(&FORMAT.to_le_bytes());
        buffer.resize(HEADER, 0);
        let (full, received) = sync_channel(WAITING);
        let (returned, empty) = channel();
        let mut writer = Self {
            name: name.to_owned(),
            buffer,
            flushed: 0,
            sections: BTreeMap::new(),
            section_start: 0,
            full,
            empty,
            thread: Some(std::thread::spawn(move || {
                write_pages(file, &received, &returned)
            })),
        };
        writer.align(ALIGNMENT);
        writer.section_start = writer.position();
        writer
    }

    fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    fn align(&mut self, alignment: u64) {
        let aligned = self.position().next_multiple_of(alignment);
        self.buffer.resize((aligned - self.flushed) as usize, 0);
    }

    /// Appends bytes to the section.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            self.flush_pages()
        } else {
            Ok(())
        }
    }

    pub(crate) fn section_bytes(&self) -> u64 {
        self.position() - self.section_start
    }

    /// Ends the section, names it `name`, and begins the next one.
    pub(crate) fn end_section(&mut self, name: &str) {
        let section = (self.section_start, self.section_bytes());
        self.sections.insert(name.to_owned(), section);
        self.align(ALIGNMENT);
        self.section_start = self.position();
    }

    /// Hands the whole pages of the buffer to the thread.
    fn flush_pages(&mut self) -> Result<()> {
        let whole = self.buffer.len() / PAGE * PAGE;
        let mut next = self
            .empty
            .try_recv()
            .unwrap_or_else(|_| Vec::with_capacity(BUFFER + PAGE));
        next.extend_from_slice(&self.buffer[whole..]);
        self.buffer.truncate(whole);
        self.flushed += whole as u64;
        let pages = std::mem::replace(&mut self.buffer, next);
        match self.full.send(pages) {
            Ok(()) => Ok(()),
            // The thread has ended because a write failed: `join` returns the error.
            Err(_) => self
                .join()
                .and_then(|_| Err(self.failed("its writer has ended"))),
        }
    }

    fn join(&mut self) -> Result<(File, Vec<u64>)> {
        let joined = self.thread.take().map(JoinHandle::join);
        match joined {
            Some(Ok(written)) => written.map_err(LookupError::io(&self.name)),
            _ => Err(self.failed("its writer has failed")),
        }
    }

    fn failed(&self, reason: &str) -> LookupError {
        LookupError::io(&self.name)(std::io::Error::other(reason))
    }

    /// Ends the file with a footer that has `facts`. Returns its size in bytes, and the checksum of its page checksums
    /// and footer, which depends on all bytes.
    pub(crate) fn finish(mut self, facts: &impl Serialize) -> Result<(u64, u64)> {
        self.align(PAGE as u64);
        self.flush_pages()?;
        // Replacing the sender drops it; that ends the thread.
        let (closed, _) = sync_channel(1);
        drop(std::mem::replace(&mut self.full, closed));
        let (mut file, checksums) = self.join()?;
        let failed = |error: serde_json::Error| LookupError::damaged(&self.name, error);
        let footer = Footer {
            sections: self.sections,
            facts: serde_json::to_value(facts).map_err(failed)?,
        };
        let json = serde_json::to_vec(&footer).map_err(failed)?;
        let checksums_start = self.flushed;
        let mut end: Vec<u8> = checksums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        let footer_start = checksums_start + end.len() as u64;
        end.extend_from_slice(&json);
        end.extend_from_slice(&checksums_start.to_le_bytes());
        end.extend_from_slice(&footer_start.to_le_bytes());
        let sum = XxHash3_64::oneshot(&end);
        end.extend_from_slice(&sum.to_le_bytes());
        end.extend_from_slice(MAGIC);
        file.write_all(&end).map_err(LookupError::io(&self.name))?;
        Ok((checksums_start + end.len() as u64, sum))
    }
}
