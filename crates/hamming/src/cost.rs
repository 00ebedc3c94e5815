//! [`Cost`], which every mechanism predicts, and the times that the predictions share.

/// The predicted cost of a design's tables over one part of the batch, on one core.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    /// Peak bytes of the tables, while they are built; `usize::MAX` when they cannot be built.
    pub(crate) bytes: usize,
    /// Lookups for one probed fingerprint.
    pub(crate) lookups: f64,
    /// Candidates compared with one probed fingerprint.
    pub(crate) candidates: f64,
    /// Nanoseconds for one probed fingerprint.
    pub(crate) probe_ns: f64,
    /// Seconds to build the tables.
    pub(crate) build_seconds: f64,
}

/// Nanoseconds to add one entry to a table: to permute it (in permuted tables), sort and index it.
pub(crate) const BUILD_NS: f64 = 40.0;

/// Extra nanoseconds of a random access to tables of `bytes` bytes, over a hit in the first-level
/// cache, when cache misses overlap.
pub(crate) fn access_ns(bytes: usize) -> f64 {
    match bytes >> 20 {
        0 => 0.0,
        1..8 => 1.0,
        8..28 => 4.0,
        28..512 => 8.0,
        _ => 12.0,
    }
}

/// Nanoseconds to read one cache line of a table of `bytes` bytes, in order or nearly so.
pub(crate) fn line_ns(bytes: usize) -> f64 {
    match bytes >> 20 {
        0 => 0.5,
        1..16 => 2.0,
        _ => 7.0,
    }
}
