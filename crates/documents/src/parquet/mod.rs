//! Documents in Parquet: a row group at a time, with texts read as bytes.
//!
//! The Parquet library refuses a whole page for one string that is not UTF-8. So strings are read
//! as byte arrays; later stages replace and count what is not UTF-8.

mod checked;
mod copy;
mod footer;
mod leaf;
mod nested;
mod read;

pub(super) use copy::copy;
pub(super) use footer::{bytes, open, rows};
pub(super) use read::{WantedRows, read};
