//! [`Zstandard`]: one zstd frame after the other, with the dictionary of a `.warc.zst` file.

use std::io::{self, BufRead};

use zstd::zstd_safe::{
    DCtx, DParameter, ErrorCode, InBuffer, OutBuffer, ResetDirective, get_error_name,
};

use super::decoded::Decoded;
use super::dictionary::Dictionary;
use crate::fault::Fault;
use crate::input::Input;

/// The smallest and the largest limit of windows that the library knows, as powers of two.
const WINDOW_LOGS: (u32, u32) = (10, 31);
/// The library's message about a window above the limit.
const TOO_LARGE: &str = "Frame requires too much memory for decoding";

pub(crate) struct Zstandard {
    /// Made for the first frame. It refers to `dictionary`.
    context: Option<DCtx<'static>>,
    /// Used for all frames. Private, as is the next: `context` was made with them.
    dictionary: Option<Dictionary>,
    /// The largest window, as a power of two.
    window_log: u32,
    /// The bytes that the library asks for next: none once the frame has ended; `None` before it was called for the frame.
    wanted: Option<usize>,
    /// Whether the last call filled the output, so that more may be decoded without input.
    is_full: bool,
}

/// Bytes of the header of a block.
const BLOCK_HEADER: usize = 3;
/// The bytes that the library asks for first.
const FIRST_WANTED: usize = 5;

impl Zstandard {
    /// A decoder of frames with windows of at most 2^`window_log` bytes.
    pub(crate) fn new(window_log: u32) -> Self {
        Self {
            context: None,
            dictionary: None,
            window_log: window_log.clamp(WINDOW_LOGS.0, WINDOW_LOGS.1),
            wanted: None,
            is_full: false,
        }
    }

    pub(super) fn dictionary(&self) -> Option<&Dictionary> {
        self.dictionary.as_ref()
    }

    pub(super) fn window_log(&self) -> u32 {
        self.window_log
    }

    /// Prepares for a frame, whose magic number comes next.
    pub(crate) fn start(&mut self) -> io::Result<()> {
        let mut context = match self.context.take() {
            Some(context) => context,
            None => {
                let mut context = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
                let limit = DParameter::WindowLogMax(self.window_log);
                context.set_parameter(limit).map_err(failed)?;
                if let Some(dictionary) = &self.dictionary {
                    context.ref_ddict(&dictionary.prepared).map_err(failed)?;
                }
                context
            }
        };
        // After an error, the context refuses all but this. The dictionary stays.
        context.reset(ResetDirective::SessionOnly).map_err(failed)?;
        self.context = Some(context);
        self.wanted = None;
        self.is_full = false;
        Ok(())
    }

    pub(crate) fn wanted(&self) -> usize {
        self.wanted.unwrap_or(0)
    }

    /// Uses a dictionary for all frames that follow.
    pub(crate) fn use_dictionary(&mut self, dictionary: Dictionary) {
        // The old context refers to the old dictionary.
        self.context = None;
        self.dictionary = Some(dictionary);
    }

    /// Decodes the next bytes of the frame into `output`, which must not be empty.
    ///
    /// At damage, what the same call of the library decoded before it is lost. So a call gets one block, or one header of a block;
    /// except the first, because a frame is mostly short and sound, and if it is not, nothing was consumed yet.
    pub(crate) fn read<R: BufRead>(
        &mut self,
        input: &mut Input<R>,
        output: &mut [u8],
    ) -> io::Result<Decoded> {
        let Some(context) = self.context.as_mut().filter(|_| self.wanted != Some(0)) else {
            return Ok(Decoded::End);
        };
        loop {
            let bytes = input.fill()?;
            let is_at_end = bytes.is_empty();
            let given = match self.wanted {
                _ if self.is_full => 0,
                None => bytes.len(),
                // It asks for a block together with the header behind it.
                Some(wanted) if wanted > BLOCK_HEADER => bytes.len().min(wanted - BLOCK_HEADER),
                Some(wanted) => bytes.len().min(wanted),
            };
            let mut source = InBuffer::around(&bytes[..given]);
            let mut target = OutBuffer::around(&mut *output);
            let left = context.decompress_stream(&mut target, &mut source);
            let (read, written) = (source.pos(), target.pos());
            input.consume(read);
            let left = match left {
                Ok(left) => left,
                Err(code) if get_error_name(code) == TOO_LARGE => {
                    return Ok(Decoded::Broken(Fault::Window));
                }
                Err(_) if self.wanted.is_none() => {
                    context.reset(ResetDirective::SessionOnly).map_err(failed)?;
                    self.wanted = Some(FIRST_WANTED);
                    continue;
                }
                Err(_) => return Ok(Decoded::Broken(Fault::Damaged)),
            };
            self.wanted = Some(left);
            let was_full = std::mem::replace(&mut self.is_full, written == output.len());
            if written > 0 {
                return Ok(Decoded::Bytes(written));
            }
            if left == 0 {
                return Ok(Decoded::End);
            }
            if was_full {
                continue;
            }
            if is_at_end {
                return Ok(Decoded::Broken(Fault::Truncated));
            }
            if read == 0 {
                // Without progress, it would be the same again.
                return Ok(Decoded::Broken(Fault::Damaged));
            }
        }
    }
}

/// The error when the library refuses to prepare for a frame.
fn failed(code: ErrorCode) -> io::Error {
    io::Error::other(format!("zstd: {}", get_error_name(code)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_files::{DICTIONARY_BYTES, Trickle, other_dictionary, record, zstd_frame};

    fn decode(zstd: &mut Zstandard, encoded: &[u8], step: usize) -> (Vec<u8>, Decoded) {
        let mut input = Input::new(Trickle::new(encoded, step));
        zstd.start().unwrap();
        let mut all = Vec::new();
        let mut output = [0; 1_000];
        loop {
            match zstd.read(&mut input, &mut output).unwrap() {
                Decoded::Bytes(count) => all.extend_from_slice(&output[..count]),
                last => return (all, last),
            }
        }
    }

    fn content() -> Vec<u8> {
        (0..20_000_u32).map(|n| (n * n % 251) as u8).collect()
    }

    #[test]
    fn frames_are_decoded_with_and_without_dictionary() {
        let content = content();
        for dictionary in [None, Some(DICTIONARY_BYTES)] {
            let encoded = zstd_frame(&content, dictionary);
            for step in [1, 70, 100_000] {
                let mut zstd = Zstandard::new(23);
                if let Some(dictionary) = dictionary {
                    zstd.use_dictionary(Dictionary::from_content(dictionary).unwrap());
                }
                // Twice, with the same context.
                for _ in 0..2 {
                    let (all, last) = decode(&mut zstd, &encoded, step);
                    assert_eq!(last, Decoded::End);
                    assert!(all == content);
                }
            }
        }
        let (_, last) = decode(
            &mut Zstandard::new(23),
            &zstd_frame(&content, Some(DICTIONARY_BYTES)),
            100,
        );
        assert_eq!(last, Decoded::Broken(Fault::Damaged));
    }

    #[test]
    fn another_dictionary_may_follow() {
        let content = record("response", &[("WARC-Target-URI", "http://a/")], &content());
        let mut zstd = Zstandard::new(23);
        let dictionaries = [DICTIONARY_BYTES, &other_dictionary()].map(|bytes| {
            let encoded = zstd_frame(&content, Some(bytes));
            (Dictionary::from_content(bytes).unwrap(), encoded)
        });
        for at in [0, 1, 0] {
            let (dictionary, encoded) = &dictionaries[at];
            zstd.use_dictionary(dictionary.clone());
            let (all, last) = decode(&mut zstd, encoded, 1_000);
            assert_eq!(last, Decoded::End);
            assert!(all == content);
            let (_, of_other) = &dictionaries[1 - at];
            let (_, last) = decode(&mut zstd, of_other, 1_000);
            assert_eq!(last, Decoded::Broken(Fault::Damaged));
        }
    }

    #[test]
    fn frames_that_are_cut_off_or_damaged_are_noticed() {
        let content = content();
        let encoded = zstd_frame(&content, None);
        let mut zstd = Zstandard::new(23);
        for length in [4, 5, 100, encoded.len() / 2, encoded.len() - 1] {
            let (_, last) = decode(&mut zstd, &encoded[..length], 50);
            assert_eq!(last, Decoded::Broken(Fault::Truncated), "{length}");
        }
        // The last four bytes are the checksum.
        let mut damaged = encoded.clone();
        damaged[encoded.len() - 2] ^= 1;
        for step in [50, 100_000] {
            let (_, last) = decode(&mut zstd, &damaged, step);
            assert_eq!(last, Decoded::Broken(Fault::Damaged));
            let (all, last) = decode(&mut zstd, &encoded, step);
            assert_eq!(last, Decoded::End);
            assert!(all == content);
        }
    }

    #[test]
    fn windows_above_the_limit_are_refused() {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(20).unwrap();
        std::io::Write::write_all(&mut encoder, &[b'x'; 100]).unwrap();
        let encoded = encoder.finish().unwrap();
        let (_, last) = decode(&mut Zstandard::new(19), &encoded, 100);
        assert_eq!(last, Decoded::Broken(Fault::Window));
        let (all, last) = decode(&mut Zstandard::new(20), &encoded, 100);
        assert_eq!((all.len(), last), (100, Decoded::End));
    }
}
