//! Our reader of WARC files alone: every record, and nothing is done with it. In a process of its own, `bench crawl-records`, so
//! that its memory is seen.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A WARC file
    file: PathBuf,
}

/// Prints the number of records in a file, and the bytes of their contents, as JSON: null without a reader.
pub fn run(args: &Args) -> Vec<Value> {
    let read =
        read(&args.file).map(|(records, bytes)| json!({ "records": records, "bytes_read": bytes }));
    println!("{}", json!(read));
    Vec::new()
}

/// Reads all records of a file; returns their number, and the bytes of their contents. `None`: this build has no reader of WARC
/// files.
fn read(_file: &Path) -> Option<(u64, u64)> {
    // The crate `warc` will do this, with `warc::Reader`.
    None
}
