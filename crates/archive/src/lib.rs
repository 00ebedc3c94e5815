//! The fingerprint table: where fingerprints are kept, and how they are read back.
//!
//! An archive is a Delta Lake table (columns `fp`, `id`, partition column `day`), one commit a day, whose data
//! files are Parquet sorted by `fp`; [`Archive`] makes and extends it. [`Base`] is what a run reads: an archive
//! at one version, or a plain set of Parquet files. [`FingerprintReader`] reads one such file: fingerprints a
//! row group at a time, ids for single rows. A day's own fingerprints travel as one [`fingerprints`] file,
//! which the map writes and everything after it reads.

pub mod base;
mod compact;
mod data_files;
mod encoded;
pub mod error;
pub mod fingerprints;
pub mod frequencies;
mod local_file;
pub mod location;
pub mod model;
mod object_reader;
pub mod reader;
pub mod schema;
pub mod store;
pub mod table;
mod upload;
mod vacuum;

pub use base::{Base, BaseFile, Scope};
pub use compact::Compacted;
pub use encoded::Encoded;
pub use error::{ArchiveError, ErrorKind, Result};
pub use fingerprints::{FingerprintFile, FingerprintWriter, RowDigest};
pub use local_file::LocalFile;
pub use location::Location;
pub use model::Kept;
pub use object_reader::ObjectReader;
pub use reader::{BaseColumns, FingerprintReader, IdPages, Step};
pub use schema::IdType;
pub use store::{StoreOptions, Stores};
pub use table::{Append, Archive, CommittedDay, Info, StagedDay};
pub use vacuum::{Vacuum, Vacuumed};
