//! The decompressed bytes of a row file.

use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use storage::{Location, StorageError, UnchangedFile};
use warc::charset::Encoding;

use super::compression::Compression;
use super::decoded::{Copied, Decoded};
use super::encoded_bytes::{Head, Local, Remote, window};
use super::gzip_members::Members;
use super::held::Held;
use super::limit::Limit;
use crate::error::{DocumentsError, Result};
use crate::read_counts::{Note, ReadCounters};
use crate::unread::why_unread;
use streams::blocking;

/// Bytes that are read or decompressed at a time.
const BUFFER: usize = 128 << 10;
/// Bytes of an object that are fetched first to find its columns.
const FIRST_BYTES: u64 = 64 << 10;
/// The most bytes of an object that are fetched to find its columns; if they do not suffice, the
/// object is read as a stream.
const MAX_FIRST_BYTES: u64 = 4 << 20;

#[derive(Debug, Clone)]
pub(super) struct RowFile {
    pub(super) location: Location,
    /// The file as it was when it was first opened; `None` for an object in a store.
    pub(super) local: Option<UnchangedFile>,
    /// All bytes of a small object.
    pub(super) held: Option<Held>,
    /// Encoded bytes.
    pub(super) size: u64,
    pub(super) compression: Compression,
    pub(super) charset: Option<&'static Encoding>,
    pub(super) limit: Limit,
}

impl RowFile {
    /// Opens the file at its start, or at that of `part`. A file in a store must be opened and read on a blocking thread.
    pub(super) fn open(&self, part: Option<Range<u64>>) -> Result<Input> {
        Input::new(self, self.encoded(part.clone())?, part)
    }

    /// The encoded bytes, from the start of the file or from that of `part`.
    fn encoded(&self, part: Option<Range<u64>>) -> Result<Box<dyn BufRead + Send>> {
        if let Some(held) = &self.held {
            let start = part.map_or(0, |part| part.start.min(held.bytes.len() as u64) as usize);
            return Ok(Box::new(io::Cursor::new(held.bytes.slice(start..))));
        }
        let Some(local) = &self.local else {
            let remote = Remote::start(&self.location, part, self.size);
            return Ok(Box::new(remote));
        };
        let mut file = local.open()?;
        let name = self.location.to_string();
        if let Some(part) = &part {
            let sought = file.seek(SeekFrom::Start(part.start));
            sought.map_err(StorageError::io(&name))?;
        }
        let file = BufReader::with_capacity(BUFFER, Local { file, name });
        Ok(Box::new(file))
    }

    /// Calls `read` on the start of the file, and returns its result. Fetches the first 64 KiB of an object in a store, and
    /// more if `read` needs it.
    pub(super) async fn read_start<T: Send + 'static>(
        self,
        read: impl Fn(Input) -> Result<T> + Copy + Send + 'static,
    ) -> Result<T> {
        if self.local.is_none() && self.held.is_none() {
            let size = self.location.size().await?;
            let mut length = FIRST_BYTES;
            while length <= MAX_FIRST_BYTES {
                let bytes = window(&self.location, size, 0, length).await?;
                let is_cut = Arc::new(AtomicBool::new(false));
                let head = Head {
                    whole: bytes.len() as u64 == size,
                    bytes,
                    is_cut: Arc::clone(&is_cut),
                };
                let file = self.clone();
                let found = blocking(move || read(Input::new(&file, Box::new(head), None)?)).await;
                if found.is_ok() || !is_cut.load(Ordering::Relaxed) {
                    return found;
                }
                length *= 8;
            }
        }
        blocking(move || read(self.open(None)?)).await
    }
}

/// The decompressed bytes of a file, from its start, or from that of a part.
pub(crate) struct Input {
    pub(super) bytes: Box<dyn BufRead + Send>,
    pub(super) limit: Limit,
    /// The part to read, in encoded bytes; `bytes` goes on behind it. `None` for the whole file.
    pub(super) part: Option<Range<u64>>,
    /// Count the records and take notes; `None` if another pass does, which also logs what it cannot read.
    pub(super) counters: Option<Arc<ReadCounters>>,
    pub(super) file: RowFile,
    pub(super) name: String,
}

impl Input {
    fn new(
        file: &RowFile,
        encoded: Box<dyn BufRead + Send>,
        part: Option<Range<u64>>,
    ) -> Result<Self> {
        let name = file.location.to_string();
        let bytes: Box<dyn BufRead + Send> = match file.compression {
            Compression::None => encoded,
            Compression::Gzip => Box::new(BufReader::with_capacity(BUFFER, Members::new(encoded))),
            Compression::Zstd => {
                let failed =
                    |error: io::Error| DocumentsError::Internal(format!("{name}: {error}"));
                let decoder = zstd::stream::read::Decoder::with_buffer(encoded);
                let mut decoder = decoder.map_err(failed)?;
                decoder
                    .window_log_max(file.limit.window_log)
                    .map_err(failed)?;
                Box::new(BufReader::with_capacity(BUFFER, decoder))
            }
        };
        Ok(Self {
            bytes,
            limit: file.limit,
            part,
            counters: None,
            file: file.clone(),
            name,
        })
    }

    /// The same with the bytes in UTF-8.
    pub(super) fn into_text(self) -> Self {
        let (name, counters) = (self.name.clone(), self.counters.clone());
        let is_named = self.file.charset.is_some();
        let found = move |charset: &'static Encoding| {
            if let Some(counters) = counters.filter(|_| !is_named) {
                let charset = charset.name();
                let what = format!("not UTF-8; it is read as {charset} (see --charset)");
                counters.warn(Note::OtherCharset, &name, &what);
            }
        };
        Self {
            bytes: Box::new(Decoded::new(self.bytes, self.file.charset, None, found)),
            ..self
        }
    }

    /// The same with the bytes as a copy of the file has them.
    pub(super) fn into_copy(self, copied: Copied) -> Self {
        let bytes = Decoded::new(self.bytes, self.file.charset, Some(copied), |_| {});
        Self {
            bytes: Box::new(bytes),
            ..self
        }
    }

    /// Refuses a file that no reader reads, by its first bytes.
    pub(super) fn check_start(&mut self, is_compressed: bool) -> Result<()> {
        let start = match self.bytes.fill_buf() {
            Ok(start) => start,
            Err(error) => return Err(self.failed(1, error)),
        };
        match why_unread(start, is_compressed) {
            Some(reason) => Err(DocumentsError::bad_data(&self.name, reason)),
            None => Ok(()),
        }
    }

    /// The first `length` encoded bytes of the file, whatever part of it this is; fewer if the file ends before.
    pub(super) fn start_of_file(&self, length: u64) -> io::Result<Vec<u8>> {
        let encoded = self.file.encoded(Some(0..length));
        let encoded = encoded.map_err(io::Error::other)?;
        let mut start = Vec::new();
        encoded.take(length).read_to_end(&mut start)?;
        Ok(start)
    }

    pub(super) fn line_name(&self, line: u64) -> String {
        format!("{}, line {line}", self.name)
    }

    /// The error of a read in `line`: of the disk or the store, or else of the decoder.
    pub(super) fn failed(&self, line: u64, error: io::Error) -> DocumentsError {
        // Errors of the disk and the store name their object themselves.
        let error = match error.downcast::<DocumentsError>() {
            Ok(own) => return own,
            Err(error) => error,
        };
        let object = self.line_name(line);
        // This is the zstd library's message about a window above the limit.
        if error.to_string().contains("Frame requires too much memory") {
            self.limit.window_exceeded(object)
        } else {
            let reason = format!("the compressed data is damaged or cut off: {error}");
            DocumentsError::bad_data(object, reason)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use storage::{ErrorKind, Stores};

    use super::*;

    fn read_all(compression: Compression, encoded: &[u8], memory: usize) -> Result<Vec<u8>> {
        let file = RowFile {
            location: Stores::default().locate("/day.jsonl")?,
            local: None,
            held: None,
            size: encoded.len() as u64,
            compression,
            charset: None,
            limit: Limit::from_memory(memory, 2),
        };
        let encoded = Box::new(io::Cursor::new(encoded.to_vec()));
        let mut input = Input::new(&file, encoded, None)?;
        let mut all = Vec::new();
        let read = input.bytes.read_to_end(&mut all);
        read.map(|_| all).map_err(|error| input.failed(7, error))
    }

    fn member(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn frame(content: &[u8]) -> Vec<u8> {
        zstd::encode_all(content, 1).unwrap()
    }

    /// Fault 42 (docs/faults.md).
    #[test]
    fn all_members_and_frames_are_read() {
        let skipped = |content: &[u8]| {
            let length = (content.len() as u32).to_le_bytes();
            [&0x184D_2A50_u32.to_le_bytes()[..], &length[..], content].concat()
        };
        for encoded in [
            [frame(b"one"), frame(b"two")].concat(),
            [skipped(b"index"), frame(b"onetwo")].concat(),
            [frame(b"one"), skipped(b""), frame(b""), frame(b"two")].concat(),
            [skipped(&[b'x'; 300_000]), frame(b"onetwo"), skipped(b"end")].concat(),
        ] {
            let read = read_all(Compression::Zstd, &encoded, 1 << 30);
            assert_eq!(read.unwrap(), b"onetwo");
        }
        let members = [member(b"one"), member(b""), member(b"two")].concat();
        for padding in [0, 1, 1000] {
            let padded = [&members[..], &vec![0; padding]].concat();
            let read = read_all(Compression::Gzip, &padded, 1 << 30);
            assert_eq!(read.unwrap(), b"onetwo", "{padding}");
        }
        let ended = [&members[..], b"\0\0x"].concat();
        assert!(read_all(Compression::Gzip, &ended, 1 << 30).is_err());
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        let content: Vec<u8> = (0..100_000_u32)
            .flat_map(|n| n.wrapping_mul(n).to_le_bytes())
            .collect();
        for (compression, encoded) in [
            (
                Compression::Gzip,
                [member(b"one"), member(&content)].concat(),
            ),
            (Compression::Zstd, [frame(b"one"), frame(&content)].concat()),
        ] {
            for keep in [5, encoded.len() / 2, encoded.len() - 1] {
                let error = read_all(compression, &encoded[..keep], 1 << 30).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Data, "{error}");
                assert!(error.to_string().contains("day.jsonl, line 7"), "{error}");
            }
        }
    }

    #[test]
    fn a_window_beyond_the_memory_is_refused() {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(26).unwrap();
        // Several writes: the frame does not say how long its content is.
        for _ in 0..9 {
            encoder.write_all(&[b'x'; 1 << 20]).unwrap();
            encoder.flush().unwrap();
        }
        let encoded = encoder.finish().unwrap();
        let error = read_all(Compression::Zstd, &encoded, 64 << 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TryAgain, "{error}");
        assert!(error.to_string().contains("--memory-limit"), "{error}");
        let read = read_all(Compression::Zstd, &encoded, 1 << 30).unwrap();
        assert_eq!(read.len(), 9 << 20);
    }

    #[test]
    fn a_window_that_no_memory_allows_is_no_damage() {
        // A window of 256 MiB, and no content.
        let encoded = [0x28_u8, 0xb5, 0x2f, 0xfd, 0, (28 - 10) << 3, 1, 0, 0];
        let error = read_all(Compression::Zstd, &encoded, usize::MAX).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{error}");
        let error = error.to_string();
        let expected =
            "compressed with a window of more than 128 MiB; compress it again without --long";
        assert!(error.ends_with(expected), "{error}");
    }
}
