//! Creates an archive, appends the fingerprints of three documents as one day, and lists the days of the archive.
//!
//! ```console
//! cargo run --release -p archive --example archive [DIRECTORY]
//! ```
//!
//! Without a directory, the archive is created in a temporary one, which is removed at the end.

use std::error::Error;
use std::sync::Arc;

use archive::{Archive, Existing, FingerprintWriter, IdType, RunDefaults, schema};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use chrono::NaiveDate;
use simhash::{Fingerprinter, Model, Spec};
use storage::Stores;

const DOCUMENTS: [(&str, &str); 3] = [
    ("a", "the quick brown fox jumps over the lazy dog"),
    ("b", "the quick brown fox jumps over the lazy cat"),
    ("c", "pack my box with five dozen liquor jugs"),
];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let temporary = tempfile::tempdir()?;
    let directory = match std::env::args().nth(1) {
        Some(directory) => directory,
        None => temporary.path().join("archive").display().to_string(),
    };
    let (spec, id_type) = (Spec::default(), IdType::String);
    let location = Stores::default().locate(&directory)?;
    let mut archive = Archive::create(
        &location,
        id_type,
        false,
        &spec,
        &Default::default(),
        &RunDefaults::new(3, None),
    )
    .await?;

    // A day is committed from a Parquet file, whose rows are sorted by fingerprint.
    let mut fingerprinter = Fingerprinter::new(Model::plain(spec.clone())?);
    let fingerprint = |(id, text)| Some((fingerprinter.fingerprint(text)?.cast_signed(), id));
    let mut rows: Vec<(i64, &str)> = DOCUMENTS.into_iter().filter_map(fingerprint).collect();
    rows.sort_unstable();
    let (fingerprints, ids): (Vec<i64>, Vec<&str>) = rows.into_iter().unzip();
    let columns: [ArrayRef; 2] = [
        Arc::new(Int64Array::from(fingerprints)),
        Arc::new(StringArray::from(ids)),
    ];
    let batch = RecordBatch::try_new(
        schema::fingerprint_schema(id_type, spec.sketch, true),
        columns.into(),
    )?;
    let path = temporary.path().join("day.parquet");
    let mut writer = FingerprintWriter::create(&path, id_type, &spec)?;
    writer.write(batch)?;
    let file = writer.finish()?;
    let day: NaiveDate = "2026-01-31".parse()?;
    println!("{:?}", archive.append(day, &file, Existing::Keep).await?);

    for (day, info) in archive.info()?.days {
        println!("{day}: {} fingerprints, {} file", info.rows, info.files);
    }
    Ok(())
}
