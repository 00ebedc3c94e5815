//! Reads WARC files: crawls of the web, as ISO 28500 (WARC 1.0 and 1.1) defines them, and WET files, which are WARC files with
//! the texts of pages.
//!
//! [`Reader`] reads the records of a file, plain or compressed with gzip or zstd. [`Documents`] reads the document in a record:
//! it decodes the body of the response, and its text; or it says the [`Reason`] why the record is none. Memory is bounded
//! whatever a file holds; reading a record allocates nothing; and a damaged part of a file costs the records in it, not those
//! after it. [`Cuts`] finds where a large file can be cut, so that several readers share it; each part is read with the
//! [`Dictionary`] that the file may start with.
//!
//! ```
//! use std::io::BufReader;
//! use warc::{Choice, Documents, Event, Limits, Reader};
//!
//! # fn main() -> std::io::Result<()> {
//! # let file = &b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\ntext\r\n\r\n"[..];
//! let limits = Limits { record: 8 << 20, window_log: 27 };
//! let mut reader = Reader::new(BufReader::with_capacity(128 << 10, file), limits);
//! let mut documents = Documents::new(Choice::default(), limits.record);
//! let mut count = 0;
//! while let Some(event) = reader.next_event()? {
//!     match event {
//!         Event::Record(record) => match documents.read(&record) {
//!             Ok(document) => {
//!                 println!("{:?}: {} bytes", document.url, document.text.len());
//!                 count += 1;
//!             }
//!             Err(reason) => println!("{reason}"),
//!         },
//!         Event::Broken(broken) => println!("{}: {}", broken.place, broken.fault.name()),
//!     }
//! }
//! assert_eq!(count, 1);
//! # Ok(())
//! # }
//! ```
//!
//! Why the reader is ours: the crates `warc` 0.4 and `rust_warc` 1.2 allocate every field and block, read neither zstd nor the
//! response inside of a record, and do not find the next record after a damaged one; and the crate `fastwarc` says that it is
//! unfinished. The package of that name for Python, in C++, is the reader to be as fast as.

mod buffer;
pub mod charset;
mod cuts;
mod digests;
mod documents;
mod fault;
mod form;
mod headers;
mod http;
mod input;
mod members;
mod reader;
mod reason;
#[cfg(test)]
mod test_files;

pub use cuts::{Cuts, MemberCuts, RecordStarts};
pub use documents::{Choice, Document, Documents};
pub use fault::{Broken, Fault, Place, WrongCut};
pub use form::{Form, is_no_text};
pub use headers::{Headers, percent_encoded};
pub use members::Dictionary;
pub use reader::{Event, Limits, Reader, Record};
pub use reason::Reason;
