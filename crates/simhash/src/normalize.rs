//! Folds a text before it is cut into features: Unicode NFKC and full case folding. [`Markup`] removes markup before that.

mod definition;
mod fold_table;
mod folder;
mod html;
mod markup;

pub(crate) use folder::Folder;
pub use markup::Markup;

use crate::choice::{Choice, Name, by_name};
use crate::isa::Kernel;
use crate::text::Folded;

/// How a text is folded before tokenizing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Normalize {
    /// NFKC, full case folding, and NFKC again, because case folding can undo composition.
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
            "Unicode NFKC, ignoring case",
        ),
        Name::new("nfkc", Self::Nfkc, "Unicode NFKC: case counts"),
        Name::new("as-is", Self::AsIs, "no folding"),
    ];
}

by_name!(Normalize);

impl Normalize {
    /// Replaces the contents of `folded` by the folded `text`.
    pub fn fold(self, text: &str, folded: &mut Folded) {
        Folder::new(self, Kernel::detect()).fold(text, folded);
    }
}
