//! Templates: what the pages of a source share is found before fingerprints are made, and left out of the texts.
//!
//! ```text
//! documents ─▶ pages ─▶ by source, sorted ─▶ choose ─▶ what is left out of the texts
//!                                             ▲  └───▶ memory, committed with the day
//!                            archive: memory ─┘
//! ```
//!
//! All documents are read once for it. Of a source, so many pages are looked at as [`template::MOST_PAGES`] says, the same in any
//! order of files, and with any number of threads or parts.

mod batch;
mod find;
mod pages;
mod shown;

pub use batch::{Batch, BatchTemplates, TemplateCounts};
pub(crate) use pages::{pages_schema, with_pages};
pub use shown::{SharedPassage, archive_memory, archive_templates, shared_passages};
