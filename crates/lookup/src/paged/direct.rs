//! Writes pages, large files past the system's page cache (`O_DIRECT`).
//!
//! Through the cache, the system copies each byte, and writes it to the disk at the sync: on the machine of the
//! benchmarks at a third of the disk's rate. Small files go through the cache, because they are read soon.

use std::fs::File;
use std::io::{ErrorKind, Write as _};

use super::PAGE;

/// The first bytes of a file, which go through the cache.
const CACHED: usize = 64 << 20;

/// A file of whole pages that is being written.
pub(super) struct DirectFile {
    file: File,
    written: usize,
    /// Whether the file is written past the cache.
    is_direct: bool,
    /// A page-aligned copy of the bytes to write, which `O_DIRECT` needs.
    memory: Vec<u8>,
}

impl DirectFile {
    pub(super) fn new(file: File) -> Self {
        Self {
            file,
            written: 0,
            is_direct: false,
            memory: Vec::new(),
        }
    }

    /// Appends whole pages.
    pub(super) fn write(&mut self, pages: &[u8]) -> std::io::Result<()> {
        if self.written < CACHED && self.written + pages.len() >= CACHED {
            self.file.sync_data()?;
            // If the file system refuses `O_DIRECT`, go on through the cache.
            self.is_direct = set_direct(&self.file, true);
        }
        self.written += pages.len();
        if !self.is_direct {
            return self.file.write_all(pages);
        }
        if self.memory.len() < pages.len() + PAGE {
            self.memory = vec![0; pages.len() + PAGE];
        }
        let start = self.memory.as_ptr().align_offset(PAGE).min(PAGE);
        let aligned = &mut self.memory[start..start + pages.len()];
        aligned.copy_from_slice(pages);
        match self.file.write_all(aligned) {
            // Some file systems accept the flag, and then refuse to write.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                self.is_direct = !set_direct(&self.file, false);
                self.file.write_all(pages)
            }
            written => written,
        }
    }

    /// Returns the file, so that its end, which is not whole pages, can be written through the cache.
    pub(super) fn finish(self) -> std::io::Result<File> {
        if self.is_direct && !set_direct(&self.file, false) {
            return Err(std::io::Error::other(
                "the file cannot be written through the cache",
            ));
        }
        Ok(self.file)
    }
}

#[cfg(target_os = "linux")]
fn set_direct(file: &File, direct: bool) -> bool {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    fcntl_getfl(file).is_ok_and(|mut flags| {
        flags.set(OFlags::DIRECT, direct);
        fcntl_setfl(file, flags).is_ok()
    })
}

#[cfg(not(target_os = "linux"))]
fn set_direct(_: &File, _: bool) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_files_are_what_was_written() {
        // Not below the temporary directory, which may be in memory.
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("file");
        let mut file = DirectFile::new(File::create(&path).unwrap());
        let pages = |number: usize| vec![number as u8; (1 + number % 3) * 700 * PAGE];
        let mut expected = Vec::new();
        for number in 0..20 {
            file.write(&pages(number)).unwrap();
            expected.extend(pages(number));
        }
        assert!(expected.len() > CACHED);
        let mut file = file.finish().unwrap();
        file.write_all(b"end").unwrap();
        expected.extend(b"end");
        assert!(std::fs::read(&path).unwrap() == expected);
    }
}
