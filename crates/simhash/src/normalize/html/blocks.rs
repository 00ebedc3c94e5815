//! Walks over the visible text of a page.

use super::elements::Element;
use super::hidden::Sight;
use super::open::OpenElements;
use super::scan::{Attributes, Event, Scanner, Tag};
use super::write::{Gap, Writer};

/// What a walk calls for the visible parts of a page, in their order.
pub(super) trait Visit<'p, 'o> {
    /// What is known of an element besides its name; its text and the elements inside get it.
    type Context: Copy + Default;

    /// Returns the context of an element. `parent` is the context of the element around it.
    fn context(
        &mut self,
        parent: Self::Context,
        element: Element,
        attributes: &Attributes<'_>,
    ) -> Self::Context;

    /// What the text is written with.
    fn writer(&mut self) -> &mut Writer<'p, 'o>;

    /// A run of text was written behind the first `begin` bytes, in an element with this context.
    fn wrote(&mut self, _begin: usize, _context: Self::Context) {}

    /// What separates the text before from the text after.
    fn separate(&mut self, gap: Gap) {
        self.writer().separate(gap);
    }

    /// From here on text is in a link to this address, or in none.
    fn link(&mut self, _address: Option<&[u8]>) {}

    /// The title of the page, with character references.
    fn title(&mut self, _title: &'p str) {}

    /// An element that has no content of interest, such as a picture, in an element with this context.
    fn empty(&mut self, _element: Element, _context: Self::Context) {}

    /// Forgets all: the walk begins again, and what was written is removed.
    fn restart(&mut self) {}
}

/// How many elements that are never closed are found before all hidden elements are shown.
const MOST_UNCLOSED: usize = 3;

/// The least bytes of hidden text that may be shown.
const LEAST_HIDDEN: usize = 400;

/// Hidden elements that are shown nevertheless: those that are never closed, which is the page's mistake, because without them
/// the rest of the page would be lost; and those that a script shows, which are most of the page.
#[derive(Debug, Default)]
struct Shown {
    /// Where the unclosed ones begin.
    unclosed: Vec<usize>,
    everything: bool,
    /// Whether the attributes of elements hide nothing.
    veiled: bool,
}

impl Shown {
    /// The sight of an element, inside of an element with the sight `outer`.
    fn sight(&self, outer: Sight, tag: Tag, attributes: &Attributes<'_>) -> Sight {
        let sight = outer.inside(tag.element, attributes);
        if sight == outer || self.everything || self.unclosed.contains(&tag.at) {
            return outer;
        }
        match sight {
            Sight::Invisible | Sight::Veiled if self.veiled => outer,
            _ => sight,
        }
    }

    fn add(&mut self, at: usize) {
        if self.unclosed.len() < MOST_UNCLOSED {
            self.unclosed.push(at)
        } else {
            self.everything = true
        }
    }
}

/// Walks over a page. Begins again if a hidden element is never closed, or if attributes hide most of the page, a few times at
/// most, so the time stays linear.
pub(super) fn walk<'p, 'o>(page: &'p str, visitor: &mut impl Visit<'p, 'o>) {
    let mut shown = Shown::default();
    while !walk_once(page, &mut shown, visitor) {
        visitor.writer().restart();
        visitor.restart();
    }
}

/// Walks over a page. Returns false if the walk must begin again, with more elements `shown`.
fn walk_once<'p, 'o, V: Visit<'p, 'o>>(page: &'p str, shown: &mut Shown, visitor: &mut V) -> bool {
    let (mut visible, mut veiled) = (0, 0);
    let mut scanner = Scanner::new(page);
    let mut open = OpenElements::<V::Context>::new();
    while let Some(event) = scanner.next_event() {
        match event {
            Event::Text(text) | Event::RawText(text) => match open.sight() {
                Sight::Shown => {
                    visible += text.trim_ascii().len();
                    let begin = visitor.writer().written().len();
                    if matches!(event, Event::Text(_)) {
                        visitor.writer().text(text);
                    } else {
                        visitor.writer().raw_text(text);
                    }
                    visitor.wrote(begin, open.context());
                }
                Sight::Invisible | Sight::Veiled => veiled += text.trim_ascii().len(),
                Sight::Never => {}
            },
            Event::Start(tag) => {
                let opens = open.make_way(tag);
                let is_foreign = open.is_foreign();
                let attributes = scanner.attributes();
                let outer = open.sight();
                if outer.has_place() {
                    visitor.separate(tag.element.gap());
                    if tag.element == Element::A {
                        visitor.link(attributes.href);
                    }
                }
                if opens {
                    let sight = shown.sight(outer, tag, attributes);
                    let mut context = open.context();
                    // One that is not seen may have elements that are.
                    if sight.has_place() {
                        context = visitor.context(context, tag.element, attributes);
                    }
                    open.open(tag, sight, context);
                } else if outer == Sight::Shown {
                    visitor.empty(tag.element, open.context());
                }
                if !is_foreign {
                    let left_out = scanner.read_raw_text(tag.element);
                    if tag.element == Element::Title {
                        visitor.title(left_out);
                    }
                }
            }
            Event::End(tag) => {
                open.close(tag);
                if open.sight().has_place() {
                    visitor.separate(tag.element.gap());
                    if tag.element == Element::A {
                        visitor.link(None);
                    }
                }
            }
        }
    }
    if let Some(unclosed) = open.hidden_since() {
        shown.add(unclosed);
        return false;
    }
    let is_most = veiled >= LEAST_HIDDEN && veiled >= 2 * visible;
    shown.veiled |= is_most;
    !is_most
}
