//! Walks over the visible text of a page.

use super::elements::Element;
use super::hidden;
use super::open::OpenElements;
use super::scan::{Attributes, Event, Scanner};
use super::write::Gap;

/// What a walk calls for the visible parts of a page, in their order.
pub(super) trait Visit<'p> {
    /// What is known of an element besides its name; its text and the elements inside get it.
    type Context: Copy + Default;

    /// Returns the context of an element. `parent` is the context of the element around it.
    fn context(
        &mut self,
        parent: Self::Context,
        element: Element,
        attributes: &Attributes<'_>,
    ) -> Self::Context;

    /// A run of text with character references, in an element with this context.
    fn text(&mut self, text: &'p str, context: Self::Context);

    /// The same without character references.
    fn raw_text(&mut self, text: &'p str, context: Self::Context);

    /// What separates the text before from the text after.
    fn separate(&mut self, gap: Gap);

    /// From here on text is in a link to this address, or in none.
    fn link(&mut self, address: Option<&[u8]>);

    /// The title of the page, with character references.
    fn title(&mut self, _title: &'p str) {}

    /// An element that has no content of interest, such as a picture, in an element with this context.
    fn empty(&mut self, _element: Element, _context: Self::Context) {}

    /// Forgets all: the walk begins again.
    fn restart(&mut self);
}

/// How many elements that are never closed are found before all hidden elements are shown.
const MOST_UNCLOSED: usize = 3;

/// Hidden elements that are shown nevertheless: those that are never closed, which is the page's mistake. Without them
/// the rest of the page would be lost.
#[derive(Debug, Default)]
struct Shown {
    /// Where they begin.
    unclosed: Vec<usize>,
    everything: bool,
}

impl Shown {
    fn shows(&self, at: usize) -> bool {
        self.everything || self.unclosed.contains(&at)
    }

    fn add(&mut self, at: usize) {
        match self.unclosed.len() < MOST_UNCLOSED {
            true => self.unclosed.push(at),
            false => self.everything = true,
        }
    }
}

/// Walks over a page. Begins again if a hidden element is never closed, a few times at most, so the time stays linear.
pub(super) fn walk<'p, V: Visit<'p>>(page: &'p str, visitor: &mut V) {
    let mut shown = Shown::default();
    while let Some(unclosed) = walk_once(page, &shown, visitor) {
        shown.add(unclosed);
        visitor.restart();
    }
}

/// Walks over a page. Returns where a hidden element begins that is never closed, if there is one.
fn walk_once<'p, V: Visit<'p>>(page: &'p str, shown: &Shown, visitor: &mut V) -> Option<usize> {
    let mut scanner = Scanner::new(page);
    let mut open = OpenElements::<V::Context>::new();
    while let Some(event) = scanner.next_event() {
        match event {
            Event::Text(text) => {
                if !open.is_hidden() {
                    visitor.text(text, open.context());
                }
            }
            Event::RawText(text) => {
                if !open.is_hidden() {
                    visitor.raw_text(text, open.context());
                }
            }
            Event::Start(tag) => {
                let opens = open.make_way(tag);
                let attributes = scanner.attributes();
                if !open.is_hidden() {
                    visitor.separate(tag.element.gap());
                    if tag.element == Element::A {
                        visitor.link(attributes.href);
                    }
                }
                if opens {
                    let hides = !open.is_hidden()
                        && hidden::is_hidden(tag.element, attributes)
                        && !shown.shows(tag.at);
                    let mut context = open.context();
                    if !hides && !open.is_hidden() {
                        context = visitor.context(context, tag.element, attributes);
                    }
                    open.open(tag, hides, context);
                } else if !open.is_hidden() {
                    visitor.empty(tag.element, open.context());
                }
                if !open.is_foreign() {
                    let left_out = scanner.read_raw_text(tag.element);
                    if tag.element == Element::Title {
                        visitor.title(left_out);
                    }
                }
            }
            Event::End(tag) => {
                open.close(tag);
                if !open.is_hidden() {
                    visitor.separate(tag.element.gap());
                    if tag.element == Element::A {
                        visitor.link(None);
                    }
                }
            }
        }
    }
    open.hidden_since()
}
