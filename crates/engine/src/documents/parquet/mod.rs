//! Documents in Parquet: a row group at a time, with texts read as bytes.
//!
//! Parquet's readers refuse a whole page for one string that is not UTF-8. Here strings are read as byte arrays; what is
//! not UTF-8 is replaced and counted later.

mod checked;
mod copy;
mod footer;
mod read;

pub(super) use copy::copy;
pub(super) use footer::{bytes, open, rows};
pub(super) use read::{WantedRows, read};
