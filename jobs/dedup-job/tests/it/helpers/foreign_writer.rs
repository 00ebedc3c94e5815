//! Another engine, which writes to an archive as Spark or delta-rs write to any Delta
//! table. Each call makes one commit.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use arrow::array::AsArray as _;
use arrow::datatypes::Int64Type;
use serde_json::{Value, json};

use crate::helpers::support::*;

/// Id and fingerprint of a document.
pub type Row = (String, u64);

pub struct OtherEngine {
    archive: PathBuf,
    written: Cell<u32>,
}

impl OtherEngine {
    pub fn new(archive: impl AsRef<Path>) -> Self {
        Self {
            archive: archive.as_ref().to_owned(),
            written: Cell::new(0),
        }
    }

    /// The actions of each entry of the log.
    pub fn log(&self) -> Vec<Vec<Value>> {
        let entries = fs::read_dir(self.archive.join("_delta_log")).unwrap();
        let mut entries: Vec<PathBuf> = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension() == Some("json".as_ref()))
            .collect();
        entries.sort();
        let actions = |path: &PathBuf| -> Vec<Value> {
            let text = fs::read_to_string(path).unwrap();
            let lines = text.lines();
            lines
                .map(|line| serde_json::from_str(line).unwrap())
                .collect()
        };
        entries.iter().map(actions).collect()
    }

    /// The add actions of the files that the log names, by path.
    pub fn files(&self) -> Vec<Value> {
        let mut files = BTreeMap::new();
        for action in self.log().into_iter().flatten() {
            if let Some(add) = action.get("add") {
                files.insert(add["path"].to_string(), add.clone());
            }
            if let Some(remove) = action.get("remove") {
                let known = files.remove(&remove["path"].to_string());
                assert!(known.is_some(), "a file is removed that is not there");
            }
        }
        files.into_values().collect()
    }

    /// The paths, below the archive, of the files that the log names.
    pub fn paths(&self) -> Vec<String> {
        let files = self.files().into_iter();
        files
            .map(|add| add["path"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The table's metadata action after `change` edited it and its columns.
    pub fn metadata(&self, change: impl FnOnce(&mut Value, &mut Vec<Value>)) -> Value {
        let actions: Vec<Value> = self.log().into_iter().flatten().collect();
        let mut all = actions.iter().rev();
        let last = all.find_map(|action| action.get("metaData"));
        let mut metadata = last.unwrap().clone();
        let text = metadata["schemaString"].as_str().unwrap();
        let mut schema: Value = serde_json::from_str(text).unwrap();
        change(&mut metadata, schema["fields"].as_array_mut().unwrap());
        metadata["schemaString"] = schema.to_string().into();
        json!({ "metaData": metadata })
    }

    /// Rewrites all files of a day as one file, as OPTIMIZE does: without a change of data, and
    /// without tags.
    pub fn optimize(&self, day: Option<&str>) {
        let files = self.files().into_iter();
        let files: Vec<Value> = files.filter(|add| day_of(add) == day).collect();
        let rows: Vec<Row> = files.iter().flat_map(|add| self.rows(add)).collect();
        let mut actions: Vec<Value> = files.iter().map(|add| remove(add, false)).collect();
        actions.push(self.write(day, &rows, false));
        self.commit("OPTIMIZE", &actions);
    }

    /// Deletes documents by id, copy on write.
    pub fn delete(&self, ids: &[&str]) {
        let mut actions = Vec::new();
        for add in self.files() {
            let rows = self.rows(&add);
            let mut rest = rows.clone();
            rest.retain(|(id, _)| !ids.contains(&id.as_str()));
            if rest.len() == rows.len() {
                continue;
            }
            actions.push(remove(&add, true));
            if !rest.is_empty() {
                actions.push(self.write(day_of(&add), &rest, true));
            }
        }
        assert!(!actions.is_empty());
        self.commit("DELETE", &actions);
    }

    /// Adds documents to a day, or without a day.
    pub fn append(&self, day: Option<&str>, rows: &[(&str, u64)]) {
        let rows: Vec<Row> = rows
            .iter()
            .map(|(id, fp)| ((*id).to_owned(), *fp))
            .collect();
        self.commit("WRITE", &[self.write(day, &rows, true)]);
    }

    /// Commits the actions; returns the path of the log entry.
    pub fn commit(&self, operation: &str, actions: &[Value]) -> PathBuf {
        let info = json!({"commitInfo": {
            "timestamp": now(),
            "operation": operation,
            "engineInfo": "another engine",
        }});
        let lines: Vec<String> = [&info]
            .into_iter()
            .chain(actions)
            .map(|action| format!("{action}\n"))
            .collect();
        let version = self.log().len();
        let entry = self.archive.join(format!("_delta_log/{version:020}.json"));
        fs::write(&entry, lines.concat()).unwrap();
        entry
    }

    /// The documents of a file.
    fn rows(&self, add: &Value) -> Vec<Row> {
        let path = self.archive.join(add["path"].as_str().unwrap());
        let mut rows = Vec::new();
        for batch in read_parquet(path) {
            let ids = texts(batch.column_by_name("id").unwrap());
            let fingerprints = batch.column_by_name("fp").unwrap();
            let fingerprints = fingerprints.as_primitive::<Int64Type>().values();
            let fingerprints = fingerprints.iter().map(|fp| fp.cast_unsigned());
            rows.extend(ids.into_iter().zip(fingerprints));
        }
        rows
    }

    /// Writes a data file; returns the action that adds it.
    fn write(&self, day: Option<&str>, rows: &[Row], data_change: bool) -> Value {
        let number = self.written.replace(self.written.get() + 1);
        let directory = format!("day={}", day.unwrap_or("__HIVE_DEFAULT_PARTITION__"));
        let path = format!(
            "{directory}/part-00000-{number:08x}-8b86-4d01-b42d-00cf4fc964ff.c000.snappy.parquet"
        );
        fs::create_dir_all(self.archive.join(directory)).unwrap();
        write_fingerprints(self.archive.join(&path), rows);
        json!({"add": {
            "path": path,
            "partitionValues": {"day": day},
            "size": fs::metadata(self.archive.join(&path)).unwrap().len(),
            "modificationTime": now(),
            "dataChange": data_change,
            "stats": json!({"numRecords": rows.len()}).to_string(),
        }})
    }
}

/// The action that removes the file of an add action.
pub fn remove(add: &Value, data_change: bool) -> Value {
    json!({"remove": {
        "path": add["path"],
        "deletionTimestamp": now(),
        "dataChange": data_change,
        "extendedFileMetadata": true,
        "partitionValues": add["partitionValues"],
        "size": add["size"],
    }})
}

/// The protocol action: required versions of reader and writer, and table features.
pub fn protocol(reader: u32, writer: u32, features: &[&str]) -> Value {
    let mut protocol = json!({"minReaderVersion": reader, "minWriterVersion": writer});
    if !features.is_empty() {
        protocol["readerFeatures"] = json!(features);
        protocol["writerFeatures"] = json!(features);
    }
    json!({ "protocol": protocol })
}

fn day_of(add: &Value) -> Option<&str> {
    add["partitionValues"]["day"].as_str()
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap().as_millis() as u64
}
