//! Which block is the title of a page.

use super::super::page_title::{PageTitle, first_line};
use super::Block;

pub(super) struct Title {
    /// The position of its block, whose first line it is.
    pub(super) at: usize,
    /// Whether the `title` element names it.
    pub(super) is_named: bool,
}

/// The title of the page: the first heading that the `title` element names. If it names none, the first block of text that
/// it begins with; or else the first heading of the highest level that does not lead elsewhere. A heading of the first level
/// may: to the page itself.
pub(super) fn title(blocks: &[Block], text: &str, page_title: &PageTitle) -> Option<Title> {
    let considered = || {
        let blocks = blocks.iter().enumerate();
        blocks.filter(|(_, block)| block.is_considered)
    };
    let headings = || considered().filter(|(_, block)| block.heading().is_some());
    let line = |block: &Block| first_line(&text[block.range.clone()]);
    let named = headings().find(|(_, block)| page_title.names(line(block)));
    let first =
        || considered().find(|(_, block)| !block.is_links() && page_title.begins_with(line(block)));
    if let Some((at, _)) = named.or_else(first) {
        return Some(Title { at, is_named: true });
    }
    let highest = headings().filter_map(|(at, block)| {
        let level = block.heading()?;
        (level == 1 || !block.is_links()).then_some((level, at))
    });
    let (_, at) = highest.min()?;
    Some(Title {
        at,
        is_named: false,
    })
}

/// Keeps the title of the page, if the `title` element names it; of a block that goes on behind it, only the title.
pub(super) fn keep_title(blocks: &mut [Block], text: &str, title: Option<Title>) {
    if let Some(Title { at, is_named: true }) = title
        && !blocks[at].is_kept
    {
        let block = &mut blocks[at];
        let line = text[block.range.clone()].lines().next();
        block.is_kept = true;
        block.range.end = block.range.start + line.map_or(0, str::len);
    }
}
