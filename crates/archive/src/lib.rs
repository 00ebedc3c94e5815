//! The archive: a Delta Lake table of fingerprints.
//!
//! An archive has the columns `fp`, `id` and the partition column `day`; if its spec has sketches, also `sketch`; if it was
//! created with decisions, also `kept`. Its properties record the spec of its fingerprints and [`RunDefaults`]. Each day is one commit, and its data files are Parquet sorted by `fp`. [`Archive`] creates it, appends to it, and maintains it.
//!
//! A run reads a [`Snapshot`]: an archive at one version, or plain Parquet files.
//! [`FingerprintReader`] reads one file of a snapshot: fingerprints by row group; ids, sketches and
//! decisions by row. The map writes the batch's own fingerprints as one [`FingerprintFile`], which
//! every later stage reads.

mod beside;
mod bulk;
mod captures;
mod commit;
mod compact;
mod data_files;
mod day_batch;
mod day_records;
mod decision_settings;
mod delta;
mod direct_read;
mod document_id;
mod dropped;
mod encoded_fingerprints;
mod entry_digest;
mod error;
mod file_checksums;
pub mod fingerprint_file;
mod foreign;
pub mod frequencies;
mod id_set;
mod input_files;
mod local_pages;
mod merge;
mod object_reader;
mod operations;
mod page_header;
mod parquet_properties;
mod read_buffer;
pub mod reader;
mod recorded_settings;
mod remembered_log;
mod remove;
mod row_group_sums;
pub mod row_groups;
mod rulings;
mod run_defaults;
pub mod schema;
mod scope;
mod snapshot;
pub mod spec_files;
mod table;
pub mod template_memory;
mod vacuum;
pub mod validated_pages;

pub use bulk::Bulk;
pub use captures::Capture;
pub use commit::{Append, Existing, RowDecisions, StagedDay};
pub use compact::Compacted;
pub use data_files::FileRows;
pub use day_batch::{BatchName, DayBatch};
pub use day_records::CommittedDay;
pub use decision_settings::DecisionSettings;
pub use direct_read::DirectBuffers;
pub use document_id::DocumentId;
pub use dropped::{DROPPED_DAY, DROPPED_FILE, DROPPED_ROW, RowsByFile};
pub use encoded_fingerprints::Encoded;
pub use error::{ArchiveError, Result};
pub use file_checksums::Tail;
pub use fingerprint_file::{FingerprintFile, FingerprintWriter};
pub use id_set::IdSet;
pub use input_files::input_files;
pub use merge::{Merge, Merged};
pub use object_reader::ObjectReader;
pub use parquet_properties::ROW_GROUP_ROWS;
pub use reader::{ColumnNames, DecodedStep, FingerprintReader, ReadRows, RowColumns, RowPages};
pub use remove::Removed;
pub use rulings::{CaptureName, Pin, Ruling, RulingFiles, Rulings};
pub use run_defaults::RunDefaults;
pub use schema::{IdType, MAX_ID_BYTES};
pub use scope::Scope;
pub use snapshot::{Snapshot, SnapshotFile};
pub use spec_files::SpecFiles;
pub use table::{Archive, DataFile, DayInfo, FILE_ROWS, Info, Verified};
pub use template_memory::CommittedMemory;
pub use vacuum::Vacuum;
