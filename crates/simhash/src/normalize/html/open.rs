//! The elements that are open.
//!
//! This is tree construction of the HTML standard without the tree, cut down to what decides where an element ends that
//! is hidden or boilerplate: end tags that may be left out, end tags that close other elements as well, end tags that
//! close nothing. Left out: elements that are opened again by themselves (`<p><b></p>`), text moved out of tables, and tables
//! in paragraphs of pages without a document type.

use super::elements::{
    CLOSES_P, EMPTY, ENDS_FOREIGN, Element, FORMATTING, HEADING, HOLDS_HTML, IMPLIED_END, SCOPE,
    SPECIAL, TABLE_PART,
};
use super::hidden::Sight;
use super::names::Key;
use super::scan::Tag;

/// The most elements that are open at once. Those further inside are taken for text of the innermost; browsers do
/// alike.
pub(super) const MOST: usize = 512;

/// An open element, with what it inherits from those around it.
#[derive(Debug, Clone, Copy)]
struct Entry<C> {
    name: Key,
    element: Element,
    /// `svg` or `math`, if the element is one of SVG or MathML.
    root: Option<Element>,
    /// Whether the content is SVG or MathML.
    is_foreign: bool,
    sight: Sight,
    /// Where in the page the outermost hidden element begins, among this element and those around it.
    hidden_since: Option<usize>,
    context: C,
}

/// The open elements, each with a context of type `C`.
#[derive(Debug)]
pub(super) struct OpenElements<C> {
    entries: Vec<Entry<C>>,
    /// The page, which is never closed.
    page: Entry<C>,
    /// The number of open `p`. Most pages have none most of the time.
    paragraphs: usize,
    /// Whether a `form` began that has no end tag yet. Until then no other begins, even if an element around it has ended.
    has_form: bool,
}

impl<C: Copy + Default> OpenElements<C> {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
            page: Entry {
                name: 0,
                element: Element::Unknown,
                root: None,
                is_foreign: false,
                sight: Sight::Shown,
                hidden_since: None,
                context: C::default(),
            },
            paragraphs: 0,
            has_form: false,
        }
    }

    fn innermost(&self) -> &Entry<C> {
        self.entries.last().unwrap_or(&self.page)
    }

    pub(super) fn context(&self) -> C {
        self.innermost().context
    }

    /// Whether text is shown here.
    pub(super) fn sight(&self) -> Sight {
        self.innermost().sight
    }

    /// Where the outermost hidden element begins, if one is open.
    pub(super) fn hidden_since(&self) -> Option<usize> {
        self.innermost().hidden_since
    }

    /// Whether the content is SVG or MathML here.
    pub(super) fn is_foreign(&self) -> bool {
        self.innermost().is_foreign
    }

    /// Closes what the start tag closes. Returns whether its element will be open.
    pub(super) fn make_way(&mut self, tag: Tag) -> bool {
        let element = tag.element;
        if self.is_foreign() {
            let is_html_font = element == Element::Font && tag.is_html;
            if !element.has(ENDS_FOREIGN) && !is_html_font {
                return !tag.self_closing && (!element.has(EMPTY) || element == Element::Title);
            }
            self.leave_foreign();
        }
        let is_select = |entry: &Entry<C>| entry.element == Element::Select;
        match element {
            Element::Li => self.close_item(&[Element::Li]),
            Element::Dd | Element::Dt => self.close_item(&[Element::Dd, Element::Dt]),
            Element::Button => {
                self.close_to(self.find(|entry| entry.element == element, ends_scope));
            }
            Element::Input => {
                self.close_to(self.find(is_select, ends_scope));
            }
            Element::Rb | Element::Rp | Element::Rt => {
                let ruby = self.find(|entry| entry.element == Element::Ruby, ends_scope);
                if let Some(ruby) = ruby {
                    self.close_implied(ruby + 1);
                }
            }
            // Links are not inside each other, unless there is a block between them.
            Element::A | Element::Nobr => {
                self.close_to(self.find(|entry| entry.element == element, is_special));
            }
            Element::Form => {
                if !self.is_in_template() {
                    if self.has_form {
                        return false;
                    }
                    self.has_form = true;
                }
                // Between the cells of a table a form holds nothing.
                let table = self.find(|entry| entry.element == Element::Table, ends_cells);
                if table.is_some() {
                    return false;
                }
            }
            // Columns end what stands before them in the table.
            Element::Col | Element::Colgroup => {
                self.close_table_parts(Element::Tbody.table_rank());
            }
            // A table in another, but not in its cell or caption, ends that one.
            Element::Table => {
                self.close_to(self.find(|entry| entry.element == element, ends_cells));
            }
            // Such a tag closes the open one and opens none.
            Element::Select if self.close_to(self.find(is_select, ends_scope)) => return false,
            Element::Svg | Element::Math if tag.self_closing => return false,
            _ => {}
        }
        if element.has(CLOSES_P) && self.paragraphs > 0 {
            self.close_to(self.find(is_paragraph, ends_scope_of_p));
        }
        if element.has(HEADING) && self.innermost().element.has(HEADING) {
            self.truncate(self.entries.len() - 1);
        }
        if element.has(TABLE_PART) {
            return self.close_table_parts(element.table_rank());
        }
        !element.has(EMPTY)
    }

    /// Opens the element of a start tag, after [`Self::make_way`].
    pub(super) fn open(&mut self, tag: Tag, sight: Sight, context: C) {
        if self.entries.len() == MOST {
            return;
        }
        let parent = self.innermost();
        // In SVG and MathML, `svg` and `math` are elements like others, but for `svg` in an annotation.
        let is_annotation = parent.element == Element::AnnotationXml;
        let root = match tag.element {
            Element::Svg if is_annotation => Some(Element::Svg),
            _ if parent.is_foreign => parent.root,
            Element::Svg | Element::Math => Some(tag.element),
            _ => None,
        };
        let holds_html = holds_html(tag, root);
        let is_foreign = root.is_some() && !holds_html;
        let since = (sight != Sight::Shown).then_some(tag.at);
        let entry = Entry {
            name: tag.name,
            // HTML names mean nothing in SVG and MathML, nor their names in HTML.
            element: match tag.element {
                Element::Title if holds_html => Element::Desc,
                Element::AnnotationXml if root == Some(Element::Math) => tag.element,
                element if holds_html => element,
                element if parent.is_foreign || element.has(HOLDS_HTML) => Element::Unknown,
                element => element,
            },
            root,
            is_foreign,
            sight,
            hidden_since: parent.hidden_since.or(since),
            context,
        };
        self.paragraphs += usize::from(tag.element == Element::P);
        self.entries.push(entry);
    }

    /// Closes what the end tag closes.
    pub(super) fn close(&mut self, tag: Tag) {
        let element = tag.element;
        if self.is_foreign() && matches!(element, Element::P | Element::Br) {
            self.leave_foreign();
        }
        let foreign = self
            .entries
            .iter()
            .rposition(|entry| entry.name == tag.name || entry.root.is_none());
        if let Some(at) = foreign.filter(|&at| self.entries[at].root.is_some()) {
            self.truncate(at);
            return;
        }
        if element.has(EMPTY) {
            return;
        }
        let has_name = |entry: &Entry<C>| entry.name == tag.name;
        let found = match element {
            Element::P => self.find(has_name, ends_scope_of_p),
            Element::Li => self.find(has_name, |element| {
                ends_scope(element) || matches!(element, Element::Ul | Element::Ol)
            }),
            // Nothing in it keeps it open.
            Element::Template => self.find(has_name, |_| false),
            // The end tag of any heading closes any other.
            _ if element.has(HEADING) => self.find(|entry| entry.element.has(HEADING), ends_scope),
            _ if element.has(TABLE_PART) || element == Element::Table => {
                self.find(has_name, ends_table)
            }
            _ if element.has(SPECIAL) || element == Element::Dialog => {
                self.find(has_name, ends_scope)
            }
            _ => self.find(has_name, is_special),
        };
        let is_form = element == Element::Form && !self.is_in_template();
        if is_form {
            let is_foreign = found.is_some_and(|at| self.entries[at].is_foreign);
            // The first end tag is that of the form, even if it cannot close it.
            if !is_foreign && !std::mem::take(&mut self.has_form) {
                return;
            }
        }
        match found {
            // A form ends alone: what was opened in it and not closed stays open, but for paragraphs and items.
            Some(at) if is_form => {
                self.close_implied(at + 1);
                self.entries.remove(at);
            }
            None if element.has(FORMATTING) => {
                if let Some(at) = self.find(has_name, ends_scope) {
                    self.end_within_blocks(at);
                }
            }
            found => {
                self.close_to(found);
            }
        }
    }

    /// Closes the formatting element at the position alone: what it hides is shown from here on in the blocks inside, which go on.
    fn end_within_blocks(&mut self, at: usize) {
        let closed = self.entries.remove(at);
        let outer = at.checked_sub(1).map_or(self.page, |at| self.entries[at]);
        for entry in &mut self.entries[at..] {
            if (entry.sight, entry.hidden_since) != (closed.sight, closed.hidden_since) {
                break;
            }
            (entry.sight, entry.hidden_since) = (outer.sight, outer.hidden_since);
        }
    }

    /// Whether a template is open, whose forms are apart from those of the page.
    fn is_in_template(&self) -> bool {
        self.find(|entry| entry.element == Element::Template, |_| false)
            .is_some()
    }

    /// The position of the innermost element that is `wanted`, unless there is one that `ends` the search further
    /// inside.
    fn find(
        &self,
        wanted: impl Fn(&Entry<C>) -> bool,
        ends: impl Fn(Element) -> bool,
    ) -> Option<usize> {
        for (at, entry) in self.entries.iter().enumerate().rev() {
            if wanted(entry) {
                return Some(at);
            }
            if ends(entry.element) {
                return None;
            }
        }
        None
    }

    /// Closes the element at the position, with all inside. Returns whether there is a position.
    fn close_to(&mut self, at: Option<usize>) -> bool {
        if let Some(at) = at {
            self.truncate(at);
        }
        at.is_some()
    }

    /// Closes SVG and MathML, up to the innermost element of HTML.
    fn leave_foreign(&mut self) {
        while self.is_foreign() {
            self.truncate(self.entries.len() - 1);
        }
    }

    /// Closes the innermost elements whose end tags may be left out, down to the first `least` elements.
    fn close_implied(&mut self, least: usize) {
        while self.entries.len() > least && self.innermost().element.has(IMPLIED_END) {
            self.truncate(self.entries.len() - 1);
        }
    }

    fn truncate(&mut self, len: usize) {
        if self.paragraphs > 0 {
            self.paragraphs -= self.entries[len..]
                .iter()
                .filter(|e| is_paragraph(e))
                .count();
        }
        self.entries.truncate(len);
    }

    /// Closes the item of a list before the next one.
    fn close_item(&mut self, items: &[Element]) {
        let found = self.find(
            |entry| items.contains(&entry.element),
            |element| {
                element.has(SPECIAL)
                    && !matches!(element, Element::Address | Element::Div | Element::P)
            },
        );
        self.close_to(found);
    }

    /// Closes what is open in the innermost table, but for the group and the row that a part of this rank belongs to.
    /// Returns whether there is a table.
    fn close_table_parts(&mut self, rank: u8) -> bool {
        let Some(table) = self.find(|entry| ends_table(entry.element), |_| false) else {
            return false;
        };
        let inside = self.entries[table + 1..].iter();
        let mut inside = inside.map(|entry| entry.element);
        // In a table, misplaced elements (rank 0) close, too.
        let least = u8::from(self.entries[table].element != Element::Table);
        let outermost = inside.position(|found| {
            found == Element::Caption || (least..=rank).contains(&found.table_rank())
        });
        self.close_to(outermost.map(|at| table + 1 + at));
        true
    }
}

/// Whether the content of an element of SVG or MathML is HTML.
fn holds_html(tag: Tag, root: Option<Element>) -> bool {
    match (root, tag.element) {
        (Some(Element::Svg), Element::ForeignObject | Element::Desc | Element::Title) => true,
        (Some(Element::Math), Element::AnnotationXml) => tag.is_html,
        (Some(Element::Math), element) => matches!(
            element,
            Element::Mi | Element::Mo | Element::Mn | Element::Ms | Element::Mtext
        ),
        _ => false,
    }
}

fn is_paragraph<C>(entry: &Entry<C>) -> bool {
    entry.element == Element::P
}

fn is_special(element: Element) -> bool {
    element.has(SPECIAL)
}

fn ends_scope(element: Element) -> bool {
    element.has(SCOPE)
}

fn ends_scope_of_p(element: Element) -> bool {
    element.has(SCOPE) || element == Element::Button
}

/// Whether what is inside is not between the cells of a table around it.
fn ends_cells(element: Element) -> bool {
    element.table_rank() == 1 || matches!(element, Element::Caption | Element::Template)
}

fn ends_table(element: Element) -> bool {
    matches!(element, Element::Table | Element::Template)
}

#[cfg(test)]
mod tests {
    use super::super::scan::{Event, Scanner};
    use super::*;

    /// The names of the elements that are open at the end of a page.
    fn open_at_the_end(page: &str) -> String {
        let mut open = OpenElements::<()>::new();
        let mut scanner = Scanner::new(page);
        while let Some(event) = scanner.next_event() {
            match event {
                Event::Start(tag) => {
                    if open.make_way(tag) {
                        open.open(tag, Sight::Shown, ());
                    }
                }
                Event::End(tag) => open.close(tag),
                Event::Text(_) | Event::RawText(_) => {}
            }
        }
        let paragraphs = open.entries.iter().filter(|e| is_paragraph(e)).count();
        assert_eq!(open.paragraphs, paragraphs);
        let names = open.entries.iter().map(|entry| entry.element.name());
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn elements_close_as_in_the_standard() {
        for (page, expected) in [
            ("<html><body><div><p>a<br><img>b", "div p"),
            ("<div><p>a</div>", ""),
            ("<p>a<div>b", "div"),
            ("<p>a<p>b", "p"),
            ("<p><button><p>", "p button p"),
            ("<p><table><tr><td><p>", "table tr td p"),
            ("<ul><li>a<li>b<ul><li>c", "ul li ul li"),
            ("<ul><li><div>a<li>b", "ul li"),
            ("<ul><li><ul></li>", "ul li ul"),
            ("<dl><dt>a<dd>b<dt>c", "dl dt"),
            ("<h1>a<h2>b", "h2"),
            ("<h1>a</h2>", ""),
            ("<table><tr><td>a<td>b<tr><td>c<tbody>", "table tbody"),
            (
                "<table><tbody><tr><td><table><tr><td>a</table>",
                "table tbody tr td",
            ),
            ("<div><table><tr><td></div>", "div table tr td"),
            ("<td>a<tr>b", ""),
            ("<table><div>a<tr><p>b<td>", "table tr td"),
            ("<table><caption>a<td>b", "table td"),
            ("<table><tr><table><tr>", "table tr"),
            ("<template><table><tr><td></template>", ""),
            ("<table><tr><td><b></table>", ""),
            ("<table><tr><td><b>a<col>b", "table"),
            ("<table><caption>a<colgroup>b", "table"),
            ("<div><col>a", "div"),
            // Inline elements.
            ("<b><i></b>", ""),
            ("<a>a<span>b<a>c", "a"),
            ("<a>a<div>b<a>c", "a div a"),
            ("<nobr>a<nobr>b", "nobr"),
            ("<image>a</image>", ""),
            ("<span><div></span>", "span div"),
            ("<x-a><x-b></x-a>", ""),
            ("<b><p></b>", "p"),
            ("<b><i><p></b></i>", "p"),
            ("<b><table><tr><td></b>", "b table tr td"),
            ("</b></div></p></x-y>", ""),
            // Forms and controls.
            ("<form><div></form>", "div"),
            ("<form><li>a</form>", ""),
            ("<form><div><form>", "form div"),
            ("<div><form></div><form>", ""),
            ("<form></form><form>", "form"),
            ("<form><template><form>", "form template form"),
            ("<template><form><div></form>", "template"),
            ("<form><object></form></object></form>", "form"),
            ("<table><form><b>a", "table b"),
            ("<table><tr><td><form>", "table tr td form"),
            ("<div><select><option>a</div>", "div select"),
            ("<b><dialog></b>", ""),
            ("<ruby><rp>(<rt>a<rp>)</ruby>", ""),
            ("<select><option>a<option>b<select>", ""),
            ("<select><option>a<input>", ""),
            ("<button>a<button>b", "button"),
            // SVG and MathML.
            ("<svg/><math/>", ""),
            ("<svg><path/><g><div/>", "div"),
            ("<svg><g><circle><p>", "p"),
            ("<svg><font><g>", "svg unknown unknown"),
            ("<svg><font x=y color>", "font"),
            ("<svg><FONT SIZE=1>", "font"),
            ("<math><font face=x>", "font"),
            ("<svg><foreignObject><div><p>", "svg foreignobject div p"),
            ("<svg><g></svg>", ""),
            ("<div><svg><g></div>", ""),
            ("<svg><section></svg>", ""),
            ("<svg><g></p>", ""),
            ("<math><mtext><b></b></mtext></math>", ""),
            ("<math><mtext><b>", "math mtext b"),
            ("<svg><mtext><b>", "b"),
            ("<math><foreignObject><g>", "math unknown unknown"),
            ("<math><desc><p>", "p"),
            ("<svg><title><p>", "svg desc p"),
            ("<svg><title></svg>", ""),
            ("<svg><desc></svg>", ""),
            ("<svg><desc><p></svg>", "svg desc p"),
            ("<math><annotation-xml><mi>", "math annotation-xml mi"),
            ("<math><annotation-xml><p>", "p"),
            (
                "<math><annotation-xml encoding=Text/HTML><p>",
                "math annotation-xml p",
            ),
            (
                "<math><annotation-xml><svg><desc><p>",
                "math annotation-xml unknown desc p",
            ),
            ("<math><annotation-xml></math>", ""),
            (
                "<div><math><annotation-xml></div>",
                "div math annotation-xml",
            ),
        ] {
            assert_eq!(open_at_the_end(page), expected, "{page}");
        }
    }

    #[test]
    fn few_elements_are_open_at_once() {
        let mut open = OpenElements::<()>::new();
        let page = "<p><b><div>".repeat(MOST);
        let mut scanner = Scanner::new(&page);
        while let Some(Event::Start(tag)) = scanner.next_event() {
            if open.make_way(tag) {
                open.open(tag, Sight::Shown, ());
            }
        }
        assert_eq!(open.entries.len(), MOST);
    }
}
