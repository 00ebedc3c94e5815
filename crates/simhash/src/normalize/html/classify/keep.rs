//! Which blocks are kept, when all that can be kept are considered. Each rule sees what those before it keep.

use super::super::boilerplate::{CONTENT, Context, Holder};
use super::super::containers::Containers;
use super::Block;

/// The most words of the short blocks of a container that may be labels.
const LABELS: u32 = 10;

/// The most blocks in the frame of a line of code: the code and a label.
const FRAMED: u32 = 2;

/// The least words of a framed block that nobody marked as a sentence.
const FRAMED_WORDS: u32 = 4;

/// The least words of a sentence at the end, and of a block beside others that nobody marked as a sentence.
const LEAST_WORDS: u32 = 2;

/// The most blocks between a heading and the text under it: the author, the date.
pub(super) const CLOSE: u32 = 5;

/// Keeps the long blocks, and no other.
pub(super) fn keep_long(blocks: &mut [Block], text: &str, is_around: &[bool]) {
    for block in blocks {
        block.is_kept = is_around[block.container()] && block.is_long(text);
    }
}

/// The positions of the first and the last kept block of each container or group, by what `of` gives for a block. No position
/// is between those of one that has none.
fn spans(
    blocks: &[Block],
    containers: &Containers,
    of: impl Fn(&Block) -> usize,
) -> Vec<(usize, usize)> {
    let mut spans = vec![(usize::MAX, 0); containers.len()];
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| block.is_kept) {
        let (first, last) = &mut spans[of(block)];
        *first = at.min(*first);
        *last = at;
    }
    spans
}

/// The group of a block; see [`Block::group`].
fn own_group(block: &Block) -> usize {
    block.group(block.context.container)
}

/// Keeps short sentences: those between long blocks of their group, and those beside others of their container.
pub(super) fn keep_sentences(
    blocks: &mut [Block],
    text: &str,
    containers: &Containers,
    is_around: &[bool],
) {
    let spans = spans(blocks, containers, own_group);
    let is_between = |at, block: &Block| {
        let (first, last) = spans[own_group(block)];
        first < at && at < last
    };
    let is_beside = |at, block: &Block| {
        block.is_sentence() && !block.is_kept && !is_between(at, block) && !block.is_label(text)
    };
    let mut words = vec![0; containers.len()];
    for (at, block) in blocks.iter().enumerate() {
        if is_beside(at, block) {
            words[block.container()] += block.words;
        }
    }
    for (at, block) in blocks.iter_mut().enumerate() {
        let container = block.container();
        block.is_kept |= is_around[container]
            && block.is_sentence()
            && (is_between(at, block) || (words[container] > LABELS && is_beside(at, block)));
    }
}

/// Keeps text that is in no `p`, `li` or the like, if it stands between kept blocks of its own container: a text whose
/// paragraphs end at `br`, around its lists and code.
pub(super) fn keep_unmarked(blocks: &mut [Block], text: &str, containers: &Containers) {
    let spans = spans(blocks, containers, Block::container);
    for (at, block) in blocks.iter_mut().enumerate() {
        let (first, last) = spans[block.container()];
        block.is_kept |= block.context.holder == Holder::Container
            && block.is_text()
            && (first..=last).contains(&at)
            && block.words >= LEAST_WORDS
            && !block.is_label(text);
    }
}

/// Keeps the short sentences and the framed code that follow a kept block of their container, up to the first link that stands
/// in the container itself. What stands in other containers in between does not count: an advertisement may come and go.
pub(super) fn keep_ends(blocks: &mut [Block], text: &str, containers: &Containers) {
    let mut goes_on = vec![false; containers.len()];
    for block in blocks {
        let own = block.container();
        if block.is_kept {
            goes_on[own] = true;
        } else if block.is_considered && block.is_links() {
            goes_on[own] = false;
        } else if block.is_sentence() {
            let around = containers.parent(block.context.container) as usize;
            let is_end = goes_on[own] || (block.is_preformatted() && goes_on[around]);
            let is_enough = block.words >= LEAST_WORDS || block.is_preformatted();
            block.is_kept = is_end && is_enough && !block.is_label(text);
        }
    }
}

/// Keeps blocks that have a container to themselves, between kept blocks of the container around it.
pub(super) fn keep_framed(
    blocks: &mut [Block],
    text: &str,
    containers: &Containers,
    is_around: &[bool],
) {
    let spans = spans(blocks, containers, own_group);
    let outer = containers.outer();
    let mut inside = vec![0u32; containers.len()];
    for block in &*blocks {
        inside[block.container()] += 1;
    }
    for (at, block) in blocks.iter_mut().enumerate() {
        let container = block.container();
        if outer[container] || !is_around[container] || !block.is_text() {
            continue;
        }
        let (first, last) = spans[block.group(containers.parent(block.context.container))];
        let is_content = if block.is_sentence() {
            inside[container] <= FRAMED
        } else {
            inside[container] == 1 && block.words >= FRAMED_WORDS && !block.is_label(text)
        };
        block.is_kept |= container != 0 && first < at && at < last && is_content;
    }
}

/// Keeps headings under which kept blocks follow soon, before a heading of the same or a higher level.
pub(super) fn keep_headings(blocks: &mut [Block]) {
    /// Above all levels.
    const NO_HEADING: u8 = u8::MAX;
    // The kept block that follows, and the blocks and the highest heading on the way to it.
    let mut next: Option<Context> = None;
    let (mut distance, mut highest) = (0, NO_HEADING);
    for block in blocks.iter_mut().rev() {
        let context = block.context;
        if !block.is_considered {
            continue;
        }
        if let Holder::Heading(level) = context.holder {
            // A link in a heading leads elsewhere, except that the title of a page may lead to the page itself.
            if level > 1 && block.is_links() {
                continue;
            }
            // The heading of an article's last part is not that of the text behind the article.
            let goes_on = |next: Context| next.is_in(CONTENT) || !context.is_in(CONTENT);
            block.is_kept = level < highest && distance <= CLOSE && next.is_some_and(goes_on);
            highest = highest.min(level);
            distance += 1;
        } else if block.is_kept {
            (next, distance, highest) = (Some(context), 0, NO_HEADING);
        } else if !block.is_links() {
            distance += 1;
        }
    }
}
