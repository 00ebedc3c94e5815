//! The elements of HTML, and what the text of a page depends on in each of them.

use super::names::{Key, Table};
use super::write::Gap;

/// Stands on lines of its own.
pub(super) const BLOCK: u32 = 1;
/// Stands in a line, and separates the words at its sides: a picture, a control.
pub(super) const WORD: u32 = 1 << 1;
/// Has no content of interest or none at all, so it is never open.
pub(super) const EMPTY: u32 = 1 << 2;
/// "Special" in the standard: an end tag of another inline element does not close it.
pub(super) const SPECIAL: u32 = 1 << 3;
/// Its start tag closes an open `p`.
pub(super) const CLOSES_P: u32 = 1 << 4;
/// End tags inside do not close elements outside ("scope" in the standard).
pub(super) const SCOPE: u32 = 1 << 5;
/// A part of a table: a cell, a row, a group of rows, the caption.
pub(super) const TABLE_PART: u32 = 1 << 6;
/// Is not shown, with all that it contains.
pub(super) const HIDDEN: u32 = 1 << 7;
/// Its start tag ends SVG and MathML around it. So does that of some `font`s.
pub(super) const ENDS_FOREIGN: u32 = 1 << 8;
pub(super) const HEADING: u32 = 1 << 9;
/// Its content is a sentence or more of the author, even if it is short.
pub(super) const SENTENCES: u32 = 1 << 10;
/// Groups blocks that belong together.
pub(super) const CONTAINER: u32 = 1 << 11;
/// Its content is text with line breaks and indents of its own: code, mostly.
pub(super) const PREFORMATTED: u32 = 1 << 12;
/// Is of SVG or MathML, and its content is HTML.
pub(super) const HOLDS_HTML: u32 = 1 << 13;
/// An end tag closes it within the blocks that began in it ("formatting" in the standard).
pub(super) const FORMATTING: u32 = 1 << 14;
/// Its end tag may be left out before other tags ("implied end tags" in the standard).
pub(super) const IMPLIED_END: u32 = 1 << 15;
/// Is boilerplate by its name.
pub(super) const BOILERPLATE: u32 = 1 << 16;

/// A block as the standard treats most of them.
const PLAIN: u32 = BLOCK | SPECIAL | CLOSES_P;
/// The same for the elements that end foreign content.
const OLD: u32 = PLAIN | ENDS_FOREIGN;
/// An element of SVG or MathML whose content is HTML.
const HOLDER: u32 = WORD | SPECIAL | SCOPE | HOLDS_HTML;
/// A formatting element that ends foreign content.
const STYLE: u32 = FORMATTING | ENDS_FOREIGN;
/// An item or a paragraph.
const ITEM: u32 = OLD | SENTENCES | IMPLIED_END;

macro_rules! elements {
    ($($element:ident $name:literal $traits:expr,)*) => {
        /// An element that this module knows, or any other.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Element {
            $($element,)*
            Unknown,
        }

        const ELEMENTS: &[Element] = &[$(Element::$element),*];
        const NAMES: &[&str] = &[$($name),*];
        // The last is of unknown elements. What they are for is unknown as well, so words at their sides stay apart.
        static TRAITS: [u32; ELEMENTS.len() + 1] = [$($traits,)* WORD];
    };
}

elements! {
    // Inline: words go on at their tags.
    A "a" FORMATTING, Abbr "abbr" 0, Acronym "acronym" 0, B "b" STYLE, Bdi "bdi" 0, Bdo "bdo" 0, Big "big" STYLE, Cite "cite" 0,
    Code "code" STYLE, Data "data" 0, Del "del" 0, Dfn "dfn" 0, Em "em" STYLE, Font "font" FORMATTING, I "i" STYLE, Ins "ins" 0,
    Kbd "kbd" 0, Label "label" 0, Mark "mark" 0, Nobr "nobr" STYLE, Output "output" 0, Q "q" 0, Rb "rb" IMPLIED_END,
    Rp "rp" HIDDEN | IMPLIED_END, Rt "rt" IMPLIED_END, Ruby "ruby" ENDS_FOREIGN, S "s" STYLE, Samp "samp" 0, Slot "slot" 0,
    Small "small" STYLE, Span "span" ENDS_FOREIGN, Strike "strike" STYLE, Strong "strong" STYLE, Sub "sub" ENDS_FOREIGN,
    Sup "sup" ENDS_FOREIGN, Time "time" 0, Tt "tt" STYLE, U "u" STYLE, Var "var" ENDS_FOREIGN,

    // Without visible content, and without a place in the line. The content of some is raw text, which is left out.
    Wbr "wbr" EMPTY, Meta "meta" EMPTY | ENDS_FOREIGN, Link "link" EMPTY, Base "base" EMPTY, Basefont "basefont" EMPTY,
    Bgsound "bgsound" EMPTY, Param "param" EMPTY, Source "source" EMPTY, Track "track" EMPTY, Area "area" EMPTY,
    Col "col" EMPTY, Colgroup "colgroup" EMPTY, Script "script" EMPTY, Style "style" EMPTY, Noscript "noscript" EMPTY,
    Template "template" HIDDEN | SPECIAL | SCOPE, Datalist "datalist" HIDDEN,

    // Words end at their tags. Browsers take an `image` outside of SVG for an `img`.
    Img "img" EMPTY | WORD | ENDS_FOREIGN, Image "image" EMPTY | WORD, Input "input" EMPTY | WORD, Keygen "keygen" EMPTY | WORD,
    Embed "embed" EMPTY | WORD | ENDS_FOREIGN, Iframe "iframe" EMPTY | WORD, Noembed "noembed" EMPTY | WORD,
    Noframes "noframes" EMPTY | WORD, Button "button" WORD | SPECIAL, Select "select" WORD | SPECIAL | SCOPE | HIDDEN,
    Object "object" WORD | SPECIAL | SCOPE | HIDDEN, Applet "applet" WORD | SPECIAL | SCOPE | HIDDEN,
    Video "video" WORD | HIDDEN, Audio "audio" WORD | HIDDEN, Canvas "canvas" WORD | HIDDEN,
    // Browsers draw a bar instead.
    Meter "meter" WORD | HIDDEN, Progress "progress" WORD | HIDDEN,
    // The labels of a drawing change with its data, and its title repeats what stands beside it.
    Svg "svg" WORD | HIDDEN,
    // Pages write one formula as MathML, as TeX or as an image, and its letters say little.
    Math "math" WORD | HIDDEN,
    ForeignObject "foreignobject" HOLDER, Desc "desc" HOLDER, Mi "mi" HOLDER, Mo "mo" HOLDER, Mn "mn" HOLDER, Ms "ms" HOLDER,
    Mtext "mtext" HOLDER, AnnotationXml "annotation-xml" HOLDER,

    // Lines end at their tags.
    Br "br" EMPTY | ENDS_FOREIGN, Hr "hr" EMPTY | OLD, Html "html" EMPTY | BLOCK, Head "head" EMPTY | BLOCK | ENDS_FOREIGN,
    Body "body" EMPTY | BLOCK | ENDS_FOREIGN, Title "title" EMPTY | BLOCK, Frameset "frameset" EMPTY | BLOCK,
    Frame "frame" EMPTY | BLOCK, Option "option" EMPTY | BLOCK, Optgroup "optgroup" EMPTY | BLOCK,
    H1 "h1" OLD | HEADING, H2 "h2" OLD | HEADING, H3 "h3" OLD | HEADING, H4 "h4" OLD | HEADING, H5 "h5" OLD | HEADING,
    H6 "h6" OLD | HEADING,
    P "p" ITEM, Li "li" ITEM, Dd "dd" ITEM, Dt "dt" ITEM,
    Blockquote "blockquote" OLD | SENTENCES, Pre "pre" OLD | PREFORMATTED, Listing "listing" OLD | PREFORMATTED,
    Xmp "xmp" PLAIN | PREFORMATTED, Plaintext "plaintext" PLAIN | PREFORMATTED, Figcaption "figcaption" PLAIN | SENTENCES,
    Ul "ul" OLD, Ol "ol" OLD, Dl "dl" OLD, Menu "menu" OLD | BOILERPLATE, Dir "dir" PLAIN, Hgroup "hgroup" PLAIN,
    Figure "figure" PLAIN, Summary "summary" PLAIN, Legend "legend" BLOCK, Textarea "textarea" BLOCK | SPECIAL,
    Marquee "marquee" BLOCK | SPECIAL | SCOPE,
    Div "div" OLD | CONTAINER, Center "center" OLD | CONTAINER, Section "section" PLAIN | CONTAINER,
    Article "article" PLAIN | CONTAINER, Main "main" PLAIN | CONTAINER, Aside "aside" PLAIN | CONTAINER | BOILERPLATE,
    Header "header" PLAIN | CONTAINER, Footer "footer" PLAIN | CONTAINER | BOILERPLATE,
    Nav "nav" PLAIN | CONTAINER | BOILERPLATE, Search "search" PLAIN | CONTAINER | BOILERPLATE,
    Address "address" PLAIN | CONTAINER, Details "details" PLAIN | CONTAINER,
    Dialog "dialog" BLOCK | CLOSES_P | CONTAINER | BOILERPLATE, Fieldset "fieldset" PLAIN | CONTAINER,
    Form "form" PLAIN | CONTAINER,
    Table "table" OLD | SCOPE, Td "td" BLOCK | SPECIAL | SCOPE | TABLE_PART | SENTENCES | CONTAINER,
    Th "th" BLOCK | SPECIAL | SCOPE | TABLE_PART | SENTENCES | CONTAINER, Tr "tr" BLOCK | SPECIAL | TABLE_PART,
    Tbody "tbody" BLOCK | SPECIAL | TABLE_PART, Thead "thead" BLOCK | SPECIAL | TABLE_PART,
    Tfoot "tfoot" BLOCK | SPECIAL | TABLE_PART,
    Caption "caption" BLOCK | SPECIAL | SCOPE | TABLE_PART | SENTENCES,
}

static TABLE: Table<512> = Table::new(NAMES);

impl Element {
    /// The element whose name has this key.
    #[inline]
    pub(super) fn of(name: Key) -> Self {
        TABLE.find(name).map_or(Self::Unknown, |at| ELEMENTS[at])
    }

    #[inline]
    pub(super) fn has(self, traits: u32) -> bool {
        TRAITS[self as usize] & traits != 0
    }

    /// The name, in lowercase.
    pub(super) fn name(self) -> &'static str {
        NAMES.get(self as usize).copied().unwrap_or("unknown")
    }

    /// What separates the text before a tag of this element from the text after it.
    pub(super) fn gap(self) -> Gap {
        match self {
            Self::Br => Gap::Line,
            _ if self.has(BLOCK) => Gap::Block,
            _ if self.has(WORD) => Gap::Space,
            _ => Gap::None,
        }
    }

    /// The level of a heading; the table has them in order.
    pub(super) fn heading(self) -> Option<u8> {
        let is_heading = self.has(HEADING);
        is_heading.then(|| self as u8 - Self::H1 as u8 + 1)
    }

    /// The level of a part of a table: 1 for cells, 2 for rows, 3 for groups of rows and captions; 0 for all else.
    pub(super) fn table_rank(self) -> u8 {
        match self {
            Self::Td | Self::Th => 1,
            Self::Tr => 2,
            Self::Tbody | Self::Thead | Self::Tfoot | Self::Caption => 3,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::names::key;
    use super::*;

    #[test]
    fn names_are_found() {
        for (at, name) in NAMES.iter().enumerate() {
            let element = Element::of(key(name.to_ascii_uppercase().as_bytes()));
            assert_eq!(element, ELEMENTS[at]);
            assert_eq!(element.name(), *name);
        }
        for name in ["", "x", "blink", "foreignobjects", "figcaptionfigcaption"] {
            assert_eq!(Element::of(key(name.as_bytes())), Element::Unknown);
        }
        assert_eq!(Element::Unknown.gap(), Gap::Space);
    }
}
