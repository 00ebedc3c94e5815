//! Files and objects: resolves their paths and URLs, reads them, and writes them atomically.
//!
//! [`Stores`] resolves a path or a URL to a [`Location`], lists the files that a path stands for, and connects to the
//! object stores behind them. [`UnchangedFile`], [`Upload`] and [`Draft`] read and write single files. Errors are
//! [`StorageError`]; each has an [`ErrorKind`], and a message for people that shows no secret.
//!
//! This crate does not interpret the contents of files. All it knows about Delta tables is the file
//! names in their logs.

pub mod boot_tag;
mod conditional_create;
mod delta_log;
mod digest;
mod draft;
mod error;
mod error_kind;
mod explain;
mod location;
mod secrets;
mod store;
mod unchanged_file;
mod upload;

pub use conditional_create::{is_tested_name, require_conditional_create};
pub use delta_log::{CHECKPOINT_HINT, DAMAGED_ENTRY, LOG_DIRECTORY, is_log_entry};
pub use digest::hex;
pub use draft::{Draft, STANDARD_OUTPUT, is_closed_pipe};
pub use error::{Result, StorageError};
pub use error_kind::{ErrorKind, io_kind};
pub use explain::{cause_kind, plain_message, store_kind};
pub use location::{Expansion, Identity, Location, Others, Skipped, endings_in_words, has_ending};
pub use secrets::scrub;
pub use store::{
    StoreOptions, Stores, Traffic, UNFINISHED_MARK, create_dir_all_synced, short_body, wait_briefly,
};
pub use unchanged_file::UnchangedFile;
pub use upload::Upload;
