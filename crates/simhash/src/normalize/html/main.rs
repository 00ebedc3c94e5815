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
    /// The current block, up to where its words are counted. It begins with its first character that is not white space.
    block: Option<Block>,
    link: Link,
    containers: Containers,
    /// The text of the first `title` element.
    title: Option<&'p str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    None,
    /// To a place on the page.
    Within,
    Elsewhere,
}

impl MainText<'_, '_> {
    fn end_block(&mut self) {
        self.count_words();
        self.blocks.extend(self.block.take());
    }

    /// Counts the words that were written since the last time.
    fn count_words(&mut self) {
        let Some(block) = &mut self.block else {
            return;
        };
        let written = self.writer.written();
        let words = words::count(&written[block.range.end..]);
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
        block.range.end = written.len();
    }
}

impl<'p, 'o> Visit<'p, 'o> for MainText<'p, 'o> {
    type Context = Context;

    fn context(
        &mut self,
        parent: Context,
        element: Element,
        attributes: &Attributes<'_>,
    ) -> Context {
        parent.inside(element, attributes, &mut self.containers)
    }

    fn writer(&mut self) -> &mut Writer<'p, 'o> {
        &mut self.writer
    }

    /// Begins a block, if none is open and the run of text is not only white space.
    fn wrote(&mut self, begin: usize, context: Context) {
        if self.block.is_some() || self.writer.written().len() == begin {
            return;
        }
        // The newline before it belongs to no block.
        let begin = begin + usize::from(begin > 0);
        self.block = Some(Block {
            range: begin..begin,
            words: 0,
            link_words: 0,
            context,
            is_considered: false,
            is_kept: false,
        });
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
        self.blocks.clear();
        self.block = None;
        self.link = Link::None;
        self.containers.clear();
        self.title = None;
    }
}
