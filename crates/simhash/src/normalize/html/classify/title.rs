//! Which block is the title of a page.

use std::cmp::Reverse;

use super::super::page_title::PageTitle;
use super::Block;

/// The title of the page.
pub(super) struct Title {
    /// The position of its block.
    pub(super) at: usize,
    /// The length in bytes of the title, with which its block begins, if the `title` element names it.
    pub(super) named_len: Option<usize>,
}

/// The title of the page: the heading that the `title` element names; of several, the longest, because the element names
/// the site as well. If it names no heading, the first block of text that it begins with; or else the first heading of the
/// highest level that does not lead elsewhere. A heading of the first level may: to the page itself.
pub(super) fn title(blocks: &[Block], text: &str, page_title: &PageTitle) -> Option<Title> {
    let considered = || {
        blocks
            .iter()
            .enumerate()
            .filter(|(_, block)| block.is_considered)
    };
    let headings = || considered().filter(|(_, block)| block.heading().is_some());
    let named = headings().filter_map(|(at, block)| {
        let len = page_title.matched_len(&text[block.range.clone()])?;
        Some((len, Reverse(at)))
    });
    if let Some((len, Reverse(at))) = named.max() {
        return Some(Title {
            at,
            named_len: Some(len),
        });
    }
    let first = considered().find_map(|(at, block)| {
        let len = page_title.begun_len(&text[block.range.clone()])?;
        (!block.is_links()).then_some((at, len))
    });
    if let Some((at, len)) = first {
        return Some(Title {
            at,
            named_len: Some(len),
        });
    }
    let highest = headings().filter_map(|(at, block)| {
        let level = block.heading()?;
        (level == 1 || !block.is_links()).then_some((level, at))
    });
    highest.min().map(|(_, at)| Title {
        at,
        named_len: None,
    })
}

/// Keeps the title of the page, if the `title` element names it; of a block that goes on behind it, only the title.
pub(super) fn keep_title(blocks: &mut [Block], title: Option<Title>) {
    if let Some(Title {
        at,
        named_len: Some(len),
    }) = title
        && !blocks[at].is_kept
    {
        let block = &mut blocks[at];
        block.is_kept = true;
        block.range.end = block.range.start + len;
    }
}
