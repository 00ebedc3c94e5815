//! The rules by which passages are template.

/// What makes a passage template.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The fewest distinct pages that have it.
    pub pages: u32,
    /// The least share of distinct pages that have it, in hundredths, as long as this is fewer than [`Self::enough`] pages.
    pub hundredths: u32,
    /// So many distinct pages are always enough.
    pub enough: u32,
    /// The pages that are remembered: older ones count the less, the more came after them.
    pub memory: u32,
    /// The most passages that are remembered.
    pub passages: usize,
    /// Whether the pages are of different sources. What the pages around a passage do not share is then the content if the passage
    /// is their frame; and their frames, if the passage is part of an article that they copy.
    pub is_of_many: bool,
}

pub const OF_SOURCE: Rule = Rule {
    pages: 4,
    hundredths: 8,
    enough: 16,
    memory: 32,
    passages: 384,
    is_of_many: false,
};

/// The rule for passages of many sources, with a page of each source.
pub const OF_MANY_SOURCES: Rule = Rule {
    pages: 16,
    hundredths: 0,
    enough: 16,
    memory: 4_096,
    passages: 8_192,
    is_of_many: true,
};
