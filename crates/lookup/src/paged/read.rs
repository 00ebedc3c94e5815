//! Reads a paged file.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{Advice, Mmap};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::{FORMAT, HEADER, MAGIC, PAGE, TRAILER};
use crate::error::{LookupError, Result};

const HUGE_PAGE: usize = 2 << 20;

/// The JSON at the end of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Footer {
    /// First byte and length of each section.
    pub(super) sections: BTreeMap<String, (u64, u64)>,
    /// What the file holds.
    pub(super) facts: serde_json::Value,
}

/// The bytes of a section in its file.
pub(crate) type Section = Range<usize>;

/// A paged file, mapped into memory.
#[derive(Debug)]
pub(crate) struct PagedFile {
    /// The file's name in errors.
    pub(crate) name: String,
    map: Mmap,
    checksums: Section,
    footer: Footer,
    /// The checksum of its checksums and footer.
    pub(crate) sum: u64,
    /// One bit for each page: whether it was checked.
    checked: Vec<AtomicU64>,
}

impl PagedFile {
    /// Maps the file at `path`, and checks its header, checksums and footer. Pages are checked when they are used.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(LookupError::io(&name))?;
        // SAFETY: nobody changes a file of an index: builds write new files under new names. They remove old ones, but
        // a map of a removed file stays valid. If another program truncates a file, SIGBUS ends the process, as
        // documented.
        let map = unsafe { Mmap::map(&file) }.map_err(LookupError::io(&name))?;
        // One query touches pages far from each other.
        let _ = map.advise(Advice::Random);
        let damaged = |reason: &str| LookupError::damaged(&name, reason);
        let header = map.get(..HEADER).filter(|header| &header[..8] == MAGIC);
        let header = header.ok_or_else(|| damaged("not a file of an index"))?;
        let format = u32_at(header, 8).unwrap_or(0);
        let cut_off = || damaged("the file is cut off, or its end is damaged");
        let trailer = map.len().checked_sub(TRAILER).ok_or_else(cut_off)?;
        let end = &map[trailer..];
        let number = |at| u64_at(end, at).and_then(|number| usize::try_from(number).ok());
        let (Some(start), Some(footer)) = (number(0), number(8)) else {
            return Err(cut_off());
        };
        let is_placed = &end[24..] == MAGIC
            && start.is_multiple_of(PAGE)
            && footer <= trailer
            && start.checked_add(start / PAGE * 8) == Some(footer);
        if !is_placed {
            return Err(cut_off());
        }
        let sum = u64_at(end, 16).unwrap_or(0);
        if XxHash3_64::oneshot(&map[start..trailer + 16]) != sum {
            return Err(damaged("its checksums or its footer are damaged"));
        }
        let parsed: Result<Footer, _> = serde_json::from_slice(&map[footer..trailer]);
        let parsed = parsed.map_err(|error| LookupError::damaged(&name, error))?;
        let pages = start / PAGE;
        let opened = Self {
            map,
            checksums: start..footer,
            footer: parsed,
            sum,
            checked: (0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            name,
        };
        if format != FORMAT {
            // A damaged header is not another format.
            opened.check(&(0..HEADER))?;
            return Err(LookupError::Format {
                object: opened.name,
                found: format,
                known: FORMAT,
            });
        }
        Ok(opened)
    }

    pub(crate) fn size(&self) -> u64 {
        self.map.len() as u64
    }

    pub(crate) fn facts<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_value(self.footer.facts.clone())
            .map_err(|error| LookupError::damaged(&self.name, error))
    }

    pub(crate) fn section(&self, name: &str) -> Result<Section> {
        let found = self.footer.sections.get(name).and_then(|&(start, length)| {
            let start = usize::try_from(start).ok()?;
            let end = start.checked_add(usize::try_from(length).ok()?)?;
            (end <= self.checksums.start).then_some(start..end)
        });
        found.ok_or_else(|| LookupError::damaged(&self.name, format!("no section {name:?}")))
    }

    /// All bytes of the file, unchecked. Call [`Self::check`] on a range before you trust it.
    #[inline(always)]
    pub(crate) fn raw(&self) -> &[u8] {
        &self.map
    }

    /// Checks the pages of a range that were not checked before.
    #[inline(always)]
    pub(crate) fn check(&self, range: &Range<usize>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        for page in range.start / PAGE..=(range.end - 1) / PAGE {
            let word = self.checked.get(page / 64);
            let word = word.map_or(0, |word| word.load(Ordering::Relaxed));
            if word >> (page % 64) & 1 == 0 {
                self.check_page(page)?;
            }
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn check_page(&self, page: usize) -> Result<()> {
        let bytes = self.map.get(page * PAGE..(page + 1) * PAGE);
        let bytes = bytes.filter(|_| (page + 1) * PAGE <= self.checksums.start);
        let expected = u64_at(&self.map[self.checksums.clone()], page * 8);
        match (bytes, expected) {
            (Some(bytes), Some(expected)) if XxHash3_64::oneshot(bytes) == expected => {
                self.checked[page / 64].fetch_or(1 << (page % 64), Ordering::Relaxed);
                Ok(())
            }
            _ => Err(LookupError::damaged(
                &self.name,
                format!("page {page} (bytes from {}) is damaged", page * PAGE),
            )),
        }
    }

    /// The bytes of a range, checked.
    #[inline(always)]
    pub(crate) fn bytes(&self, range: Range<usize>) -> Result<&[u8]> {
        self.check(&range)?;
        self.map
            .get(range)
            .ok_or_else(|| LookupError::damaged(&self.name, "a length leads outside the file"))
    }

    /// Whether the page of a byte was checked, and so read, since the file was opened.
    #[inline(always)]
    pub(crate) fn was_read(&self, byte: usize) -> bool {
        let page = byte / PAGE;
        let word = self.checked.get(page / 64);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (page % 64) & 1 == 1)
    }

    /// Asks the system to read a range from the disk in the background.
    pub(crate) fn request(&self, range: Range<usize>) {
        // A refusal only makes the later access wait.
        let _ = self
            .map
            .advise_range(Advice::WillNeed, range.start, range.len());
    }

    /// Reads the first `bytes` bytes into the system's page cache, as huge pages where the file system has them: a lookup
    /// touches pages far from each other, and mostly waits for the TLB. Returns early when `stop` returns true.
    pub(crate) fn read_ahead(&self, bytes: usize, stop: impl Fn() -> bool) {
        let bytes = bytes.min(self.map.len());
        let advise = |advice| self.map.advise_range(advice, 0, bytes).is_ok();
        #[cfg(target_os = "linux")]
        let has_huge_pages = advise(Advice::HugePage);
        #[cfg(not(target_os = "linux"))]
        let has_huge_pages = false;
        for start in (0..bytes).step_by(HUGE_PAGE) {
            if stop() {
                break;
            }
            if has_huge_pages {
                // The first access reads the whole huge page.
                std::hint::black_box(self.map[start]);
            }
            // For systems that have read less.
            self.request(start..bytes.min(start + HUGE_PAGE));
        }
        #[cfg(target_os = "linux")]
        // What is evicted later is read again page by page.
        advise(Advice::NoHugePage);
    }

    /// Tells the system that the file will be read from front to back.
    pub(crate) fn read_in_order(&self) {
        let _ = self.map.advise(Advice::Sequential);
    }

    /// Checks every page.
    ///
    /// # Errors
    /// [`LookupError::Damaged`] at the first damaged page.
    pub(crate) fn verify(&self) -> Result<()> {
        (0..self.checksums.start / PAGE).try_for_each(|page| self.check_page(page))
    }
}

/// Whether all bytes of a range are of one page.
#[inline(always)]
pub(crate) fn is_in_one_page(range: &Section) -> bool {
    range.start / PAGE == range.end.saturating_sub(1) / PAGE
}

/// The number at byte `at`.
#[inline(always)]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// The number at byte `at`.
#[inline(always)]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::PagedWriter;
    use super::*;

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut writer = PagedWriter::new("file", File::create(&path).unwrap());
        let first: Vec<u8> = (0..9000_u32).map(|byte| byte as u8).collect();
        writer.write(&first).unwrap();
        writer.end_section("first");
        writer.write(b"second").unwrap();
        writer.end_section("second");
        let (size, sum) = writer.finish(&"facts").unwrap();
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(size, whole.len() as u64);
        let read = || -> Result<Vec<u8>> {
            let file = PagedFile::open(&path)?;
            file.verify()?;
            assert_eq!((file.facts::<String>()?.as_str(), file.sum), ("facts", sum));
            let mut all = file.bytes(file.section("first")?)?.to_vec();
            all.extend_from_slice(file.bytes(file.section("second")?)?);
            Ok(all)
        };
        assert_eq!(read().unwrap(), [&first[..], b"second"].concat());
        for at in (0..whole.len())
            .step_by(37)
            .chain(whole.len() - 40..whole.len())
        {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(&path, &damaged).unwrap();
            let error = read().expect_err(&format!("byte {at}")).to_string();
            assert!(error.contains("file"), "{error}");
        }
        for length in (0..whole.len()).step_by(501) {
            std::fs::write(&path, &whole[..length]).unwrap();
            read().expect_err(&format!("{length} bytes"));
        }
    }
}
