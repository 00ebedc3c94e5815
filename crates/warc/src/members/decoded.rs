//! What the decoders of a member return.

use crate::fault::Fault;

/// A step of a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// So many bytes were written at the start of the output; more than none.
    Bytes(usize),
    /// The member ended, and its checksum is right.
    End,
    /// The rest of the member cannot be decoded, or its checksum is wrong.
    Broken(Fault),
}
