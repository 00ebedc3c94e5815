//! What the elements around a block say of it: whether it is content or boilerplate, whichever words it has.
//!
//! This decides most blocks of most pages, and it decides them alike on every page of a site. So neither an edit nor
//! another advertisement changes the decision on a block.

use super::containers::Containers;
use super::elements::{BLOCK, BOILERPLATE, CONTAINER, Element, PREFORMATTED, SENTENCES};
use super::names::{COUNTED, Key, Table, key};
use super::scan::Attributes;

/// In an element that is boilerplate by its name or role.
pub(super) const ELEMENT: u8 = 1;
/// In an element whose class or id names boilerplate. Some pages name their frame like this.
pub(super) const CLASS: u8 = 1 << 1;
/// In a `form`. Some pages are one form.
pub(super) const FORM: u8 = 1 << 2;
/// In a `header` outside of `article` and `main`. Inside it is that of the text.
pub(super) const HEADER: u8 = 1 << 3;
/// In `article` or `main`.
pub(super) const CONTENT: u8 = 1 << 4;
/// In `main`.
pub(super) const MAIN: u8 = 1 << 5;

/// What a block stands in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Context {
    /// The bits above.
    regions: u8,
    /// The innermost block around it.
    pub(super) holder: Holder,
    pub(super) container: u32,
    /// The innermost `article` or `main`; 0 outside.
    pub(super) article: u32,
}

/// The kind of the element that a block is the text of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Holder {
    /// A container: its text may be anything.
    #[default]
    Container,
    /// A paragraph, an item of a list, a cell, a quotation.
    Sentences,
    /// Preformatted text, mostly code.
    Preformatted,
    /// A heading of this level.
    Heading(u8),
}

impl Context {
    /// Whether the block is in any of `regions`.
    pub(super) fn is_in(self, regions: u8) -> bool {
        self.regions & regions != 0
    }

    pub(super) fn is_heading(self) -> bool {
        matches!(self.holder, Holder::Heading(_))
    }

    /// The context inside of an element. `containers` are those that began before it.
    pub(super) fn inside(
        self,
        element: Element,
        attributes: &Attributes<'_>,
        containers: &mut Containers,
    ) -> Self {
        // The classes of inline elements are those of syntax highlighting, icons and links.
        if !element.has(BLOCK) {
            return self;
        }
        let mut inside = self;
        inside.holder = match element.heading() {
            Some(level) => Holder::Heading(level),
            None if element.has(PREFORMATTED) => Holder::Preformatted,
            None if element.has(SENTENCES) => Holder::Sentences,
            None => Holder::Container,
        };
        let role = attributes.role.map_or(Role::None, Role::of);
        let is_main = element == Element::Main || role == Role::Main;
        let is_article = is_main || element == Element::Article || role == Role::Article;
        if is_main {
            // The standard: what is dominant on the page, and nothing that other pages repeat.
            inside.regions = CONTENT | MAIN;
        } else if is_article {
            // A form and a header may be around the whole page; a list of related articles has articles in it as well.
            inside.regions = (inside.regions & !(HEADER | FORM)) | CONTENT;
        } else {
            inside.regions |= match element {
                _ if element.has(BOILERPLATE) => ELEMENT,
                Element::Header if !self.is_in(CONTENT) => HEADER,
                Element::Form => FORM,
                _ => 0,
            };
            if role == Role::Boilerplate {
                inside.regions |= ELEMENT;
            }
            if !inside.is_in(ELEMENT | CLASS) {
                let mut names = [attributes.class, attributes.id].into_iter().flatten();
                if names.any(names_boilerplate) {
                    inside.regions |= CLASS;
                }
            }
        }
        if is_article || element.has(CONTAINER) {
            inside.container = containers.add(self.container);
        }
        if is_article {
            inside.article = inside.container;
        }
        inside
    }
}

/// Whether a block is boilerplate by its own name or role. Its class or id may be that of a frame around the text.
pub(super) fn is_boilerplate(element: Element, attributes: &Attributes<'_>) -> bool {
    let is_named = match attributes.role.map_or(Role::None, Role::of) {
        Role::None => element.has(BOILERPLATE),
        Role::Main | Role::Article => false,
        Role::Boilerplate => !matches!(element, Element::Main | Element::Article),
    };
    element.has(BLOCK) && is_named
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    None,
    Main,
    Article,
    Boilerplate,
}

impl Role {
    /// The role that an attribute names; if there are several, by the first.
    fn of(attribute: &[u8]) -> Self {
        #[rustfmt::skip]
        static ROLES: Table<32> = Table::new(&[
            "main", "article", "navigation", "banner", "contentinfo", "complementary", "search", "dialog",
            "alertdialog",
        ]);
        let mut names = attribute.split(u8::is_ascii_whitespace);
        let name = names.find(|name| !name.is_empty()).unwrap_or_default();
        match ROLES.find(key(name)) {
            None => Self::None,
            Some(0) => Self::Main,
            Some(1) => Self::Article,
            Some(_) => Self::Boilerplate,
        }
    }
}

/// Words in the names of classes and ids of boilerplate.
#[rustfmt::skip]
static NAMES: Table<128> = Table::new(&[
    "ad", "ads", "adsense", "advert", "advertisement", "advertising", "adverts", "breadcrumb", "breadcrumbs",
    "comment", "comments", "consent", "cookie", "cookies", "copyright", "disqus", "footer", "gdpr", "lightbox",
    "masthead", "menu", "modal", "nav", "navbar", "navbox", "navigation", "newsletter", "pager", "pagination",
    "popup", "promo", "promotion", "recommended", "related", "share", "sharing", "sidebar", "signup", "skyscraper",
    "social", "sponsor", "sponsored", "subscribe", "toolbar",
]);

/// Words that make a name something else: a state of the page (`menu-open`), its frame (`has-sidebar`,
/// `content-sidebar-wrap`), the subject of a text (`tag-cookie`).
#[rustfmt::skip]
static OTHERWISE: Table<64> = Table::new(&[
    "category", "closed", "collapsed", "disabled", "enabled", "has", "hidden", "layout", "no", "not", "open", "tag",
    "type", "with", "without", "wrap", "wrapper",
]);

/// Whether one of the names in a `class` or `id` attribute has a word of [`NAMES`], and none of [`OTHERWISE`].
/// Words end at every character but letters and digits, and before a capital that follows a small letter or a digit.
fn names_boilerplate(attribute: &[u8]) -> bool {
    let (mut is_boilerplate, mut is_otherwise) = (false, false);
    let (mut word, mut len): (Key, usize) = (0, 0);
    let mut last = b' ';
    // White space ends the last word and the last name.
    for &byte in attribute.iter().chain(b" ") {
        let goes_on = byte.is_ascii_alphanumeric();
        if len > 0 && (!goes_on || (byte.is_ascii_uppercase() && !last.is_ascii_uppercase())) {
            is_boilerplate |= NAMES.find(word).is_some();
            is_otherwise |= OTHERWISE.find(word).is_some();
            (word, len) = (0, 0);
        }
        if goes_on {
            // A longer word is none of ours, and no word of ours has all of these bytes.
            if len < COUNTED {
                word |= Key::from(byte.to_ascii_lowercase()) << (8 * len);
            }
            len += 1;
        } else if byte.is_ascii_whitespace() {
            if is_boilerplate && !is_otherwise {
                return true;
            }
            (is_boilerplate, is_otherwise) = (false, false);
        }
        last = byte;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_boilerplate() {
        for names in [
            "nav",
            "site-nav",
            "mainMenu",
            "cookieBanner",
            "a cookie_consent b",
            "Footer",
            "related-posts",
            "AD",
            "col-md-4 sidebar",
            "comments\nx",
            "gdpr--notice",
            "SOCIAL-links",
            "ad:top",
        ] {
            assert!(names_boilerplate(names.as_bytes()), "{names}");
        }
        for names in [
            "",
            " ",
            "navel",
            "content",
            "sideBar",
            "has-sidebar",
            "menu-open",
            "content-sidebar-wrap",
            "tag-cookie",
            "addNew",
            "NAVBARLeft",
            "breadcrumbsbreadcrumbs",
            "header",
            "shared",
            "readable",
        ] {
            assert!(!names_boilerplate(names.as_bytes()), "{names}");
        }
    }

    /// The context of a text in these elements, each with the values of `role` and `class`.
    fn context(elements: &[(Element, &str, &str)]) -> Context {
        let mut containers = Containers::new();
        elements
            .iter()
            .fold(Context::default(), |context, (element, role, class)| {
                let attributes = Attributes {
                    role: Some(role.as_bytes()),
                    class: Some(class.as_bytes()),
                    ..Attributes::default()
                };
                context.inside(*element, &attributes, &mut containers)
            })
    }

    #[test]
    fn elements_around_a_block_tell_what_it_is() {
        use Element::{Article, Aside, Div, Footer, Form, Header, Li, Main, Nav, P, Span, Ul};
        let plain = |element| (element, "", "");
        for (elements, regions) in [
            (vec![plain(Div), plain(P)], 0),
            (vec![plain(Nav), plain(Ul), plain(Li)], ELEMENT),
            (vec![(Div, "Navigation", "")], ELEMENT),
            (vec![(Div, "presentation", "main-nav"), plain(P)], CLASS),
            (vec![(Span, "", "comment")], 0),
            (vec![plain(Header)], HEADER),
            (vec![plain(Header), plain(Article)], CONTENT),
            (vec![plain(Article), plain(Header)], CONTENT),
            (
                vec![plain(Article), (Header, "banner", "")],
                CONTENT | ELEMENT,
            ),
            (vec![plain(Article), plain(Footer)], CONTENT | ELEMENT),
            (vec![(Article, "", "comment")], CONTENT),
            (vec![(Div, "", "related"), plain(Article)], CONTENT | CLASS),
            (vec![plain(Form), plain(Main)], CONTENT | MAIN),
            (vec![plain(Form), plain(Article)], CONTENT),
            (vec![plain(Article), plain(Form)], CONTENT | FORM),
            (
                vec![(Div, "", "sidebar"), (Div, "main", "nav")],
                CONTENT | MAIN,
            ),
            (
                vec![plain(Main), plain(Article), plain(Aside)],
                CONTENT | MAIN | ELEMENT,
            ),
        ] {
            assert_eq!(context(&elements).regions, regions, "{elements:?}");
        }
        let holder = |elements: &[_]| context(elements).holder;
        assert_eq!(holder(&[plain(Li), plain(Span)]), Holder::Sentences);
        assert_eq!(holder(&[plain(Li), plain(Div)]), Holder::Container);
        assert_eq!(
            holder(&[plain(Div), plain(Element::H2)]),
            Holder::Heading(2)
        );
        let containers = |elements: &[_]| {
            let context = context(elements);
            (context.container, context.article)
        };
        assert_eq!(containers(&[plain(P)]), (0, 0));
        assert_eq!(containers(&[plain(Div), plain(Ul), plain(Li)]), (1, 0));
        assert_eq!(containers(&[plain(Div), plain(Article)]), (2, 2));
        assert_eq!(containers(&[plain(Article), plain(Div)]), (2, 1));
        assert_eq!(
            containers(&[plain(Main), (Li, "article", ""), plain(P)]),
            (2, 2)
        );
    }
}
