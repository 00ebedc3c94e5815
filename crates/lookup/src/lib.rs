//! Online lookup: finds the documents of an archive within k bits of a fingerprint, in microseconds.
//!
//! This is the online query of Manku, Jain and Das Sarma, "Detecting Near-Duplicates for Web Crawling" (WWW 2007),
//! sections 3.1 and 3.2: one fingerprint against compressed, sorted tables on disk.
//!
//! [`build`] makes an index of an archive; call it again after each commit. An [`Index`] is open at one version. Its
//! [`Searcher`]s find fingerprints, [`Index::document`] returns their documents, and an [`Answerer`] does both.

mod answer;
mod build;
mod error;
mod files;
#[cfg(fuzzing)]
pub mod fuzzing;
mod index;
mod manifest;
mod paged;
mod rows;
mod search;
mod seen;
mod segment;
mod serve;
mod table;
mod text_model;

pub use answer::{Answer, Answerer, Hit, LookupOptions, Query, parse_fingerprint, string_of};
pub use build::{BuildReport, Settings, build};
pub use error::{LookupError, Result};
pub use files::IndexFiles;
pub use index::{Index, IndexInfo, SegmentInfo};
pub use search::{Found, Searcher};
pub use seen::Remember;
pub use segment::{Document, Part};
pub use serve::{ServeSettings, Server, TlsFiles};
pub use text_model::TextModel;

/// The largest k of a lookup: radius 4 in each of two halves.
pub const MAX_DISTANCE: u32 = 8;
