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
//! - the main text stands around the title of the page: in the smallest container around it that has a good part of all
//!   text. So a long notice at the end of the page is left out, even if the article is shorter.
//! - a block of more than 16 words is content whatever its neighbours are, unless it is a list of short lines or one of
//!   numbers.
//! - a block of up to 16 words is content only if the author wrote it as a sentence (`p`, `li`, `td` and others). It is
//!   if it stands between two longer ones of the same article, or outside of articles of the same container. Before and after them, and where there are none, it
//!   must not look like a counter, a date or a link.
//! - a container of such a block alone, between content, is a line of code or a paragraph that has its own frame.
//! - a heading is content if content follows soon; the tree treats it as any short block.
//!
//! If no block is left, the elements say less: `main` and forms count no more, then classes and ids. If still no block
//! is left, the page has no main text.

use std::ops::Range;

use super::boilerplate::{CLASS, CONTENT, Context, ELEMENT, FORM, HEADER, Holder, MAIN};
use super::containers::Containers;

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

/// The most words of the short blocks of a container that may be labels.
const LABELS: u32 = 10;

/// The most blocks in the frame of a line of code: the code and a label.
const FRAMED: u32 = 2;

/// The least words of a framed block that nobody marked as a sentence.
const FRAMED_WORDS: u32 = 4;

/// The most blocks between a heading and the text under it: the author, the date.
const CLOSE: u32 = 5;

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
            Holder::Container | Holder::Sentences => None,
        }
    }

    /// Whether it has text of the page itself: not only links.
    fn is_text(&self) -> bool {
        self.is_considered && self.heading().is_none() && !self.is_links()
    }

    /// Whether it is content whatever stands beside it.
    fn is_long(&self, text: &str) -> bool {
        self.is_text() && self.words > SHORT && {
            let text = text[self.range.clone()].as_bytes();
            let breaks = text.iter().filter(|&&byte| byte == b'\n').count() as u64;
            let words = u64::from(self.words);
            words > u64::from(SHORT_LINE) * (breaks + 1)
                && (self.words > 2 * SHORT || numbers(text) * 4 < words)
        }
    }

    /// Whether the author wrote it as a sentence.
    fn is_sentence(&self) -> bool {
        self.is_text() && self.context.holder == Holder::Sentences
    }

    /// Whether one word in six or more is a number, or one in five a link: a counter, a date, the way to the next page.
    fn is_label(&self, text: &str) -> bool {
        let text = text[self.range.clone()].as_bytes();
        numbers(text) * 6 >= u64::from(self.words) || self.has_links(5)
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

/// How many runs of digits a text has.
fn numbers(text: &[u8]) -> u64 {
    let runs = text.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    runs.filter(|run| run[0].is_ascii_digit()).count() as u64
}

/// Marks the blocks of the main text. Returns whether there are any. `text` is the text that the blocks are in.
pub(super) fn choose(blocks: &mut [Block], text: &str, containers: &Containers) -> bool {
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
        let title = title(blocks);
        leave_out_cards(blocks, containers, title);
        let is_around = around_title(blocks, text, containers, title);
        keep_long(blocks, text, &is_around);
        keep_sentences(blocks, text, containers, &is_around);
        keep_framed(blocks, text, containers, &is_around);
        keep_headings(blocks);
        if blocks.iter().any(|block| block.is_kept) {
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

/// The position of the page's title: the first heading of the highest level. A heading that leads elsewhere is none, except
/// that the title of a page may lead to the page itself.
fn title(blocks: &[Block]) -> Option<usize> {
    let headings = blocks.iter().enumerate().filter_map(|(at, block)| {
        let level = block.heading().filter(|_| block.is_considered)?;
        (level == 1 || !block.is_links()).then_some((level, at))
    });
    headings.min().map(|(_, at)| at)
}

/// Considers no more the blocks of cards: of containers that have few words, and among them many links, but not the title.
fn leave_out_cards(blocks: &mut [Block], containers: &Containers, title: Option<usize>) {
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
    // The page is no card, nor is what the title is in.
    let mut around = title.map_or(0, |title| blocks[title].context.container);
    while around != 0 {
        is_card[around as usize] = false;
        around = containers.parent(around);
    }
    is_card[0] = false;
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
    title: Option<usize>,
) -> Vec<bool> {
    let mut words = vec![0; containers.len()];
    for block in blocks {
        if block.is_sentence() || block.is_long(text) {
            words[block.container()] += block.words;
        }
    }
    containers.add_up(&mut words);
    let least = u64::from(words[0]) * 2 / 5;
    let mut around = title.map_or(0, |title| blocks[title].context.container);
    while around != 0 && u64::from(words[around as usize]) < least.max(u64::from(LEAST)) {
        around = containers.parent(around);
    }
    let mut is_around = vec![false; containers.len()];
    is_around[around as usize] = true;
    containers.mark_inside(&mut is_around);
    is_around
}

/// Keeps the long blocks, and no other.
fn keep_long(blocks: &mut [Block], text: &str, is_around: &[bool]) {
    for block in blocks {
        block.is_kept = is_around[block.container()] && block.is_long(text);
    }
}

/// The positions of the first and the last kept block of each group. No position is between those of a group that has none.
fn spans(blocks: &[Block], containers: &Containers) -> Vec<(usize, usize)> {
    let mut spans = vec![(usize::MAX, 0); containers.len()];
    for (at, block) in blocks.iter().enumerate() {
        if block.is_kept {
            let (first, last) = &mut spans[block.group(block.context.container)];
            *first = at.min(*first);
            *last = at;
        }
    }
    spans
}

/// Keeps short sentences: those between long blocks of their group, and those beside others of their container.
fn keep_sentences(blocks: &mut [Block], text: &str, containers: &Containers, is_around: &[bool]) {
    let spans = spans(blocks, containers);
    let is_between = |at, block: &Block| {
        let (first, last) = spans[block.group(block.context.container)];
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

/// Keeps blocks that have a container to themselves, between kept blocks of the container around it.
fn keep_framed(blocks: &mut [Block], text: &str, containers: &Containers, is_around: &[bool]) {
    let spans = spans(blocks, containers);
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
        let is_content = match block.context.holder {
            Holder::Sentences => inside[container] <= FRAMED,
            _ => inside[container] == 1 && block.words >= FRAMED_WORDS && !block.is_label(text),
        };
        block.is_kept |= container != 0 && first < at && at < last && is_content;
    }
}

/// Keeps headings under which kept blocks follow soon, before a heading of the same or a higher level.
fn keep_headings(blocks: &mut [Block]) {
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

#[cfg(test)]
mod tests {
    use super::super::main::read_blocks;
    use super::*;

    /// A page whose texts have as many words as the numbers in `sketch`; after a slash, how many of them are in a link.
    fn page(sketch: &str) -> String {
        let mut page = String::new();
        for part in sketch.split_inclusive('>') {
            let (numbers, tag) = part.split_at(part.find('<').unwrap_or(part.len()));
            if !numbers.is_empty() {
                let (words, links) = numbers.split_once('/').unwrap_or((numbers, "0"));
                let [words, links] = [words, links].map(|number| number.parse::<usize>().unwrap());
                page.push_str(&"word ".repeat(words - links));
                page.push_str(&format!("<a href=x>{}</a>", "link ".repeat(links)));
            }
            page.push_str(tag);
        }
        page
    }

    /// The numbers of words of the blocks that are kept.
    fn kept_of(page: &str) -> Vec<u32> {
        let mut text = String::new();
        let (mut blocks, containers) = read_blocks(page, &mut text);
        let any = choose(&mut blocks, &text, &containers);
        let kept = blocks.iter().filter(|block| block.is_kept);
        let kept: Vec<u32> = kept.map(|block| block.words).collect();
        assert_eq!(any, !kept.is_empty());
        kept
    }

    #[track_caller]
    fn check(sketch: &str, expected: &[u32]) {
        assert_eq!(kept_of(&page(sketch)), expected, "{sketch}");
    }

    #[test]
    fn words_and_links_decide() {
        check("", &[]);
        check("<p>17<p>18/6<p>19/7<div>16</div>", &[17, 18]);
        check("<div>16</div><p>50/40", &[]);
        check("<nav>50</nav>", &[]);
        // Many short lines.
        check("<div>5<br>5<br>5<br>5</div><p>17", &[17]);
    }

    #[test]
    fn short_sentences_are_content_between_long_ones() {
        check("<p>17<li>1</li><div>1</div><p>3/2<p>20", &[17, 1, 20]);
        check("<div><p>17</div><p>1<div><p>20</div>", &[17, 20]);
    }

    #[test]
    fn short_sentences_are_content_beside_each_other() {
        check("<li>5<li>6<li>4/1<li>7/3", &[5, 6]);
        check("<li>5<li>5", &[]);
        for (sentence, expected) in [
            ("You are visitor number 23201 since 1998.", 11),
            ("Now you have counted to 3, to 2 and to 1, so begin", 11),
            ("Now you have counted to ten, so begin with step 1.", 22),
        ] {
            let page = format!("{}<li>{sentence}", page("<li>11"));
            assert_eq!(kept_of(&page).iter().sum::<u32>(), expected, "{sentence}");
        }
    }

    #[test]
    fn cards_are_no_content() {
        // A linked title and a sentence.
        let article = "<h1>3</h1><p>40<p>41";
        check(&format!("{article}<div>8/7<p>17</div>"), &[3, 40, 41]);
        check(
            &format!("{article}<div><div>5/5</div><div><p>19</div></div>"),
            &[3, 40, 41],
        );
        // Few links; many words; the title.
        check(&format!("{article}<div>8/7<p>28</div>"), &[3, 40, 41, 28]);
        check(&format!("{article}<div>18/18<p>62</div>"), &[3, 40, 41, 62]);
        check("<div><h1>3</h1>8/7<p>17</div>", &[3, 17]);
    }

    #[test]
    fn content_stands_around_the_title() {
        let notice = "<div><p>40</div>";
        check(&format!("<div><h1>3</h1><p>30</div>{notice}"), &[3, 30]);
        check(
            &format!("<div><div><h1>3</h1></div><p>30</div>{notice}"),
            &[3, 30],
        );
        // Too few words, or too small a part of all.
        check(&format!("<div><h1>3</h1><p>19</div>{notice}"), &[3, 19, 40]);
        check(&format!("<div><h1>3</h1><p>25</div>{notice}"), &[3, 25, 40]);
        // The highest heading counts, but none that leads elsewhere.
        check(
            &format!("<div><h3>2</h3><p>18</div><div><h2>3</h2><p>60</div>{notice}"),
            &[3, 60],
        );
        check(
            &format!("<div><h2>3/3</h2><p>60</div><div><h3>3</h3><p>81</div>{notice}"),
            &[3, 81],
        );
    }

    #[test]
    fn content_is_in_the_only_article() {
        check("<article><p>17</article><p>30", &[17]);
        check("<article><li>6<li>7</article><p>30", &[6, 7]);
        check(
            "<article><p>17</article><article><p>18</article><p>30",
            &[17, 18, 30],
        );
        check("<article><div>9</div></article><p>30", &[30]);
    }

    #[test]
    fn blocks_in_frames_belong_to_the_text_around_them() {
        check(
            "<p>17<div><pre>1</pre></div><div>4</div><p>20",
            &[17, 1, 4, 20],
        );
        check("<p>17<div>2<pre>1</pre></div><p>20", &[17, 1, 20]);
        check(
            "<p>17<div>3</div><div><li>1<li>1<li>1</div><p>20<div>4</div>",
            &[17, 20],
        );
    }

    #[test]
    fn headings_stand_before_content() {
        check("<h1>3/3</h1><h2>2</h2><div>2</div><p>40", &[3, 2, 40]);
        check("<h2>1</h2><h2>2</h2><p>40<h2>3</h2>", &[2, 40]);
        check("<h2>3/3</h2><p>40", &[40]);
        for (labels, expected) in [(CLOSE, &[3, 40][..]), (CLOSE + 1, &[40])] {
            check(
                &format!("<h1>3</h1>{}<p>40", "<div>1</div>".repeat(labels as usize)),
                expected,
            );
        }
        // What elements exclude and lists of links do not count in between.
        check(
            &format!("<h1>3</h1>{}<p>40", "<nav>3</nav><p>3/3</p>".repeat(9)),
            &[3, 40],
        );
    }

    #[test]
    fn elements_say_less_if_nothing_is_left() {
        check("<main><p>20</main><form><p>21</form><p>22", &[20]);
        check("<main>5</main><form><p>21</form><p>22", &[21, 22]);
        check("<form><p>21</form>", &[21]);
        check("<div class=sidebar><p>21</div>", &[21]);
    }
}
