//! The main text of a page.

use super::blocks::{Visit, walk};
use super::boilerplate::Context;
use super::classify::{Block, choose};
use super::containers::Containers;
use super::elements::Element;
use super::page_title::PageTitle;
use super::scan::Attributes;
use super::words;
use super::write::{Gap, Writer};

/// Appends the main text of a page to `out`: the blocks of its visible text without navigation and the like; see
/// [`super::classify`]. If a page has no main text, appends all its visible text.
pub(in super::super) fn main_text(page: &str, out: &mut String) {
    let mut text = String::with_capacity(page.len() / 4);
    let (mut blocks, containers, title) = read_blocks(page, &mut text);
    if !choose(&mut blocks, &text, &containers, &title) {
        out.push_str(&text);
        return;
    }
    let begin = out.len();
    for block in blocks.into_iter().filter(|block| block.is_kept) {
        if out.len() > begin {
            out.push('\n');
        }
        out.push_str(&text[block.range]);
    }
}

/// Writes the visible text to `text`. Returns its blocks, their containers, and the title of the page.
pub(super) fn read_blocks(page: &str, text: &mut String) -> (Vec<Block>, Containers, PageTitle) {
    let mut visitor = MainText {
        writer: Writer::new(text),
        blocks: Vec::new(),
        block: None,
        link: Link::None,
        containers: Containers::new(),
        title: None,
    };
    walk(page, &mut visitor);
    visitor.end_block();
    let title = PageTitle::new(visitor.title.unwrap_or_default());
    (visitor.blocks, visitor.containers, title)
}

/// Writes the visible text and divides it into blocks.
struct MainText<'p, 'o> {
    writer: Writer<'p, 'o>,
    /// The blocks before the current one.
    blocks: Vec<Block>,
    /// The current block. It begins with its first character that is not white space.
    block: Option<OpenBlock>,
    link: Link,
    containers: Containers,
    /// The text of the first `title` element.
    title: Option<&'p str>,
}

/// The link that text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    None,
    /// To a place on the page.
    Within,
    Elsewhere,
}

struct OpenBlock {
    begin: usize,
    /// Where the text ends that has been counted.
    counted: usize,
    words: u32,
    link_words: u32,
    context: Context,
}

impl MainText<'_, '_> {
    /// Begins a block, if none is open and something was written after the first `len` bytes.
    fn begin_block(&mut self, len: usize, context: Context) {
        if self.block.is_some() || self.writer.written().len() == len {
            return;
        }
        // The newline before it belongs to no block.
        let begin = len + usize::from(len > 0);
        self.block = Some(OpenBlock {
            begin,
            counted: begin,
            words: 0,
            link_words: 0,
            context,
        });
    }

    fn end_block(&mut self) {
        self.count_words();
        if let Some(block) = self.block.take() {
            self.blocks.push(Block {
                range: block.begin..block.counted,
                words: block.words,
                link_words: block.link_words,
                context: block.context,
                is_considered: false,
                is_kept: false,
            });
        }
    }

    /// Counts the words that were written since the last time.
    fn count_words(&mut self) {
        let Some(block) = &mut self.block else {
            return;
        };
        let written = self.writer.written();
        let words = words::count(&written[block.counted..]);
        block.words += words;
        // A heading leads to itself, so that readers can copy its address.
        let is_link = match self.link {
            Link::None => false,
            Link::Within => !block.context.is_heading(),
            Link::Elsewhere => true,
        };
        if is_link {
            block.link_words += words;
        }
        block.counted = written.len();
    }
}

impl<'p> Visit<'p> for MainText<'p, '_> {
    type Context = Context;

    fn context(
        &mut self,
        parent: Context,
        element: Element,
        attributes: &Attributes<'_>,
    ) -> Context {
        parent.inside(element, attributes, &mut self.containers)
    }

    fn text(&mut self, text: &'p str, context: Context) {
        let len = self.writer.written().len();
        self.writer.text(text);
        self.begin_block(len, context);
    }

    fn raw_text(&mut self, text: &'p str, context: Context) {
        let len = self.writer.written().len();
        self.writer.raw_text(text);
        self.begin_block(len, context);
    }

    fn separate(&mut self, gap: Gap) {
        if gap == Gap::Block {
            self.end_block();
        }
        self.writer.separate(gap);
    }

    fn link(&mut self, address: Option<&[u8]>) {
        let link = match address {
            None => Link::None,
            Some([b'#', ..]) => Link::Within,
            Some(_) => Link::Elsewhere,
        };
        if link != self.link {
            self.count_words();
            self.link = link;
        }
    }

    fn title(&mut self, title: &'p str) {
        self.title.get_or_insert(title);
    }

    fn restart(&mut self) {
        self.writer.restart();
        self.blocks.clear();
        self.block = None;
        self.link = Link::None;
        self.containers.clear();
        self.title = None;
    }
}
