//! A second reader and writer of Delta tables ([`OtherProgram`]), so that the code under test does not check itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use archive::schema::DAY_DIGEST_TAG;
use arrow::array::{Array as _, AsArray as _, BinaryArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use deltalake_core::DeltaTable;
use deltalake_core::logstore::{StorageConfig, default_logstore};
use deltalake_core::protocol::checkpoints::create_checkpoint;
use futures::TryStreamExt as _;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use url::Url;

use crate::world::sketch_of;

/// Fingerprint, id and day of a document.
pub type Row = (i64, String, Option<String>);

pub const ROOT: &str = "archive";

/// Where the entries of the log go that [`clean_log`] takes away: this reader needs no checkpoints.
const CLEANED: &str = "cleaned";

/// A data file that is live: its day, and its rows.
pub struct Live {
    pub day: Option<String>,
    pub rows: Vec<(i64, String)>,
    /// Whether it has a deletion vector.
    is_marked: bool,
    /// The action that added it.
    add: Value,
}

/// Tag of a file with a deletion vector: the id that the vector deletes. Only this reader uses it.
const DELETED: &str = "model.deleted";

fn log_directory() -> Path {
    Path::from(format!("{ROOT}/_delta_log"))
}

/// The hint at the last checkpoint.
pub fn hint() -> Path {
    Path::from(format!("{ROOT}/_delta_log/_last_checkpoint"))
}

/// The versions of entries and checkpoints in a directory, with the rest of their names.
async fn list(store: &InMemory, directory: &Path) -> Vec<(u64, String, Path)> {
    let names: Vec<Path> = store
        .list(Some(directory))
        .map_ok(|meta| meta.location)
        .try_collect()
        .await
        .unwrap();
    let parse = |path: Path| {
        let (version, rest) = path.filename()?.split_once('.')?;
        Some((version.parse::<u64>().ok()?, rest.to_owned(), path))
    };
    names.into_iter().filter_map(parse).collect()
}

/// The entries of the log, by version.
async fn log(store: &InMemory) -> BTreeMap<u64, Vec<Value>> {
    let mut entries: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for directory in [Path::from(CLEANED), log_directory()] {
        for (version, rest, path) in list(store, &directory).await {
            if rest != "json" {
                continue;
            }
            let bytes = store.get(&path).await.unwrap().bytes().await.unwrap();
            let text = std::str::from_utf8(&bytes).unwrap();
            let actions = text.lines().map(|line| serde_json::from_str(line).unwrap());
            entries.insert(version, actions.collect());
        }
    }
    for (at, version) in entries.keys().enumerate() {
        assert_eq!(at as u64, *version, "the log has a gap");
    }
    entries
}

pub async fn version(store: &InMemory) -> u64 {
    log(store).await.len() as u64 - 1
}

/// The actions that added the files of a version, by path.
async fn files(store: &InMemory, version: u64) -> BTreeMap<String, Value> {
    let mut files: BTreeMap<String, Value> = BTreeMap::new();
    let log = log(store).await;
    for action in log.range(..=version).flat_map(|entry| entry.1) {
        if let Some(add) = action.get("add") {
            let path = add["path"].as_str().unwrap().to_owned();
            files.insert(path, add.clone());
        }
        if let Some(remove) = action.get("remove") {
            let known = files.remove(remove["path"].as_str().unwrap());
            assert!(known.is_some(), "a file is removed that is not there");
        }
    }
    files
}

/// The days of the live files that do not say which commit their rows are of.
pub async fn untagged(store: &InMemory) -> BTreeSet<Option<String>> {
    let mut all = files(store, u64::MAX).await;
    all.retain(|_, add| add["tags"][DAY_DIGEST_TAG].is_null());
    all.values().map(day_of).collect()
}

fn day_of(add: &Value) -> Option<String> {
    add["partitionValues"]["day"].as_str().map(str::to_owned)
}

/// The live data files, with their rows.
pub async fn live(store: &InMemory) -> Vec<Live> {
    let mut live = Vec::new();
    for (path, add) in files(store, u64::MAX).await {
        let name = Path::parse(format!("{ROOT}/{path}")).unwrap();
        let bytes = store.get(&name).await.expect(&path).bytes().await.unwrap();
        let mut rows: Vec<(i64, String)> = Vec::new();
        for batch in ParquetRecordBatchReaderBuilder::try_new(bytes)
            .unwrap()
            .build()
            .unwrap()
        {
            let batch = batch.unwrap();
            let fingerprints = batch.column_by_name("fp").unwrap();
            let ids = batch.column_by_name("id").unwrap();
            assert_eq!(fingerprints.null_count() + ids.null_count(), 0);
            let fingerprints = fingerprints.as_primitive::<Int64Type>().values();
            let sketches = batch.column_by_name("sketch").unwrap();
            for (fingerprint, sketch) in fingerprints.iter().zip(sketches.as_binary::<i32>()) {
                assert_eq!(sketch, Some(sketch_of(*fingerprint).as_slice()), "{path}");
            }
            let ids = ids.as_string::<i32>();
            rows.extend(
                fingerprints
                    .iter()
                    .zip(ids)
                    .map(|(fp, id)| (*fp, id.unwrap().to_owned())),
            );
        }
        let read = rows.len();
        let deleted = add["tags"][DELETED].as_str();
        if let Some(id) = deleted {
            rows.retain(|row| row.1 != id);
        }
        let stats: Value = serde_json::from_str(add["stats"].as_str().unwrap()).unwrap();
        assert_eq!(stats["numRecords"], read, "{path}");
        live.push(Live {
            is_marked: deleted.is_some(),
            day: day_of(&add),
            rows,
            add,
        });
    }
    live
}

/// All rows, sorted.
pub async fn rows(store: &InMemory) -> Vec<Row> {
    let files = live(store).await.into_iter();
    let mut rows: Vec<Row> = files
        .flat_map(|file| {
            let day = file.day;
            let rows = file.rows.into_iter();
            rows.map(move |(fp, id)| (fp, id, day.clone()))
        })
        .collect();
    rows.sort();
    rows
}

/// Another program; each call commits at most once per file.
pub struct OtherProgram<'a>(pub &'a InMemory);

impl OtherProgram<'_> {
    /// Rewrites all files of a day as one, as OPTIMIZE does: no change of data, and no tags.
    pub async fn optimize(&self, day: &str) {
        let mut files = live(self.0).await;
        files.retain(|file| file.day.as_deref() == Some(day));
        if files.is_empty() {
            return;
        }
        let mut rows: Vec<_> = files.iter().flat_map(|file| file.rows.clone()).collect();
        rows.sort();
        let mut actions: Vec<Value> = files.iter().map(|file| remove(&file.add, false)).collect();
        actions.push(self.write(Some(day), &rows, false).await);
        self.commit("OPTIMIZE", actions).await;
    }

    /// Deletes rows by id, copy on write.
    pub async fn delete(&self, id: &str) {
        let mut actions = Vec::new();
        for file in live(self.0).await {
            let mut rest = file.rows.clone();
            rest.retain(|row| row.1 != id);
            if rest.len() == file.rows.len() {
                continue;
            }
            actions.push(remove(&file.add, true));
            if !rest.is_empty() {
                actions.push(self.write(file.day.as_deref(), &rest, true).await);
            }
        }
        if !actions.is_empty() {
            self.commit("DELETE", actions).await;
        }
    }

    /// Marks the rows with an id as deleted, by deletion vectors. At most one file has the id.
    pub async fn delete_by_vector(&self, id: &str) {
        for file in live(self.0).await {
            if file.is_marked || !file.rows.iter().any(|row| row.1 == id) {
                continue;
            }
            let protocol = json!({"protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["deletionVectors"],
                "writerFeatures": ["deletionVectors", "appendOnly"],
            }});
            let mut add = file.add.clone();
            add["dataChange"] = true.into();
            add["tags"] = json!({DELETED: id});
            add["deletionVector"] = vector();
            let actions = vec![protocol, remove(&file.add, true), json!({ "add": add })];
            self.commit("DELETE", actions).await;
        }
    }

    /// Rewrites each file that has a deletion vector, without the rows that the vector deletes.
    pub async fn purge(&self) {
        for file in live(self.0).await {
            if !file.is_marked {
                continue;
            }
            let mut actions = vec![remove(&file.add, false)];
            if !file.rows.is_empty() {
                let day = file.day.as_deref();
                actions.push(self.write(day, &file.rows, false).await);
            }
            self.commit("REORG", actions).await;
        }
    }

    /// Adds rows to a day, or to none.
    pub async fn append(&self, day: Option<&str>, rows: &[(i64, String)]) {
        let add = self.write(day, rows, true).await;
        self.commit("WRITE", vec![add]).await;
    }

    /// Replaces all rows of a day by others.
    pub async fn overwrite(&self, day: &str, rows: &[(i64, String)]) {
        let mut old = files(self.0, u64::MAX).await;
        old.retain(|_, add| day_of(add).as_deref() == Some(day));
        let mut actions: Vec<Value> = old.values().map(|add| remove(add, true)).collect();
        actions.push(self.write(Some(day), rows, true).await);
        self.commit_with(
            json!({
                "operation": "WRITE",
                "operationParameters": {
                    "mode": "Overwrite",
                    "predicate": format!("day = '{day}'"),
                },
                "timestamp": 0,
            }),
            actions,
        )
        .await;
    }

    /// Makes the table what it was at a version, if that differs and its data files are still there; says whether it did.
    pub async fn restore(&self, version: u64) -> bool {
        let (then, now) = (files(self.0, version).await, files(self.0, u64::MAX).await);
        let mut actions = Vec::new();
        for (path, add) in &then {
            if now.contains_key(path) {
                continue;
            }
            let name = Path::parse(format!("{ROOT}/{path}")).unwrap();
            if self.0.head(&name).await.is_err() {
                return false;
            }
            let mut add = add.clone();
            add["dataChange"] = true.into();
            actions.push(json!({ "add": add }));
        }
        let gone = now.iter().filter(|(path, _)| !then.contains_key(*path));
        actions.extend(gone.map(|(_, add)| remove(add, true)));
        if actions.is_empty() {
            return false;
        }
        self.commit("RESTORE", actions).await;
        true
    }

    /// Writes a data file, and returns the action that adds it.
    async fn write(&self, day: Option<&str>, rows: &[(i64, String)], data_change: bool) -> Value {
        let schema = Arc::new(Schema::new(vec![
            Field::new("fp", DataType::Int64, true),
            Field::new("id", DataType::Utf8, true),
            Field::new("sketch", DataType::Binary, true),
        ]));
        let fingerprints: Int64Array = rows.iter().map(|row| Some(row.0)).collect();
        let ids: StringArray = rows.iter().map(|row| Some(&row.1)).collect();
        let sketches: BinaryArray = rows.iter().map(|row| Some(sketch_of(row.0))).collect();
        let columns = RecordBatch::try_new(
            Arc::clone(&schema),
            vec![Arc::new(fingerprints), Arc::new(ids), Arc::new(sketches)],
        );
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, schema, None).unwrap();
        writer.write(&columns.unwrap()).unwrap();
        writer.close().unwrap();
        let directory = day.unwrap_or("__HIVE_DEFAULT_PARTITION__");
        let path = format!(
            "day={directory}/part-00000-{}-c000.snappy.parquet",
            uuid::Uuid::new_v4()
        );
        let size = bytes.len();
        let name = Path::from(format!("{ROOT}/{path}"));
        self.0.put(&name, bytes.into()).await.unwrap();
        json!({"add": {
            "path": path,
            "partitionValues": {"day": day},
            "size": size,
            "modificationTime": 0,
            "dataChange": data_change,
            "stats": json!({"numRecords": rows.len()}).to_string(),
        }})
    }

    /// Writes the next log entry.
    async fn commit(&self, operation: &str, actions: Vec<Value>) {
        self.commit_with(json!({"operation": operation, "timestamp": 0}), actions)
            .await;
    }

    async fn commit_with(&self, info: Value, mut actions: Vec<Value>) {
        let version = log(self.0).await.len();
        actions.push(json!({ "commitInfo": info }));
        let lines: Vec<String> = actions.iter().map(ToString::to_string).collect();
        let name = Path::from(format!("{ROOT}/_delta_log/{version:020}.json"));
        let create = PutOptions::from(PutMode::Create);
        let payload = lines.join("\n").into();
        self.0.put_opts(&name, payload, create).await.unwrap();
    }
}

/// The deletion vector of every file that has one. This reader learns from the tag [`DELETED`] which id it deletes.
fn vector() -> Value {
    json!({
        "storageType": "i",
        "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 40,
        "cardinality": 1,
    })
}

/// The action that removes the file that an action added.
fn remove(add: &Value, data_change: bool) -> Value {
    let mut remove = json!({
        "path": add["path"],
        "dataChange": data_change,
        "deletionTimestamp": 0,
        "extendedFileMetadata": true,
        "partitionValues": add["partitionValues"],
        "size": add["size"],
    });
    if add["tags"][DELETED].is_string() {
        // A file with another vector, or with none, is another file to Delta.
        remove["deletionVector"] = vector();
    }
    json!({ "remove": remove })
}

/// Writes a checkpoint of the latest version, and the hint at it.
pub async fn checkpoint(store: &Arc<InMemory>) {
    // The library does not open a table whose hint is wrong.
    let _ = store.delete(&hint()).await;
    let root: Arc<dyn ObjectStore> = store.clone();
    let prefixed: Arc<dyn ObjectStore> =
        Arc::new(PrefixStore::new(Arc::clone(&root), Path::from(ROOT)));
    let url = Url::parse(&format!("s3://model/{ROOT}/")).unwrap();
    let config = StorageConfig::default();
    let mut table = DeltaTable::new(default_logstore(prefixed, root, &url, &config));
    table.load().await.unwrap();
    create_checkpoint(&table, None).await.unwrap();
}

/// Takes away the log before its last checkpoint, as Delta does after a time; returns the version of that checkpoint.
pub async fn clean_log(store: &InMemory) -> Option<u64> {
    let log = list(store, &log_directory()).await;
    let checkpoints = log.iter().filter(|(_, rest, _)| rest != "json");
    let last = checkpoints.map(|(version, ..)| *version).max()?;
    for (version, rest, path) in log {
        if version < last {
            let kept = Path::from(format!("{CLEANED}/{version:020}.{rest}"));
            store.rename(&path, &kept).await.unwrap();
        }
    }
    // A hint at what is no longer there would make the log unreadable.
    if let Ok(found) = store.get(&hint()).await {
        let text = found.bytes().await.unwrap();
        let named: Option<Value> = serde_json::from_slice(&text).ok();
        if named.is_none_or(|named| named["version"] != last) {
            store.delete(&hint()).await.unwrap();
        }
    }
    Some(last)
}
