//! Chooses the main text among the blocks of a page.
//!
//! The measures are those of C. Kohlschütter, P. Fankhauser, W. Nejdl, *Boilerplate Detection using Shallow Text
//! Features* (WSDM 2010): the number of words of a block, and its link density, the share of its words that is in
//! links. So are the limits for a block, from the paper's tree for the two (algorithm 2): a link density above 1/3 is
//! boilerplate; more than 16 words with fewer links are content.
//!
//! A fingerprint needs more than a good choice: the same choice for an article with another advertisement beside it, or
//! with one word more. In the paper's tree, a block also depends on the words and links of the blocks before and after
//! it, which are often such advertisements. So here it depends on what it stands in:
//!
//! - the elements around a block come first; see [`super::boilerplate`]. On a page with a `main` element, what is outside
//!   of it is not content; nor is what is outside of the only `article` with text.
//! - a small container with many links is the card of an advertisement or of another article: a title that leads
//!   elsewhere, and a sentence or two. Nothing in it is content.
//! - the title of the page is the heading that the `title` element names, or else the first of the highest level.
//! - the main text stands around the title of the page: in the smallest container around it that has a good part of all
//!   text. So a long notice at the end of the page is left out, even if the article is shorter.
//! - a block of more than 16 words is content whatever its neighbours are, unless it is a list of short lines or one of
//!   numbers.
//! - a block of up to 16 words is content only if the author wrote it as a sentence (`p`, `li`, `td` and others) or as code.
//!   It is content if it stands between two long blocks of its article; outside of articles, of its container. It is also
//!   content behind the last of them, and beside several others like it, unless it looks like a counter, a date or a link.
//! - a container of such a block alone, between content, is a line of code or a paragraph that has its own frame.
//! - text in no `p`, `li` or the like is content between other content of its container.
//! - a heading is content if content follows soon; the tree treats it as any short block.
//!
//! If no block is left, the elements say less: `main` and forms count no more, then classes and ids. If still no block
//! is left, the page has no main text.

mod keep;
mod title;

use std::ops::Range;

use super::boilerplate::{CLASS, CONTENT, Context, ELEMENT, FORM, HEADER, Holder, MAIN};
use super::containers::Containers;
use super::page_title::{PageTitle, first_line};
use keep::{keep_ends, keep_framed, keep_headings, keep_long, keep_sentences, keep_unmarked};
use title::{Title, keep_title, title};

/// A block of the visible text.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// Where it is in the text.
    pub(super) range: Range<usize>,
    pub(super) words: u32,
    /// How many of the words are in links.
    pub(super) link_words: u32,
    pub(super) context: Context,
    /// Whether it can belong to the main text.
    pub(super) is_considered: bool,
    /// Whether it belongs to the main text.
    pub(super) is_kept: bool,
}

/// The most words of a short block.
const SHORT: u32 = 16;

/// The most words of a short line. A block of several has that many on average.
const SHORT_LINE: u32 = 7;

/// The most words of a card.
const CARD: u32 = 80;

/// The least words around the title of a page.
const LEAST: u32 = 20;

impl Block {
    /// Whether more than a third of it is links.
    fn is_links(&self) -> bool {
        self.has_links(3)
    }

    /// Whether one word in fewer than `every` is in a link.
    fn has_links(&self, every: u64) -> bool {
        every * u64::from(self.link_words) > u64::from(self.words)
    }

    fn heading(&self) -> Option<u8> {
        match self.context.holder {
            Holder::Heading(level) => Some(level),
            Holder::Container | Holder::Sentences | Holder::Preformatted => None,
        }
    }

    /// Whether it has text of the page itself: not only links.
    fn is_text(&self) -> bool {
        self.is_considered && self.heading().is_none() && !self.is_links()
    }

    /// Whether it is content whatever stands beside it.
    fn is_long(&self, text: &str) -> bool {
        self.is_text()
            && self.words > SHORT
            && (self.is_preformatted() || {
                let text = text[self.range.clone()].as_bytes();
                let breaks = text.iter().filter(|&&byte| byte == b'\n').count() as u64;
                let words = u64::from(self.words);
                words > u64::from(SHORT_LINE) * (breaks + 1)
                    && (self.words > 2 * SHORT || numbers(text) * 4 < words)
            })
    }

    /// Whether its line breaks and numbers are those of code.
    fn is_preformatted(&self) -> bool {
        self.context.holder == Holder::Preformatted
    }

    /// Whether the author wrote it as a sentence, or as code.
    fn is_sentence(&self) -> bool {
        self.is_text() && (self.context.holder == Holder::Sentences || self.is_preformatted())
    }

    /// Whether one word in six or more is a number, or one in five a link: a counter, a date, the way to the next page.
    fn is_label(&self, text: &str) -> bool {
        let text = text[self.range.clone()].as_bytes();
        let has_numbers = !self.is_preformatted() && numbers(text) * 6 >= u64::from(self.words);
        has_numbers || self.has_links(5)
    }

    fn container(&self) -> usize {
        self.context.container as usize
    }

    /// The blocks that it belongs together with: those of its article, or else of this container.
    fn group(&self, container: u32) -> usize {
        match self.context.article {
            0 => container as usize,
            article => article as usize,
        }
    }
}

/// How many numbers a text has, but for those in names (`C4322`) and in code (`{{8080}}`, `--jobs=4`).
fn numbers(text: &[u8]) -> u64 {
    // Without an early end, so that it becomes a few vector instructions.
    let has_digits = text
        .iter()
        .fold(false, |has, byte| has | byte.is_ascii_digit());
    if !has_digits {
        return 0;
    }
    let words = text.split(u8::is_ascii_whitespace);
    words.map(numbers_of_word).sum()
}

fn numbers_of_word(word: &[u8]) -> u64 {
    /// The most letters behind a number: `12k`, `3rd`.
    const UNIT: usize = 2;
    // Beside those of ASCII, the first bytes of letters of Latin, Greek, Cyrillic and others.
    let is_letter = |byte: &&u8| byte.is_ascii_alphabetic() || matches!(**byte, 0xc3..=0xdf);
    let letters = word.iter().filter(is_letter).count();
    let begins_with_digit = word.first().is_some_and(u8::is_ascii_digit);
    let is_code = word.iter().any(|byte| b"{}<>[]=".contains(byte));
    if is_code || (letters > 0 && !(begins_with_digit && letters <= UNIT)) {
        return 0;
    }
    // A comma or a point within a number does not end it: 1,956 is one as 956 is.
    let belongs = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b',' | b'.');
    let runs = word.chunk_by(|a, b| belongs(a) == belongs(b));
    runs.filter(|run| run.iter().any(u8::is_ascii_digit))
        .count() as u64
}

/// Marks the blocks of the main text. Returns whether there are any. `text` is the text that the blocks are in.
pub(super) fn choose(
    blocks: &mut [Block],
    text: &str,
    containers: &Containers,
    page_title: &PageTitle,
) -> bool {
    let has_main = blocks.iter().any(|block| block.context.is_in(MAIN));
    for (excluded, only_main) in [
        (ELEMENT | HEADER | CLASS | FORM, has_main),
        (ELEMENT | HEADER | CLASS, false),
        (ELEMENT | HEADER, false),
    ] {
        for block in &mut *blocks {
            let context = block.context;
            block.is_considered = !context.is_in(excluded) && (!only_main || context.is_in(MAIN));
            block.is_kept = false;
        }
        consider_only_article(blocks);
        let title = title(blocks, text, page_title);
        leave_out_cards(blocks, text, containers, title.as_ref());
        let is_around = around_title(blocks, text, containers, title.as_ref());
        keep_long(blocks, text, &is_around);
        keep_sentences(blocks, text, containers, &is_around);
        keep_framed(blocks, text, containers, &is_around);
        keep_ends(blocks, text, containers);
        keep_unmarked(blocks, text, containers);
        keep_headings(blocks);
        if blocks.iter().any(|block| block.is_kept) {
            keep_title(blocks, text, title);
            return true;
        }
    }
    false
}

/// If all sentences in articles are in one of them, considers nothing outside of articles.
fn consider_only_article(blocks: &mut [Block]) {
    let mut articles = blocks
        .iter()
        .filter(|block| block.is_sentence() || (block.is_text() && block.words > SHORT))
        .map(|block| block.context.article)
        .filter(|&article| article != 0);
    let Some(article) = articles.next() else {
        return;
    };
    if articles.all(|other| other == article) {
        for block in blocks {
            block.is_considered &= block.context.is_in(CONTENT);
        }
    }
}

/// Considers no more the blocks of cards: of containers that have few words, and among them many links, but not the title,
/// nor a heading that repeats it, as those of the posts in a forum do (`Re: …`).
fn leave_out_cards(
    blocks: &mut [Block],
    text: &str,
    containers: &Containers,
    title: Option<&Title>,
) {
    let [mut words, mut link_words, mut links] = [(); 3].map(|()| vec![0; containers.len()]);
    for block in blocks.iter().filter(|block| block.is_considered) {
        words[block.container()] += block.words;
        link_words[block.container()] += block.link_words;
        links[block.container()] += u32::from(block.is_links());
    }
    for numbers in [&mut words, &mut link_words, &mut links] {
        containers.add_up(numbers);
    }
    let mut is_card: Vec<bool> = (0..containers.len())
        .map(|at| words[at] < CARD && links[at] > 0 && 5 * link_words[at] > words[at])
        .collect();
    // The page is no card, nor is what the title or such a heading is in.
    is_card[0] = false;
    if let Some(title) = title {
        let line = |block: &Block| first_line(&text[block.range.clone()]);
        let named = title.is_named.then(|| line(&blocks[title.at]));
        let repeats = |block: &Block| {
            let is_heading = block.is_considered && block.heading().is_some();
            let before = named.filter(|_| is_heading);
            let before = before.and_then(|named| line(block).strip_suffix(named));
            before.is_some_and(|before| before.is_empty() || before.ends_with(' '))
        };
        let mut is_around = vec![false; containers.len()];
        for (at, block) in blocks.iter().enumerate() {
            let mut around = block.context.container;
            let is_title = at == title.at || repeats(block);
            while is_title && around != 0 && !is_around[around as usize] {
                is_around[around as usize] = true;
                is_card[around as usize] = false;
                around = containers.parent(around);
            }
        }
    }
    containers.mark_inside(&mut is_card);
    for block in blocks {
        block.is_considered &= !is_card[block.container()];
    }
}

/// Whether each container is in the one around the page's title that has the main text: the smallest with two fifths of the
/// words.
fn around_title(
    blocks: &[Block],
    text: &str,
    containers: &Containers,
    title: Option<&Title>,
) -> Vec<bool> {
    let mut words = vec![0; containers.len()];
    for block in blocks {
        if block.is_sentence() || block.is_long(text) {
            words[block.container()] += block.words;
        }
    }
    containers.add_up(&mut words);
    let least = u64::from(words[0]) * 2 / 5;
    let mut around = title.map_or(0, |title| blocks[title.at].context.container);
    while around != 0 && u64::from(words[around as usize]) < least.max(u64::from(LEAST)) {
        around = containers.parent(around);
    }
    let mut is_around = vec![false; containers.len()];
    is_around[around as usize] = true;
    containers.mark_inside(&mut is_around);
    is_around
}

#[cfg(test)]
mod tests;
