//! Our reader of WARC files alone: every record, and nothing is done with it. In a process of its own, `bench crawl-records`, so
//! that its memory is seen.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use warc::{Event, Limits, Reader};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A WARC file
    file: PathBuf,
}

/// Prints the number of records in a file, and the bytes of their contents, as JSON.
pub fn run(args: &Args) -> Vec<Value> {
    let (records, bytes) = read(&args.file);
    println!("{}", json!({ "records": records, "bytes_read": bytes }));
    Vec::new()
}

/// Reads all records of a file; returns their number, and the bytes of their contents.
fn read(file: &Path) -> (u64, u64) {
    let input = BufReader::with_capacity(128 << 10, File::open(file).expect("the file"));
    let limits = Limits {
        record: 64 << 20,
        window_log: 27,
    };
    let mut reader = Reader::new(input, limits);
    let (mut records, mut bytes) = (0, 0);
    while let Some(event) = reader.next_event().expect("the file") {
        if let Event::Record(record) = event {
            records += 1;
            bytes += record.block.len() as u64;
        }
    }
    (records, bytes)
}
