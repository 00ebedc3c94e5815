//! Online lookup: which documents of an archive are within k bits of a fingerprint, in microseconds, from compressed tables on disk.
//!
//! The other half of Manku, Jain and Das Sarma, "Detecting Near-Duplicates for Web Crawling" (WWW 2007), sections 3.1 and 3.2: a
//! query against sorted tables that are compressed and stay on the disk.
//!
//! [`build`] makes an index of an archive, and brings it up to date after every commit. An [`Index`] is open at one version;
//! its [`Searcher`]s find fingerprints, and [`Index::document`] says which documents have them.

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

pub use answer::{Answer, Answerer, Hit, Query, Wanted, parse_fingerprint};
pub use build::{Built, Settings, build};
pub use error::{LookupError, Result};
pub use files::IndexFiles;
pub use index::{Index, IndexInfo, SegmentInfo};
pub use rows::Id;
pub use search::{Found, Searcher};
pub use seen::Remember;
pub use segment::{Document, Part};
pub use serve::{ServeSettings, Server, TlsFiles};

/// The largest distance that an index answers: two halves of radius 4.
pub const MAX_DISTANCE: u32 = 8;
