//! The visible text of a page.

use super::blocks::{Visit, walk};
use super::elements::Element;
use super::scan::Attributes;
use super::write::{Gap, Writer};

/// Appends the visible text of a page to `out`: blocks, and lines that end at `<br>`, separated by newlines, with other
/// white space collapsed to single spaces.
pub(in super::super) fn visible_text(page: &str, out: &mut String) {
    let mut visitor = VisibleText {
        writer: Writer::new(out),
    };
    walk(page, &mut visitor);
}

struct VisibleText<'p, 'o> {
    writer: Writer<'p, 'o>,
}

impl<'p> Visit<'p> for VisibleText<'p, '_> {
    type Context = ();

    fn context(&mut self, (): (), _: Element, _: &Attributes<'_>) {}

    fn text(&mut self, text: &'p str, (): ()) {
        self.writer.text(text);
    }

    fn raw_text(&mut self, text: &'p str, (): ()) {
        self.writer.raw_text(text);
    }

    fn separate(&mut self, gap: Gap) {
        self.writer.separate(gap);
    }

    fn link(&mut self, _: Option<&[u8]>) {}

    fn restart(&mut self) {
        self.writer.restart();
    }
}
