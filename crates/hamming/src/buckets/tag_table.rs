//! [`TagTable`]: what a mechanism's table of tags provides to the probe.

use super::queries::{Queries, Survivor};
use super::tag::Tag;
use super::tag_buckets::{Buckets, TagView};
use crate::isa::Isa;
use crate::matches::Matches;
use crate::mechanism::BatchPart;

/// The table of a block: buckets of tags, and a way to find the entry of a tag.
pub(crate) trait TagTable: TaggedEntries {
    /// The buckets of tags.
    fn buckets(&self) -> &Buckets<Self::Tag>;
}

/// Entries that are found by their tags.
pub(crate) trait TaggedEntries: Sized {
    /// The type of the tags.
    type Tag: Tag;

    /// Compares the entries of `survivors`, whose tags are in `tags`, in full, and appends those within the distance to
    /// `matches`. If the second test of the tags differs from the first, it drops survivors before
    /// any entry is read. Overwrites `survivors`.
    fn compare<I: Isa>(
        &self,
        tags: TagView<'_, I, Self::Tag>,
        part: &BatchPart<'_>,
        queries: Queries<'_>,
        survivors: &mut Vec<Survivor>,
        matches: &mut Matches<'_>,
    );
}
