//! The members of a gzip file, one after the other. Zeros may follow the last: tapes and disks fill blocks with them.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// The content of all members of a file.
pub(super) struct Members {
    /// `None` behind the last member.
    member: Option<GzDecoder<Box<dyn BufRead + Send>>>,
}

impl Members {
    pub(super) fn new(encoded: Box<dyn BufRead + Send>) -> Self {
        Self {
            member: Some(GzDecoder::new(encoded)),
        }
    }
}

impl Read for Members {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let ended = self.member.take().map(GzDecoder::into_inner);
            let mut encoded = ended.ok_or(io::ErrorKind::UnexpectedEof)?;
            if has_more(&mut encoded)? {
                self.member = Some(GzDecoder::new(encoded));
            }
        }
        Ok(0)
    }
}

/// Whether a member follows. Skips zeros, which must be all that follows then.
fn has_more(encoded: &mut impl BufRead) -> io::Result<bool> {
    let mut has_zeros = false;
    loop {
        let bytes = encoded.fill_buf()?;
        if bytes.is_empty() {
            return Ok(false);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let is_other = zeros < bytes.len();
        has_zeros |= zeros > 0;
        if is_other && has_zeros {
            let reason = "there is more behind zeros at its end";
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        if is_other {
            return Ok(true);
        }
        encoded.consume(zeros);
    }
}
