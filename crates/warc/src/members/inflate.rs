//! [`Inflate`]: a stream of deflate or zlib, piece by piece into the buffers of the caller.
//!
//! A stream refers back to its last 32 KiB, which the decoder needs in front of its output. The first piece, mostly the whole
//! stream, goes to the caller's buffer directly. Later pieces go to a window, and are copied.
//!
//! At damage, the decoder does not say how far it came. Then the piece is decompressed again: one byte, two, four and so on up
//! to the damage, and from there in ever smaller pieces. So all bytes before the damage are read, with at most about twice
//! the work, and a member that is damaged from its start on costs two attempts. Of a stream that is cut off, what its last
//! whole code stands for may be missing, too: up to 258 bytes.

use sirocco::Format;
use sirocco::inflate::{Decoder, Error, Progress};

use crate::fault::Fault;

/// How far back a stream can refer.
const HISTORY: usize = 32 << 10;
/// The most bytes to decompress at a time: they are still in the cache when a checksum is computed.
const MAX_OUTPUT: usize = 256 << 10;

/// A step of [`Inflate::read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inflated {
    /// Bytes of the input that were used.
    pub(crate) read: usize,
    /// Bytes that were written at the start of the output.
    pub(crate) written: usize,
    pub(crate) state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    Ended,
    /// The rest cannot be decompressed.
    Broken(Fault),
}

/// A decoder of one stream after the other.
pub(crate) struct Inflate {
    decoder: Box<Decoder>,
    /// Whether `window[..end]` has the last bytes of the stream.
    has_window: bool,
    window: Vec<u8>,
    end: usize,
    /// The most bytes to decompress at a time.
    most: usize,
    damage: Damage,
}

/// What is known of damage in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    /// Nothing was found.
    None,
    /// There is some in the piece; pieces grow up to it.
    Ahead,
    /// The last piece was too large; pieces shrink.
    Near,
}

impl Inflate {
    pub(crate) fn new() -> Self {
        Self {
            decoder: Box::new(Decoder::new(Format::Deflate)),
            has_window: false,
            window: Vec::new(),
            end: 0,
            most: MAX_OUTPUT,
            damage: Damage::None,
        }
    }

    pub(crate) fn start(&mut self, format: Format) {
        if self.decoder.format() == format {
            self.decoder.reset()
        } else {
            *self.decoder = Decoder::new(format)
        }
        self.has_window = false;
        self.end = 0;
        self.most = MAX_OUTPUT;
        self.damage = Damage::None;
    }

    /// Decompresses the next bytes of the stream from `input` to `output`; the stream may be longer than both. `output` must not
    /// be empty. `is_end` says that nothing follows `input`.
    pub(crate) fn read(&mut self, input: &[u8], is_end: bool, output: &mut [u8]) -> Inflated {
        if self.has_window {
            self.read_on(input, is_end, output)
        } else {
            self.read_first(input, is_end, output)
        }
    }

    fn read_first(&mut self, input: &[u8], is_end: bool, output: &mut [u8]) -> Inflated {
        let room = output.len().min(self.most);
        let target = &mut output[..room];
        let Ok(progress) = self.decoder.decompress(input, target, is_end) else {
            self.decoder.reset();
            self.use_window();
            self.approach_damage(room);
            return self.read_on(input, is_end, output);
        };
        let inflated = inflated(&progress);
        if inflated.state == State::Open {
            self.use_window();
            self.window[..inflated.written].copy_from_slice(&output[..inflated.written]);
            self.end = inflated.written;
        }
        inflated
    }

    fn use_window(&mut self) {
        self.has_window = true;
        self.window.resize(HISTORY + MAX_OUTPUT, 0);
    }

    fn read_on(&mut self, input: &[u8], is_end: bool, output: &mut [u8]) -> Inflated {
        loop {
            let room = output.len().min(self.most);
            if self.window.len() - self.end < room {
                self.end -= self.decoder.make_room(&mut self.window);
            }
            // Behind the content of zlib's format, there is no room, and none is needed.
            let room = room.min(self.window.len() - self.end);
            let before = Decoder::clone(&self.decoder);
            let target = &mut self.window[..self.end + room];
            match self.decoder.decompress(input, target, is_end) {
                Ok(progress) => {
                    let inflated = inflated(&progress);
                    output[..inflated.written].copy_from_slice(progress.output);
                    self.end += inflated.written;
                    if self.damage == Damage::Ahead {
                        self.most = (2 * self.most).min(MAX_OUTPUT);
                    }
                    return inflated;
                }
                Err(error) => {
                    *self.decoder = before;
                    if room > 1 {
                        self.approach_damage(room);
                        continue;
                    }
                    let fault = match error {
                        Error::Truncated => Fault::Truncated,
                        _ => Fault::Damaged,
                    };
                    return Inflated {
                        read: 0,
                        written: 0,
                        state: State::Broken(fault),
                    };
                }
            }
        }
    }

    /// Makes the next piece smaller than one of `room` bytes, in which there is damage.
    fn approach_damage(&mut self, room: usize) {
        (self.damage, self.most) = match self.damage {
            Damage::None => (Damage::Ahead, 1),
            Damage::Ahead | Damage::Near => (Damage::Near, room / 2),
        };
    }
}

/// A step that did not fail.
fn inflated(progress: &Progress<'_>) -> Inflated {
    Inflated {
        read: progress.consumed,
        written: progress.output.len(),
        state: if progress.done {
            State::Ended
        } else {
            State::Open
        },
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    fn encode(content: &[u8], format: Format, level: u32) -> Vec<u8> {
        let level = Compression::new(level);
        if format == Format::Zlib {
            let mut encoder = ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(content).unwrap();
            return encoder.finish().unwrap();
        }
        let mut encoder = DeflateEncoder::new(Vec::new(), level);
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    /// What is decompressed, the bytes read, and how it ends. `knows_end`: the last piece is known to be the last.
    fn decode(
        inflate: &mut Inflate,
        encoded: &[u8],
        step: usize,
        room: usize,
        knows_end: bool,
    ) -> (Vec<u8>, usize, State) {
        let mut all = Vec::new();
        let mut output = vec![0; room];
        let mut at = 0;
        loop {
            let piece = &encoded[at..encoded.len().min(at + step)];
            let is_last = at + piece.len() == encoded.len();
            let is_end = piece.is_empty() || (knows_end && is_last);
            let inflated = inflate.read(piece, is_end, &mut output);
            assert!(inflated.read <= piece.len());
            at += inflated.read;
            all.extend_from_slice(&output[..inflated.written]);
            match inflated.state {
                State::Open => assert!(inflated.read + inflated.written > 0),
                state => return (all, at, state),
            }
        }
    }

    fn content() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..3_000),
            (any::<u8>(), 0..70_000_usize).prop_map(|(byte, len)| vec![byte; len]),
            "[a-f ]{0,5000}".prop_map(String::into_bytes),
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    /// The most bytes that one code of deflate stands for.
    const LONGEST: usize = 258;

    #[test]
    fn damage_at_the_start_is_found_at_once() {
        let mut inflate = Inflate::new();
        inflate.start(Format::Deflate);
        // A block of a type that does not exist.
        let inflated = inflate.read(b"\x07", false, &mut [0; 100_000]);
        let expected = State::Broken(Fault::Damaged);
        assert_eq!((inflated.state, inflated.written), (expected, 0));
        assert_eq!((inflate.damage, inflate.most), (Damage::Ahead, 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn streams_are_decompressed_in_any_pieces(
            content in content(), level in 0..10_u32, step in 1..3_000_usize, room in 1..40_000_usize,
            zlib: bool, knows_end: bool,
        ) {
            let format = if zlib { Format::Zlib } else { Format::Deflate };
            let mut encoded = encode(&content, format, level);
            let length = encoded.len();
            // What follows belongs to the caller.
            encoded.extend_from_slice(b"trailer and more");
            let mut inflate = Inflate::new();
            for (step, room) in [(step, room), (encoded.len(), content.len() + 1)] {
                inflate.start(format);
                let (decoded, read, state) = decode(&mut inflate, &encoded, step, room, knows_end);
                prop_assert_eq!((read, state), (length, State::Ended));
                prop_assert!(decoded == content);
            }
        }

        #[test]
        fn all_bytes_before_damage_are_decompressed(
            content in content(), at: prop::sample::Index, bits in 1..=u8::MAX, step in 1..70_000_usize, cut: bool, knows_end: bool,
        ) {
            let mut encoded = encode(&content, Format::Deflate, 6);
            let at = at.index(encoded.len());
            if cut { encoded.truncate(at) } else { encoded[at] ^= bits }
            // The other library stops at the same byte.
            let mut expected = Vec::new();
            let mut other = flate2::read::DeflateDecoder::new(encoded.as_slice());
            let is_whole = other.read_to_end(&mut expected).is_ok();
            let mut inflate = Inflate::new();
            inflate.start(Format::Deflate);
            let (decoded, _, state) = decode(&mut inflate, &encoded, step, 50_000, knows_end);
            prop_assert_eq!(state == State::Ended, is_whole);
            if cut {
                prop_assert_eq!(state, State::Broken(Fault::Truncated));
            }
            // A stream whose end is damaged seems to be cut off as well.
            if state == State::Broken(Fault::Truncated) {
                expected.truncate(expected.len().saturating_sub(LONGEST));
            }
            prop_assert!(decoded.starts_with(&expected), "{} of {}", decoded.len(), expected.len());
        }
    }
}
