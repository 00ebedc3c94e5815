//! Writes a paged file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;

use serde::Serialize;
use twox_hash::XxHash3_64;

use super::{ALIGNMENT, FORMAT, HEADER, MAGIC, PAGE};
use crate::error::{LookupError, Result};
use crate::paged::read::Footer;

/// Bytes that are collected before they are written.
const BUFFER: usize = 1 << 20;

/// A paged file that is being written.
pub(crate) struct PagedWriter {
    name: String,
    file: File,
    buffer: Vec<u8>,
    /// Bytes that were handed to the file.
    flushed: u64,
    checksums: Vec<u64>,
    sections: BTreeMap<String, (u64, u64)>,
    section_start: u64,
}

impl PagedWriter {
    /// Begins a file; errors call it `name`.
    pub(crate) fn new(name: &str, file: File) -> Self {
        let mut buffer = Vec::with_capacity(BUFFER + PAGE);
        buffer.extend_from_slice(MAGIC);
        buffer.extend_from_slice(&FORMAT.to_le_bytes());
        buffer.resize(HEADER, 0);
        let mut writer = Self {
            name: name.to_owned(),
            file,
            buffer,
            flushed: 0,
            checksums: Vec::new(),
            sections: BTreeMap::new(),
            section_start: 0,
        };
        writer.align(ALIGNMENT);
        writer.section_start = writer.position();
        writer
    }

    /// The file's name in errors.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Bytes so far.
    fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    fn align(&mut self, alignment: u64) {
        let aligned = self.position().next_multiple_of(alignment);
        self.buffer.resize((aligned - self.flushed) as usize, 0);
    }

    /// Appends bytes to the section.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        match self.buffer.len() >= BUFFER {
            true => self.flush_pages(),
            false => Ok(()),
        }
    }

    /// Bytes of the section so far.
    pub(crate) fn section_bytes(&self) -> u64 {
        self.position() - self.section_start
    }

    /// Ends the section, which gets a name, and begins the next one.
    pub(crate) fn end_section(&mut self, name: &str) {
        let section = (self.section_start, self.section_bytes());
        self.sections.insert(name.to_owned(), section);
        self.align(ALIGNMENT);
        self.section_start = self.position();
    }

    /// Writes the whole pages of the buffer.
    fn flush_pages(&mut self) -> Result<()> {
        let whole = self.buffer.len() / PAGE * PAGE;
        let pages = self.buffer[..whole].chunks_exact(PAGE);
        self.checksums.extend(pages.map(XxHash3_64::oneshot));
        self.put(whole)
    }

    /// Writes the first `bytes` of the buffer.
    fn put(&mut self, bytes: usize) -> Result<()> {
        let written = self.file.write_all(&self.buffer[..bytes]);
        written.map_err(LookupError::io(&self.name))?;
        self.buffer.drain(..bytes);
        self.flushed += bytes as u64;
        Ok(())
    }

    /// Ends the file with a footer that holds `facts`. Returns its size in bytes, and the checksum of its checksums and
    /// footer, by which all its bytes are known.
    pub(crate) fn finish(mut self, facts: &impl Serialize) -> Result<(u64, u64)> {
        self.align(PAGE as u64);
        self.flush_pages()?;
        let failed = |error: serde_json::Error| LookupError::damaged(&self.name, error);
        let footer = Footer {
            sections: std::mem::take(&mut self.sections),
            facts: serde_json::to_value(facts).map_err(failed)?,
        };
        let json = serde_json::to_vec(&footer).map_err(failed)?;
        let checksums_start = self.flushed;
        for sum in &self.checksums {
            self.buffer.extend_from_slice(&sum.to_le_bytes());
        }
        let footer_start = checksums_start + self.buffer.len() as u64;
        self.buffer.extend_from_slice(&json);
        self.buffer
            .extend_from_slice(&checksums_start.to_le_bytes());
        self.buffer.extend_from_slice(&footer_start.to_le_bytes());
        let sum = XxHash3_64::oneshot(&self.buffer);
        self.buffer.extend_from_slice(&sum.to_le_bytes());
        self.buffer.extend_from_slice(MAGIC);
        self.put(self.buffer.len())?;
        Ok((self.flushed, sum))
    }
}
