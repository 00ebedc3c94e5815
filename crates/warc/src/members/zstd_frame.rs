//! How zstd frames start (RFC 8878).

/// How a frame with data starts.
pub(crate) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The last three bytes of the magic number of a skippable frame; the first is 0x50 to 0x5f.
pub(crate) const SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];
