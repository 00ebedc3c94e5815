//! Reads and checks the header of a Parquet page before the Parquet library parses it.
//!
//! In a forged header, a text can claim to have 2⁶⁴ bytes: the library would ask for all that
//! memory, which ends the process. If the end of the file cuts a header off, the library would
//! parse missing fields for hours.

use std::io::{Cursor, Error, ErrorKind, Read, Result, Take};

/// Maximum bytes of a header. Some programs put whole texts into it: the minimum and maximum of the
/// page.
const MAX_HEADER_BYTES: u64 = 64 << 20;
/// Maximum nesting of a header. Parquet's own headers have two levels below the first.
const MAX_DEPTH: usize = 16;

/// Reads one page header, from the position of `R` on. Reading past the header fails.
///
/// Reads nothing before the first call, because the library asks for readers that it does not use.
pub struct HeaderReader<R> {
    source: R,
    header: Option<Cursor<Vec<u8>>>,
}

impl<R: Read> HeaderReader<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            header: None,
        }
    }
}

impl<R: Read> Read for HeaderReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let header = match &mut self.header {
            Some(header) => header,
            None => self
                .header
                .insert(Cursor::new(read_header(&mut self.source)?)),
        };
        match header.read(buffer)? {
            0 if !buffer.is_empty() => Err(ErrorKind::UnexpectedEof.into()),
            read => Ok(read),
        }
    }
}

/// Reads a header: one struct in Thrift's compact protocol.
fn read_header(source: impl Read) -> Result<Vec<u8>> {
    let mut header = Header {
        source: source.take(MAX_HEADER_BYTES),
        bytes: Vec::with_capacity(64),
    };
    header.read_fields(MAX_DEPTH)?;
    Ok(header.bytes)
}

/// Reads one header field by field, and keeps its bytes.
struct Header<R> {
    source: Take<R>,
    bytes: Vec<u8>,
}

impl<R: Read> Header<R> {
    /// Reads the fields of a struct, and the stop byte after them.
    fn read_fields(&mut self, depth: usize) -> Result<()> {
        loop {
            let field = self.read_byte()?;
            let (id_delta, kind) = (field >> 4, field & 0xf);
            if kind == 0 {
                return Ok(());
            }
            if id_delta == 0 {
                self.read_varint()?;
            }
            // A boolean field's type is also its value.
            if !matches!(kind, 1 | 2) {
                self.read_value(kind, depth)?;
            }
        }
    }

    /// Reads a value of the Thrift type `kind`. Refuses maps and unknown types, which page headers
    /// never have.
    fn read_value(&mut self, kind: u8, depth: usize) -> Result<()> {
        let inside = depth.checked_sub(1).ok_or(ErrorKind::InvalidData)?;
        match kind {
            1..=3 => self.read_bytes(1),
            4..=6 => self.read_varint().map(drop),
            7 => self.read_bytes(8),
            8 => {
                let length = self.read_varint()?;
                self.read_bytes(length)
            }
            9 | 10 => {
                let list = self.read_byte()?;
                let length = match list >> 4 {
                    15 => self.read_varint()?,
                    length => u64::from(length),
                };
                (0..length).try_for_each(|_| self.read_value(list & 0xf, inside))
            }
            12 => self.read_fields(inside),
            _ => Err(Error::new(
                ErrorKind::InvalidData,
                "not a page header: the file is damaged, or its column is encrypted",
            )),
        }
    }

    fn read_byte(&mut self) -> Result<u8> {
        let mut byte = [0];
        self.source.read_exact(&mut byte)?;
        self.bytes.push(byte[0]);
        Ok(byte[0])
    }

    /// Reads an integer in ULEB128.
    fn read_varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for at in 0..10 {
            let byte = self.read_byte()?;
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ErrorKind::InvalidData.into())
    }

    /// Reads `count` bytes. Allocates memory only for bytes that the source has, whatever `count`
    /// claims.
    fn read_bytes(&mut self, count: u64) -> Result<()> {
        let read = (&mut self.source)
            .take(count)
            .read_to_end(&mut self.bytes)?;
        if (read as u64) < count {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `bytes` one by one, as the library does; returns what was read, and the error that
    /// ended it.
    fn read(bytes: &[u8]) -> (Vec<u8>, ErrorKind) {
        let mut reader = HeaderReader::new(bytes);
        let mut read = Vec::new();
        loop {
            let mut byte = [0];
            match reader.read(&mut byte) {
                Ok(1) => read.push(byte[0]),
                Ok(other) => panic!("{other} bytes"),
                Err(error) => return (read, error.kind()),
            }
        }
    }

    #[test]
    fn exactly_the_header_is_read() {
        // Numbers, a boolean, a double, a text, a struct with a field of a far id, a list of two texts, a long list.
        let header = [
            &[
                0x15, 0x04, 0x25, 0x80, 0x01, 0x11, 0x17, 1, 2, 3, 4, 5, 6, 7, 8,
            ][..],
            &[
                0x18, 3, b'a', b'b', b'c', 0x1c, 0x05, 0x90, 0x01, 0x02, 0x00,
            ],
            &[0x19, 0x28, 1, b'a', 0, 0x19, 0xf3, 2, 7, 7, 0x00],
        ]
        .concat();
        let mut bytes = header.clone();
        bytes.extend([1, 2, 3]);
        assert_eq!(read(&bytes), (header.clone(), ErrorKind::UnexpectedEof));
        for end in 0..header.len() {
            assert_eq!(read(&header[..end]), (vec![], ErrorKind::UnexpectedEof));
        }
    }

    #[test]
    fn claims_that_the_file_does_not_hold_are_refused() {
        const HUGE: [u8; 9] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        let text = [&[0x18][..], &HUGE, &[0; 100]].concat();
        assert_eq!(read(&text), (vec![], ErrorKind::UnexpectedEof));
        // A list of as many booleans, and of as many empty structs.
        for kind in [0xf1, 0xfc] {
            let list = [&[0x19, kind][..], &HUGE, &[0; 100]].concat();
            assert_eq!(read(&list), (vec![], ErrorKind::UnexpectedEof));
        }
        let deep = [0x1c; 100];
        assert_eq!(read(&deep), (vec![], ErrorKind::InvalidData));
        // A number of more than 64 bits, and a map.
        for bad in [[0x15; 1].as_slice(), &[0x1b]] {
            let bytes = [bad, &[0xff; 20]].concat();
            assert_eq!(read(&bytes), (vec![], ErrorKind::InvalidData));
        }
    }
}
