//! Chooses the main text among the blocks of a page.
//!
//! The measures are those of C. Kohlschütter, P. Fankhauser, W. Nejdl, *Boilerplate Detection using Shallow Text
//! Features* (WSDM 2010): the number of words of a block, and its link density, the share of its words that is in
//! links. So are the limits for a block, from the paper's tree for the two (algorithm 2): a link density above 1/3 is
//! boilerplate; more than 16 words with fewer links are content.
//!
//! A fingerprint needs more than a good choice: the same choice for an article with another advertisement beside it, or
//! with one word more. In the paper's tree, a block also depends on the words and links of the blocks before and after
//! it, which are often such advertisements. So here
//!
//! - the elements around a block come first; see [`super::boilerplate`]. What they exclude is no neighbour either.
//! - a block of more than 16 words is content whatever its neighbours are. After a list of links, the tree wants more
//!   than 40 words, or a next block of more than 17.
//! - a block of up to 16 words is content only if the author wrote it as a sentence (`p`, `li`, `td` and others), and if
//!   it stands between two longer ones of the same article, or outside of articles of the same container. The tree
//!   keeps short blocks after one of more than 4 words, or before one of more than 15; those are also dates, counters
//!   and labels.
//! - a heading is content if content follows soon; the tree treats it as any short block.
//! - on a page with a `main` element, what is outside of it is not content.
//!
//! If no block is left, the elements say less: `main` and forms count no more, then classes and ids. If still no block
//! is left, the page has no main text. What is left has a long block, so it is never a few words.

use std::ops::Range;

use super::boilerplate::{CLASS, CONTENT, Context, ELEMENT, FORM, HEADER, Holder, MAIN};

/// A block of the visible text.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// Where it is in the text.
    pub(super) range: Range<usize>,
    pub(super) words: u32,
    /// How many of the words are in links.
    pub(super) link_words: u32,
    pub(super) context: Context,
    /// Whether it belongs to the main text.
    pub(super) is_kept: bool,
}

/// The most words of a short block.
const SHORT: u32 = 16;

/// The most blocks between a heading and the text under it: the author, the date.
const CLOSE: u32 = 5;

impl Block {
    /// Whether more than a third of it is links.
    fn is_links(&self) -> bool {
        3 * u64::from(self.link_words) > u64::from(self.words)
    }
}

/// Marks the blocks of the main text. Returns whether there are any. `groups` is the number of groups of blocks.
pub(super) fn choose(blocks: &mut [Block], groups: u32) -> bool {
    let has_main = blocks.iter().any(|block| block.context.is_in(MAIN));
    let mut longs = vec![NONE; groups as usize + 1];
    for (excluded, only_main) in [
        (ELEMENT | HEADER | CLASS | FORM, has_main),
        (ELEMENT | HEADER | CLASS, false),
        (ELEMENT | HEADER, false),
    ] {
        let considers =
            |context: Context| !context.is_in(excluded) && (!only_main || context.is_in(MAIN));
        keep_long(blocks, &mut longs, considers);
        keep_short(blocks, &longs, considers);
        keep_headings(blocks, considers);
        if blocks.iter().any(|block| block.is_kept) {
            return true;
        }
    }
    false
}

/// The positions of the first and the last long block of a group.
type Longs = (usize, usize);

/// No position is between these.
const NONE: Longs = (usize::MAX, 0);

/// Keeps the long blocks, and no other. Finds the first and last of each group.
fn keep_long(blocks: &mut [Block], longs: &mut [Longs], considers: impl Fn(Context) -> bool) {
    longs.fill(NONE);
    for (at, block) in blocks.iter_mut().enumerate() {
        block.is_kept = considers(block.context)
            && !matches!(block.context.holder, Holder::Heading(_))
            && block.words > SHORT
            && !block.is_links();
        if block.is_kept {
            let (first, last) = &mut longs[block.context.group as usize];
            *first = at.min(*first);
            *last = at;
        }
    }
}

/// Keeps the short blocks between long ones of their group.
fn keep_short(blocks: &mut [Block], longs: &[Longs], considers: impl Fn(Context) -> bool) {
    for (at, block) in blocks.iter_mut().enumerate() {
        let (first, last) = longs[block.context.group as usize];
        block.is_kept |= first < at
            && at < last
            && considers(block.context)
            && block.context.holder == Holder::Sentences
            && !block.is_links();
    }
}

/// Keeps headings under which kept blocks follow soon, before a heading of the same or a higher level.
fn keep_headings(blocks: &mut [Block], considers: impl Fn(Context) -> bool) {
    /// Above all levels.
    const NO_HEADING: u8 = u8::MAX;
    // The kept block that follows, and the blocks and the highest heading on the way to it.
    let mut next: Option<Context> = None;
    let (mut distance, mut highest) = (0, NO_HEADING);
    for block in blocks.iter_mut().rev() {
        let context = block.context;
        if !considers(context) {
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

#[cfg(test)]
mod tests {
    use super::super::elements::Element;
    use super::super::scan::Attributes;
    use super::*;

    /// The number of a block's group, its element, its words, and how many of them are links.
    type Sketch = (u32, Element, u32, u32);

    /// The context of the text of an element, in this group.
    fn context(element: Element, group: u32) -> Context {
        let mut context = Context::default().inside(element, &Attributes::default(), &mut 0);
        context.group = group;
        context
    }

    /// Whether each block is kept.
    fn kept(sketches: &[Sketch]) -> Vec<bool> {
        let blocks = sketches
            .iter()
            .map(|&(group, element, words, link_words)| Block {
                range: 0..0,
                words,
                link_words,
                context: context(element, group),
                // Of an earlier choice.
                is_kept: true,
            });
        let mut blocks: Vec<Block> = blocks.collect();
        let any = choose(&mut blocks, 9);
        let kept: Vec<bool> = blocks.iter().map(|block| block.is_kept).collect();
        assert_eq!(any, kept.contains(&true));
        kept
    }

    #[test]
    fn words_and_links_decide() {
        use Element::{Nav, P};
        let long: Sketch = (0, P, 17, 0);
        assert!(kept(&[]).is_empty());
        assert_eq!(
            kept(&[long, (0, P, 18, 6), (0, P, 18, 7), (0, P, 16, 0)]),
            [true, true, false, false]
        );
        // No block is left.
        assert_eq!(kept(&[(0, P, 16, 0), (0, P, 50, 40)]), [false, false]);
        assert_eq!(kept(&[(0, Nav, 50, 0)]), [false]);
    }

    #[test]
    fn short_blocks_stand_between_long_ones() {
        use Element::{Div, Li, P};
        let long: Sketch = (0, P, 17, 0);
        assert_eq!(
            kept(&[long, (0, Li, 1, 0), (0, Div, 1, 0), (0, P, 3, 2), long]),
            [true, true, false, false, true]
        );
        assert_eq!(kept(&[long, (1, P, 1, 0), long]), [true, false, true]);
        assert_eq!(
            kept(&[(0, P, 1, 0), long, (0, P, 1, 0)]),
            [false, true, false]
        );
    }

    #[test]
    fn headings_stand_before_content() {
        use Element::{Div, H1, H2, Nav, P};
        let (long, title, part): (Sketch, Sketch, Sketch) =
            ((0, P, 17, 0), (0, H1, 3, 3), (0, H2, 3, 0));
        assert_eq!(
            kept(&[title, part, (0, Div, 2, 0), long]),
            [true, true, false, true]
        );
        assert_eq!(kept(&[part, part, long, part]), [false, true, true, false]);
        assert_eq!(kept(&[(0, H2, 3, 3), long]), [false, true]);
        for (labels, expected) in [(CLOSE, true), (CLOSE + 1, false)] {
            let mut blocks = vec![title];
            blocks.extend(vec![(0, Div, 1, 0); labels as usize]);
            blocks.push(long);
            assert_eq!(kept(&blocks)[0], expected);
        }
        // What elements exclude and lists of links do not count in between.
        let mut blocks = vec![title];
        blocks.extend([(0, Nav, 3, 0), (0, P, 3, 3)].repeat(9));
        blocks.push(long);
        assert!(kept(&blocks)[0]);
    }

    #[test]
    fn elements_say_less_if_nothing_is_left() {
        let block = |element, words| Block {
            range: 0..0,
            words,
            link_words: 0,
            context: context(element, 0),
            is_kept: false,
        };
        let mut blocks = [
            block(Element::Main, 20),
            block(Element::Form, 20),
            block(Element::Div, 20),
        ];
        assert!(choose(&mut blocks, 9));
        assert_eq!(
            blocks.each_ref().map(|block| block.is_kept),
            [true, false, false]
        );
        blocks[0].words = 5;
        assert!(choose(&mut blocks, 9));
        assert_eq!(
            blocks.each_ref().map(|block| block.is_kept),
            [false, true, true]
        );
    }
}
