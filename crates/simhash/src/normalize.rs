//! Folds a text before it is cut into features, as people read it: Unicode's NFKC_Casefold and a few typographic marks.
//! [`Markup`] removes markup before that.

mod definition;
mod fold_table;
mod folder;
mod html;
mod marks;
mod markup;

pub(crate) use folder::Folder;
pub use marks::Fold;
pub use markup::Markup;

use crate::choice::{Choice, Name, by_name};
use crate::isa::Kernel;
use crate::text::Folded;

/// How a text is folded before tokenizing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Normalize {
    /// Unicode's NFKC_Casefold: NFKC, full case folding, and no default-ignorable characters, such as soft hyphens, zero-width
    /// characters and direction marks. Besides, ‘, ’, ‛, ʻ and ʼ become an apostrophe, dashes and the minus sign a hyphen, and
    /// Arabic tatweel is left out. Of no locale.
    NfkcCasefold,
    /// NFKC without case folding.
    Nfkc,
    /// No folding.
    AsIs,
}

impl Choice for Normalize {
    const PLURAL: &'static str = "foldings";
    const NAMES: &'static [Name<Self>] = &[
        Name::new(
            "nfkc-casefold",
            Self::NfkcCasefold,
            "Unicode NFKC_Casefold: ignoring case, invisible characters, and kinds of apostrophes and dashes",
        ),
        Name::new("nfkc", Self::Nfkc, "Unicode NFKC: case counts"),
        Name::new("as-is", Self::AsIs, "no folding"),
    ];
}

by_name!(Normalize);

impl Normalize {
    /// Replaces the contents of `folded` by the folded `text`.
    pub fn fold(self, fold: Fold, text: &str, folded: &mut Folded) {
        Folder::new(self, fold, Kernel::detect()).fold(text, folded);
    }
}
