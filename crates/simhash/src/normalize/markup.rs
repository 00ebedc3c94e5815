//! The kinds of markup removal.

use super::html;
use crate::choice::{Choice, Name, by_name};

/// The markup that is removed from a text before it is folded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Markup {
    /// None: the text is taken as it is. Version 0.
    #[default]
    None,
    /// The visible text of an HTML page: a line for each block, white space collapsed. Version 1.
    Text,
    /// The same, without navigation, lists of links, footers and banners; all of it if almost nothing else is left.
    /// Version 2.
    Main,
    /// The article of an HTML page, as dom_smoothie finds it, which follows Mozilla's Readability; what [`Self::Main`]
    /// gives if it finds none, or if the page is too large for it. Version 2. Needs the crate feature `article`.
    Article,
}

impl Choice for Markup {
    const PLURAL: &'static str = "kinds of markup removal";
    const NAMES: &'static [Name<Self>] = &[
        Name::new("none", Self::None, "texts as they are"),
        Name::new(
            "text",
            Self::Text,
            "the visible text of an HTML page, a line for each block",
        ),
        Name::new(
            "main",
            Self::Main,
            "text without navigation, lists of links, footers and banners",
        ),
        Name::new(
            "article",
            Self::Article,
            "the article of an HTML page, as in the reader view of a browser",
        )
        .needs("article", cfg!(feature = "article")),
    ];
}

by_name!(Markup);

impl Markup {
    /// The version of the code that removes it, which [`crate::Spec::markup_version`] records. From the first release on,
    /// code that gives another text for any page gets another version.
    #[must_use]
    pub const fn version(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Text => 1,
            Self::Main | Self::Article => 2,
        }
    }

    /// Whether the text is taken as it is.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Appends the text of an HTML page to `out`. Any text can be parsed as HTML, so this does not
    /// fail.
    pub fn strip(self, page: &str, out: &mut String) {
        match self {
            Self::None => out.push_str(page),
            Self::Text => html::visible_text(page, out),
            Self::Main => html::main_text(page, out),
            #[cfg(feature = "article")]
            Self::Article => html::article_text(page, out),
            // A build without the library refuses this kind's name.
            #[cfg(not(feature = "article"))]
            Self::Article => html::main_text(page, out),
        }
    }
}
