//! Whether texts are compared without the template of their source.

use crate::choice::{Choice, Name, by_name};

/// Whether the template of a document's source, the passages that many of its pages share, is left out of the text before
/// fingerprints are made. This crate does not find templates: it is given texts without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Template {
    /// It is compared with the rest of the text.
    #[default]
    Off,
    /// It is left out.
    On,
    /// It is left out, and all hosts below one registrable domain are one source.
    Domains,
}

impl Choice for Template {
    const PLURAL: &'static str = "treatments of templates";
    const NAMES: &'static [Name<Self>] = &[
        Name::new(
            "on",
            Self::On,
            "passages that many pages of a source share are left out",
        ),
        Name::new(
            "domains",
            Self::Domains,
            "as on; the source is not the host of a URL, but its registrable domain",
        ),
        Name::new("off", Self::Off, "texts are compared with them"),
    ];
}

by_name!(Template);

impl Template {
    /// Whether texts are compared with their templates.
    #[must_use]
    pub fn is_off(&self) -> bool {
        *self == Self::Off
    }
}
