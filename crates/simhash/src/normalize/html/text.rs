//! The visible text of a page.

use super::blocks::{Visit, walk};
use super::elements::Element;
use super::scan::Attributes;
use super::write::Writer;

/// Appends the visible text of a page to `out`: blocks, and lines that end at `<br>`, separated by newlines, with other
/// white space collapsed to single spaces.
pub(in super::super) fn visible_text(page: &str, out: &mut String) {
    walk(page, &mut Writer::new(out));
}

impl<'p, 'o> Visit<'p, 'o> for Writer<'p, 'o> {
    type Context = ();

    fn context(&mut self, (): (), _: Element, _: &Attributes<'_>) {}

    fn writer(&mut self) -> &mut Self {
        self
    }
}
