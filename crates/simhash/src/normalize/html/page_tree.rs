//! The visible elements of a page as a tree of dom_query, in which dom_smoothie looks for the article.
//!
//! The library would parse the page itself, into a tree that can be as deep as the page is long, or much larger than the
//! page. It calls itself for each level of the tree, reads the text of most elements several times, and panics at some
//! addresses of videos. So the tree is made here, of what [`super::blocks`] shows: with a bounded depth and size, and with
//! no attributes but those by which the library tells content from the rest.

use dom_query::{Document, NodeId, NodeRef};
use memchr::memchr2_iter;

use super::blocks::{Visit, walk};
use super::elements::{Element, HIDDEN};
use super::scan::Attributes;
use super::write::Writer;

/// The most elements that are inside each other. Those further inside are taken for text of the innermost.
const MOST_DEPTH: u32 = 128;

/// The most elements and texts. The library holds up to three trees at once, of some 150 bytes for each.
const MOST_NODES: usize = 200_000;

/// The most work, in bytes of text times the number of elements around it. An element or a text costs the library as
/// much as [`NODE_WORK`] bytes.
const MOST_WORK: u64 = 1 << 25;
const NODE_WORK: u64 = 16;
/// At each `&`, and at each first byte of U+0080 to U+00BF, the serializer of the tree may search the rest of the text. That is so
/// fast that this many bytes cost as much as one byte of text: the most take about a second.
const SEARCHED_PER_BYTE: u64 = 2048;

/// The visible elements of a page and their text, in the body of a document. `None` if they are too many.
pub(super) fn page_tree(page: &str) -> Option<Document> {
    let mut text = String::with_capacity(page.len() / 4);
    let mut tree = PageTree::new(Writer::new(&mut text));
    walk(page, &mut tree);
    tree.is_small().then_some(tree.document)
}

/// Makes the tree of a page.
struct PageTree<'p, 'o> {
    /// Collapses white space: each text of the tree begins with what separates it from the text before.
    writer: Writer<'p, 'o>,
    document: Document,
    body: NodeId,
    /// The number of elements and texts. If the page is too large, some of them are not in the tree.
    nodes: usize,
    /// See [`MOST_WORK`].
    work: u64,
}

/// Where in the tree an element or a text belongs.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// The element around it; `None` is the body.
    parent: Option<NodeId>,
    /// The number of elements around it, without the body.
    depth: u32,
    is_in_link: bool,
}

impl<'p, 'o> PageTree<'p, 'o> {
    fn new(writer: Writer<'p, 'o>) -> Self {
        let (document, body) = empty_page();
        Self {
            writer,
            document,
            body,
            nodes: 0,
            work: 0,
        }
    }

    fn is_small(&self) -> bool {
        self.nodes <= MOST_NODES && self.work <= MOST_WORK
    }

    /// Counts an element, or a text of `len` bytes. Returns whether the page is still small enough.
    fn count(&mut self, len: usize, place: Place) -> bool {
        self.nodes += 1;
        self.work += (NODE_WORK + len as u64) * u64::from(place.depth + 1);
        self.is_small()
    }

    /// Counts the searches in the text that was written after the first `begin` bytes.
    fn count_searches(&mut self, begin: usize) {
        let text = &self.writer.written().as_bytes()[begin..];
        let searches = memchr2_iter(b'&', 0xc2, text).count() as u64;
        self.work += searches * text.len() as u64 / SEARCHED_PER_BYTE;
    }

    /// Appends an element, unless the page is too large.
    fn append_element(&mut self, name: &str, place: Place) -> Option<NodeRef<'_>> {
        if !self.count(0, place) {
            return None;
        }
        let tree = &self.document.tree;
        let element = tree.new_element(name);
        tree.append_child_of(&place.parent.unwrap_or(self.body), &element.id);
        Some(element)
    }
}

/// A document without content, and its body.
fn empty_page() -> (Document, NodeId) {
    let document = Document::default();
    let tree = &document.tree;
    let [html, body] = ["html", "body"].map(|name| tree.new_element(name).id);
    tree.append_child_of(&tree.root_id(), &html);
    tree.append_child_of(&html, &body);
    (document, body)
}

fn name(element: Element) -> &'static str {
    match element {
        // The library would take the first for the title of the page, and leave it out.
        Element::H1 => "h2",
        // The library writes their content without escaping it.
        Element::Listing | Element::Plaintext | Element::Xmp => "pre",
        // Hidden by their kind, but shown here: never closed, or a dialog that is open or displayed. The article is HTML
        // again, where they would be hidden.
        Element::Dialog | Element::Title => "div",
        _ if element.has(HIDDEN) => "div",
        _ => element.name(),
    }
}

impl<'p, 'o> Visit<'p, 'o> for PageTree<'p, 'o> {
    type Context = Place;

    fn context(&mut self, parent: Place, element: Element, attributes: &Attributes<'_>) -> Place {
        let is_link = element == Element::A;
        // A link in a link is a part of it. The library counts the text of each.
        if parent.depth == MOST_DEPTH || (is_link && parent.is_in_link) {
            return parent;
        }
        let Some(appended) = self.append_element(name(element), parent) else {
            return parent;
        };
        for (name, value) in [
            ("class", attributes.class),
            ("id", attributes.id),
            ("role", attributes.role),
        ] {
            if let Some(value) = value.and_then(|value| std::str::from_utf8(value).ok()) {
                appended.set_attr(name, value);
            }
        }
        if let (true, Some(href)) = (is_link, attributes.href) {
            // Links within the page count less.
            let is_within = href.len() > 1 && href.starts_with(b"#");
            appended.set_attr("href", if is_within { "#here" } else { "there" });
        }
        Place {
            parent: Some(appended.id),
            depth: parent.depth + 1,
            is_in_link: parent.is_in_link || is_link,
        }
    }

    fn writer(&mut self) -> &mut Writer<'p, 'o> {
        &mut self.writer
    }

    /// Appends the run of text, unless the page is too large.
    fn wrote(&mut self, begin: usize, place: Place) {
        let len = self.writer.written().len() - begin;
        self.count_searches(begin);
        if len == 0 || !self.count(len, place) {
            return;
        }
        let tree = &self.document.tree;
        let text = tree.new_text(&self.writer.written()[begin..]);
        tree.append_child_of(&place.parent.unwrap_or(self.body), &text.id);
    }

    fn empty(&mut self, element: Element, place: Place) {
        let name = match element {
            Element::Br | Element::Hr | Element::Img | Element::Input => element.name(),
            // Browsers take it for one.
            Element::Image => Element::Img.name(),
            _ => return,
        };
        let Some(appended) = self.append_element(name, place) else {
            return;
        };
        if name == Element::Img.name() {
            // The library leaves out pictures without an address.
            appended.set_attr("src", "");
        }
    }

    fn restart(&mut self) {
        (self.document, self.body) = empty_page();
        self.nodes = 0;
        self.work = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body of a page's tree as HTML.
    fn body(page: &str) -> String {
        let document = page_tree(page).expect("the page is small");
        let body = document.body().expect("is always there");
        body.inner_html().to_string()
    }

    #[test]
    fn trees_of_pages() {
        for (page, expected) in [
            ("", ""),
            ("one <b> two</b>", "one<b> two</b>"),
            (
                "<title>T</title><p>one<p class=a id=b role=c style=d onclick=e>two&amp;",
                "<p>one</p><p class=\"a\" id=\"b\" role=\"c\">\ntwo&amp;</p>",
            ),
            (
                "<a href=x>1</a><a href='#x'>2</a><a href='#'>3</a><a name=x>4</a>",
                "<a href=\"there\">1</a><a href=\"#here\">2</a><a href=\"there\">3</a><a>4</a>",
            ),
            (
                "<a href=x>1<b><a href=y>2</a></b></a><a href=x>3<p><a href=y>4</a></p></a>",
                "<a href=\"there\">1<b></b></a><a href=\"there\">2</a><a href=\"there\">3<p>\n4</p></a>",
            ),
            (
                "1<br>2<hr><img src=x>3<input><embed><wbr>4",
                "1<br>\n2<hr><img src=\"\">\n3<input> 4",
            ),
            ("1<image src=x>2", "1<img src=\"\"> 2"),
            (
                "<h1>1</h1><xmp><b></xmp><x-y>2</x-y><textarea>&lt;</textarea>",
                "<h2>1</h2><pre>\n&lt;b&gt;</pre><unknown>\n2</unknown><textarea>\n&lt;</textarea>",
            ),
            // What is hidden, and what is hidden but not closed.
            ("1<div hidden>2</div>3<svg><g></svg>4", "1\n3 4"),
            ("<object>1<p>2", "<div>1<p>\n2</p></div>"),
            ("<dialog open>1</dialog>", "<div>1</div>"),
            (
                "<ul style='visibility:hidden'>1<li style='visibility:visible'>2</ul>",
                "<ul><li>2</li></ul>",
            ),
        ] {
            assert_eq!(body(page), expected, "{page}");
        }
    }

    #[test]
    fn trees_are_bounded() {
        let most = MOST_DEPTH as usize;
        let deep = |depth: usize| format!("{}one<p>two", "<div>".repeat(depth));
        let expected = |inner: &str| {
            let (open, close) = ("<div>".repeat(most - 1), "</div>".repeat(most - 1));
            format!("{open}{inner}{close}")
        };
        assert_eq!(body(&deep(most - 1)), expected("one<p>\ntwo</p>"));
        assert_eq!(body(&deep(most)), expected("<div>one\ntwo</div>"));
        assert_eq!(body(&deep(400)), expected("<div>one\ntwo</div>"));

        assert!(page_tree(&"<br>".repeat(MOST_NODES)).is_some());
        assert!(page_tree(&"<br>".repeat(MOST_NODES + 1)).is_none());
        // Each element around a text adds the same work again.
        let len = (MOST_WORK / 2 - 2 * NODE_WORK) as usize;
        assert!(page_tree(&format!("<p>{}", "a".repeat(len))).is_some());
        assert!(page_tree(&format!("<p><b>{}", "a".repeat(len))).is_none());
    }
}
