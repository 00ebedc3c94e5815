//! The queries of a table, and the survivors: candidates whose sketch passes.

/// Fingerprints of a chunk to look up in a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queries<'a> {
    /// The fingerprints.
    pub(crate) fingerprints: &'a [u64],
    /// The index of each in the chunk; `None` when they are the chunk itself.
    pub(crate) numbers: Option<&'a [u32]>,
}

impl Queries<'_> {
    /// The index in the chunk of the fingerprint with index `index` here.
    #[inline(always)]
    pub(crate) fn number(&self, index: u32) -> u32 {
        self.numbers
            .map_or(index, |numbers| numbers[index as usize])
    }
}

/// A candidate whose sketch passes the first test.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Survivor {
    /// The index of the fingerprint in [`Queries`].
    pub(crate) query: u32,
    /// The index of the sketch in [`super::Buckets`]; `compare` overwrites it with where the entry is.
    pub(crate) place: u32,
}
