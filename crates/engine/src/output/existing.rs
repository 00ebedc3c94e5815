//! Tells what is at the place of an output: the program may replace its own earlier output, but no
//! file of another program.

use archive::frequencies::{DOCUMENT_FREQUENCY, FEATURE};
use archive::schema::{FINGERPRINT, ID, SKETCH};
use archive::{ArchiveError, ObjectReader};
use futures::FutureExt as _;
use parquet::arrow::async_reader::AsyncFileReader as _;
use serde_json::{Map, Value};
use storage::{ErrorKind, Location, StorageError};

use crate::decide;
use crate::error::Result;
use crate::pairs::{self, NEW_ID};

/// Bytes of a file that are read first. They contain the first line, unless its ids are long.
const HEAD: u64 = 4 << 10;
/// The most bytes of a first line.
const LONGEST_LINE: u64 = 16 << 20;
/// The start of `created_by` in the footers of this program's Parquet files.
const CREATED_BY: &str = "dedup-job ";
/// The start of files of metrics.
const METRICS: &[u8] = b"# HELP dedup_job_";
pub const REPORT_START: &str =
    "<!doctype html>\n<html lang=\"en\" data-made-by=\"dedup-job report\">\n";

/// The columns of an output of components: a document, the name of its component, and the number of
/// documents in the component.
pub const COMPONENT_COLUMNS: [&str; 3] = [ID, "component", "component_size"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    Pairs,
    Decisions,
    /// Connected components of pairs.
    Components,
    /// A batch's fingerprints.
    Fingerprints,
    /// Document frequencies.
    Frequencies,
    Metrics,
    /// A page about pairs or decisions.
    Report,
}

/// The kind of an output of rows by its columns, in any order; `None` if it has other columns. Decisions may have more: those
/// of the documents that go along.
pub(super) fn kind_by_columns(columns: &[&str]) -> Option<OutputKind> {
    let has_layout = |layout: &[&str]| {
        columns.len() == layout.len() && layout.iter().all(|name| columns.contains(name))
    };
    // Pairs have similarities or not.
    if has_layout(&pairs::COLUMNS) || has_layout(&pairs::COLUMNS[..4]) {
        return Some(OutputKind::Pairs);
    }
    if has_layout(&COMPONENT_COLUMNS) {
        return Some(OutputKind::Components);
    }
    let has_all = decide::LAYOUT.iter().all(|name| columns.contains(name));
    has_all.then_some(OutputKind::Decisions)
}

/// What is at the place of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Present {
    /// No file, or an empty one.
    Nothing,
    /// An earlier output of this program.
    Output(OutputKind),
    /// A file that this program did not write.
    Foreign,
}

/// Whether an output of a kind may be written to `location`: nothing is there, or an earlier output of the same kind.
pub async fn may_replace(location: &Location, kind: OutputKind) -> Result<bool> {
    let found = present(location).await?;
    Ok(matches!(found, Present::Nothing) || found == Present::Output(kind))
}

/// What is at `location`. It recognises Parquet by the program's name in the footer, CSV and JSON
/// Lines by the columns, metrics and reports by their first bytes.
///
/// # Errors
/// [`EngineError`](crate::EngineError) when the file there cannot be read.
pub async fn present(location: &Location) -> Result<Present> {
    let size = match location.size().await {
        Ok(0) | Err(StorageError::NotFound { .. }) => return Ok(Present::Nothing),
        Ok(size) => size,
        Err(error) => return Err(error.into()),
    };
    let mut reader = ObjectReader::new(location, size);
    let failed = |error| ArchiveError::parquet(location.to_string())(error);
    let mut head = reader.get_bytes(0..size.min(HEAD)).await.map_err(failed)?;
    let written = if head.starts_with(METRICS) {
        Some(OutputKind::Metrics)
    } else if head.starts_with(REPORT_START.as_bytes()) {
        Some(OutputKind::Report)
    } else if head.starts_with(b"PAR1") {
        parquet_kind(reader, location).await?
    } else {
        // With long ids, the line is longer than what was read.
        let is_json = |first: &str| head.starts_with(format!("{{\"{first}\":").as_bytes());
        if !head.contains(&b'\n') && (is_json(NEW_ID) || is_json(ID)) {
            let line = 0..size.min(LONGEST_LINE);
            head = reader.get_bytes(line).await.map_err(failed)?;
        }
        let line = head.split(|&byte| byte == b'\n').next();
        line.and_then(kind_by_first_line)
    };
    Ok(written.map_or(Present::Foreign, Present::Output))
}

/// The kind of a Parquet file; `None` when this program did not write it.
async fn parquet_kind(mut reader: ObjectReader, location: &Location) -> Result<Option<OutputKind>> {
    // A forged footer may make the reader panic.
    let metadata = std::panic::AssertUnwindSafe(reader.metadata())
        .catch_unwind()
        .await;
    let Ok(metadata) = metadata else {
        return Ok(None);
    };
    match metadata {
        Ok(metadata) => {
            let file = metadata.file_metadata();
            let is_own = file
                .created_by()
                .is_some_and(|by| by.starts_with(CREATED_BY));
            let fields = file.schema_descr().root_schema().get_fields();
            let columns: Vec<&str> = fields.iter().map(|field| field.name()).collect();
            let kind = kind_by_columns(&columns).or(match columns[..] {
                [FINGERPRINT, ID] | [FINGERPRINT, ID, SKETCH] => Some(OutputKind::Fingerprints),
                [FEATURE, DOCUMENT_FREQUENCY] => Some(OutputKind::Frequencies),
                _ => None,
            });
            Ok(kind.filter(|_| is_own))
        }
        Err(error) => match ArchiveError::parquet(location.to_string())(error) {
            error if error.kind() == ErrorKind::Data => Ok(None),
            error => Err(error.into()),
        },
    }
}

/// The kind of a CSV or JSON Lines output with this first line; `None` for a line of no output.
fn kind_by_first_line(line: &[u8]) -> Option<OutputKind> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if let Ok(object) = serde_json::from_slice::<Map<String, Value>>(line) {
        let names: Vec<&str> = object.keys().map(String::as_str).collect();
        return kind_by_columns(&names);
    }
    let names: Vec<&str> = std::str::from_utf8(line).ok()?.split(',').collect();
    kind_by_columns(&names)
}

#[cfg(test)]
mod tests {
    use storage::Stores;

    use super::*;

    #[test]
    fn first_lines_of_pairs_are_recognised() {
        for own in [
            "new_id,base_id,distance,base_day",
            "new_id,base_id,distance,base_day,similarity\r",
            r#"{"new_id":"a","base_id":"b","distance":1,"base_day":null}"#,
            r#"{"new_id":1,"base_id":2,"distance":1,"base_day":"2026-01-31","similarity":0.5}"#,
        ] {
            assert_eq!(
                kind_by_first_line(own.as_bytes()),
                Some(OutputKind::Pairs),
                "{own}"
            );
        }
        let decisions = "id,kept,duplicate_of,duplicate_day,distance,similarity,group_size";
        for own in [decisions, format!("{decisions},url,\"a b\"").as_str()] {
            assert_eq!(
                kind_by_first_line(own.as_bytes()),
                Some(OutputKind::Decisions),
                "{own}"
            );
        }
        for other in [
            "",
            "id,text",
            "id,kept,duplicate_of,duplicate_day,distance,similarity,url",
            "new_id,base_id,distance",
            "new_id,base_id,distance,base_day,similarity,more",
            r#"{"id":"a","text":"b"}"#,
            r#"{"new_id":"a","base_id":"b","distance":1,"base_day":null,"text":"c"}"#,
            r#"{"new_id":"a","base_id":"b","distance":1,"base_da"#,
            "# HELP dedup_job_exit_code Its exit code.",
        ] {
            assert_eq!(kind_by_first_line(other.as_bytes()), None, "{other}");
        }
    }

    #[tokio::test]
    async fn only_what_the_program_wrote_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let stores = Stores::default();
        let check = async |name: &str, bytes: &[u8]| {
            let path = directory.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let location = stores.locate(path.to_str().unwrap()).unwrap();
            present(&location).await.unwrap()
        };
        let spec = simhash::Spec::default();
        let frequencies = simhash::DocumentFrequencies {
            documents: 1,
            rest: 1,
            features: vec![("the".into(), 1)],
        };
        let own = archive::frequencies::encode("x", &spec, &frequencies).unwrap();
        let fingerprints = directory.path().join("fingerprints.parquet");
        let id_type = archive::IdType::String;
        let writer = archive::FingerprintWriter::create(&fingerprints, id_type, &spec).unwrap();
        writer.finish().unwrap();
        let fingerprints = std::fs::read(&fingerprints).unwrap();
        let long = "i".repeat(100_000);
        let row = format!(
            "{{\"new_id\":\"{long}\",\"base_id\":\"b\",\"distance\":1,\"base_day\":null}}\n"
        );
        let header = b"new_id,base_id,distance,base_day\n".as_slice();
        let metrics = b"# HELP dedup_job_exit_code Its exit code.\n".as_slice();
        for (name, bytes, kind) in [
            ("idf.parquet", own.as_slice(), OutputKind::Frequencies),
            (
                "day.parquet",
                fingerprints.as_slice(),
                OutputKind::Fingerprints,
            ),
            ("long.jsonl", row.as_bytes(), OutputKind::Pairs),
            ("h.csv", header, OutputKind::Pairs),
            ("metrics", metrics, OutputKind::Metrics),
        ] {
            assert_eq!(check(name, bytes).await, Present::Output(kind), "{name}");
            let location = stores.locate(directory.path().join(name).to_str().unwrap());
            let location = location.unwrap();
            for other in [
                OutputKind::Pairs,
                OutputKind::Fingerprints,
                OutputKind::Frequencies,
                OutputKind::Metrics,
            ] {
                let may = may_replace(&location, other).await.unwrap();
                assert_eq!(may, kind == other, "{name}: {other:?}");
            }
        }
        assert_eq!(check("empty", b"").await, Present::Nothing);
        for (name, bytes) in [
            ("cut.parquet", &own[..own.len() - 9]),
            ("docs.jsonl", b"{\"id\":1}\n{\"id\":2}\n".as_slice()),
            ("docs.csv", b"id,text\n".as_slice()),
            ("bytes", [0xff; 10_000].as_slice()),
        ] {
            assert_eq!(check(name, bytes).await, Present::Foreign, "{name}");
        }
        let none = stores.locate(directory.path().join("none").to_str().unwrap());
        assert!(
            may_replace(&none.unwrap(), OutputKind::Metrics)
                .await
                .unwrap()
        );
    }
}
