//! Templates: what the pages of a source share is found before fingerprints are made, and left out of the texts.
//!
//! ```text
//! documents ─▶ pages ─▶ sorted by source ─▶ choose ─▶ templates, left out of the texts
//!                                            ▲  └───▶ memory, committed with the day
//!                           archive: memory ─┘
//! ```
//!
//! A run reads all documents once to find templates. It looks at [`template::MOST_PAGES`] pages of a source at most: the same pages,
//! whatever the order of the files and the number of threads or parts.

mod batch;
mod find;
mod pages;
mod shown;

pub use batch::{Batch, BatchTemplates, TemplateCounts};
pub(crate) use pages::{pages_schema, with_pages};
pub use shown::{
    CutText, CutTexts, SharedPassage, SourceWords, archive_memory, archive_templates, cut_texts,
    shared_passages,
};
