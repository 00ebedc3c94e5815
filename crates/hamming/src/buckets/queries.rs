//! The queries of a table, and the survivors: the candidates whose tag passes.

/// Fingerprints of a chunk to look up in a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queries<'a> {
    /// The fingerprints.
    pub(crate) fingerprints: &'a [u64],
    /// The index of each fingerprint in the chunk; `None` when the fingerprints are the chunk itself.
    pub(crate) chunk_indexes: Option<&'a [u32]>,
}

impl Queries<'_> {
    /// The index in the chunk of the query with index `index`.
    #[inline(always)]
    pub(crate) fn chunk_index(&self, index: u32) -> u32 {
        self.chunk_indexes
            .map_or(index, |chunk_indexes| chunk_indexes[index as usize])
    }
}

/// A candidate whose tag passes the first test.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Survivor {
    /// The index of the fingerprint in [`Queries`].
    pub(crate) query: u32,
    /// The index of its tag in [`super::Buckets`]. [`super::TagTable::compare`] overwrites it with
    /// the entry's index (`halves`) or the tag's prefix (`variants`).
    pub(crate) tag_index: u32,
}
