//! [`Dictionary`]: the dictionary of a `.warc.zst` file ("Zstandard Compression for WARC Files", IIPC).
//!
//! ```text
//! 5D 2A 4D 18 | length of the content, 4 bytes, little-endian | the dictionary, maybe itself a zstd frame
//! ```
//!
//! The file starts with this skippable frame, and its other frames are decoded with the dictionary.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use zstd::zstd_safe::DDict;

use super::zstd_frame::{MAGIC, SKIPPABLE};

/// The first byte of a skippable frame that holds a dictionary.
pub(super) const FIRST_BYTE: u8 = 0x5d;
/// The most bytes of a dictionary, compressed or not: those that the specification asks decoders to support.
pub(super) const MAX_LENGTH: usize = 8 << 20;
/// How a dictionary starts.
const DICTIONARY: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// The dictionary that the frames of a `.warc.zst` file are decoded with. Clones share its memory.
#[derive(Clone)]
pub struct Dictionary {
    /// As the library needs it.
    pub(super) prepared: Arc<DDict<'static>>,
    /// SHA-256 of the content of its frame, which tells it from other dictionaries.
    pub(super) digest: [u8; 32],
}

impl Dictionary {
    /// The bytes of a file's start that [`Self::frame_length`] needs.
    pub const HEADER_LENGTH: usize = 8;

    /// Whether a part of a file may need the dictionary of the file, by the first byte of `part`.
    pub fn may_be_needed(part: &[u8]) -> bool {
        part.first() == MAGIC.first()
    }

    /// The length of the frame with a dictionary that the bytes of a file start with; `None` if they start otherwise, or if the
    /// dictionary is longer than 8 MiB, which is not read.
    pub fn frame_length(file: &[u8]) -> Option<usize> {
        let [first, second, third, fourth, length @ ..] = *file.first_chunk::<8>()?;
        let length = u32::from_le_bytes(length) as usize;
        let is_dictionary = first == FIRST_BYTE && [second, third, fourth] == SKIPPABLE;
        (is_dictionary && length <= MAX_LENGTH).then_some(Self::HEADER_LENGTH + length)
    }

    /// The bytes that [`Self::is_frame_start`] looks at.
    pub(super) const FRAME_START_LENGTH: usize = Self::HEADER_LENGTH + DICTIONARY.len();

    /// Whether `bytes` start with a frame whose content starts as a dictionary, compressed or not.
    pub(super) fn is_frame_start(bytes: &[u8]) -> bool {
        let content = bytes.get(Self::HEADER_LENGTH..).unwrap_or_default();
        Self::frame_length(bytes).is_some()
            && (content.starts_with(&DICTIONARY) || content.starts_with(&MAGIC))
    }

    /// The dictionary that the bytes of a file start with; `None` if they start otherwise, if the frame is cut off, or if its
    /// content is no dictionary.
    pub fn from_start(file: &[u8]) -> Option<Self> {
        let length = Self::frame_length(file)?;
        Self::from_content(file.get(Self::HEADER_LENGTH..length)?)
    }

    /// The dictionary in the content of a frame; `None` if that is none.
    pub(super) fn from_content(content: &[u8]) -> Option<Self> {
        let decompressed;
        let dictionary = if content.starts_with(&MAGIC) {
            decompressed = zstd::bulk::decompress(content, MAX_LENGTH).ok()?;
            decompressed.as_slice()
        } else {
            content
        };
        if !dictionary.starts_with(&DICTIONARY) {
            return None;
        }
        Some(Self {
            prepared: Arc::new(DDict::try_create(dictionary)?),
            digest: Sha256::digest(content).into(),
        })
    }

    /// Whether it is the dictionary in this content of a frame.
    pub(super) fn is_in(&self, content: &[u8]) -> bool {
        self.digest == <[u8; 32]>::from(Sha256::digest(content))
    }
}

impl PartialEq for Dictionary {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Dictionary {}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary")
            .field("id", &self.prepared.get_dict_id())
            .field("bytes", &self.prepared.sizeof())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_files::{DICTIONARY_BYTES, skippable_frame, zstd_frame};

    #[test]
    fn a_dictionary_may_be_compressed() {
        let compressed = zstd_frame(DICTIONARY_BYTES, None);
        for content in [DICTIONARY_BYTES, &compressed] {
            let frame = skippable_frame(0x5d, content);
            let file = [&frame[..], b"more"].concat();
            assert_eq!(Dictionary::frame_length(&file[..8]), Some(frame.len()));
            let dictionary = Dictionary::from_start(&file).unwrap();
            assert!(dictionary.is_in(content) && !dictionary.is_in(b"more"));
            assert_eq!(Dictionary::from_start(&frame[..frame.len() - 1]), None);
        }
        let is_dictionary = |content: &[u8]| Dictionary::from_content(content).is_some();
        for other in [
            &b"no dictionary"[..],
            b"",
            &DICTIONARY_BYTES[..100],
            &MAGIC,
            &zstd_frame(b"x", None),
        ] {
            assert!(!is_dictionary(other), "{other:?}");
        }
        // A small frame does not take more memory than a dictionary may have.
        let long = [DICTIONARY_BYTES, &vec![b'x'; MAX_LENGTH]].concat();
        assert!(!is_dictionary(&zstd_frame(&long, None)));
        assert!(is_dictionary(&zstd_frame(&long[..MAX_LENGTH], None)));
    }

    #[test]
    fn other_starts_of_files_are_no_dictionaries() {
        let frame = |first: u8, length: u32| {
            [&[first, 0x2a, 0x4d, 0x18][..], &length.to_le_bytes()].concat()
        };
        let longest = MAX_LENGTH as u32;
        assert_eq!(
            Dictionary::frame_length(&frame(0x5d, longest)),
            Some(MAX_LENGTH + 8)
        );
        for other in [
            frame(0x5d, longest + 1),
            frame(0x5c, 100),
            frame(0x5d, 0)[..7].to_vec(),
            b"WARC/1.0\r\n".to_vec(),
            zstd_frame(b"text", None),
        ] {
            assert_eq!(Dictionary::frame_length(&other), None, "{other:?}");
        }
    }
}
