//! A small archive in memory, built once, which inputs then edit.

use std::sync::{Arc, LazyLock};

use archive::fingerprint_file::FingerprintWriter;
use archive::{Append, Archive, Existing, FingerprintFile, IdType, RowColumns, RunDefaults, SpecFiles};
use arrow::array::{BinaryArray, Int64Array, RecordBatch, StringArray};
use chrono::NaiveDate;
use deltalake_core::logstore::{StorageConfig, default_logstore};
use deltalake_core::{DeltaTable, checkpoints};
use futures::TryStreamExt as _;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreExt as _};
use simhash::{SketchBits, Spec};
use storage::Stores;
use url::Url;

pub const ARCHIVE: &str = "s3://fuzz/archive";
pub const SKETCH: SketchBits = SketchBits::Bits64;
/// All columns of the archive.
pub const COLUMNS: RowColumns = RowColumns {
    sketch: SKETCH,
    kept: true,
};
/// Number of documents of each day: few, but enough for several Parquet pages of ids.
const DOCUMENTS: [usize; 2] = [2100, 5];

pub struct Day {
    pub date: NaiveDate,
    /// The file of its fingerprints, as the fingerprint stage (map 1) writes it.
    pub file: FingerprintFile,
    pub rows: Vec<(i64, String)>,
}

/// The archive, and those of its objects that inputs edit.
pub struct Fixture {
    /// All objects except the checkpoint.
    pub store: InMemory,
    /// Log entries and records, with their names.
    pub texts: Vec<(Path, Vec<u8>)>,
    /// A checkpoint of the last version, and the object that points to it, with their names.
    pub checkpoint: Vec<(Path, Vec<u8>)>,
    /// The days, in order.
    pub days: Vec<Day>,
}

/// Returns stores that reach `store` at `s3://fuzz`. Each input needs new ones, because they cache what they read.
pub fn stores(store: Arc<dyn ObjectStore>) -> Stores {
    let stores = Stores::default();
    stores.register(&url(""), store);
    stores
}

fn url(path: &str) -> Url {
    Url::parse(&format!("s3://fuzz/{path}")).expect("a URL")
}

/// Returns the archive. The first call builds it with [`crate::block_on`], so it must not come from a future.
pub fn fixture() -> &'static Fixture {
    static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| crate::block_on(build()));
    &FIXTURE
}

/// Puts an object into a store.
pub async fn put(store: &InMemory, path: &Path, bytes: Vec<u8>) {
    store.put(path, bytes.into()).await.expect("a place");
}

/// Returns the bytes of an object.
pub async fn get(store: &InMemory, path: &Path) -> Vec<u8> {
    let object = store.get(path).await.expect("an object");
    object.bytes().await.expect("its bytes").to_vec()
}

async fn build() -> Fixture {
    let store = Arc::new(InMemory::new());
    let stores = stores(Arc::clone(&store) as _);
    let location = stores.locate(ARCHIVE).expect("a location");
    let spec = Spec {
        sketch: SKETCH,
        ..Spec::default()
    };
    let spec_files = SpecFiles::default();
    let defaults = RunDefaults::new(3, None);
    let created = Archive::create(
        &location,
        IdType::String,
        true,
        &spec,
        &spec_files,
        &defaults,
    );
    let mut archive = created.await.expect("an archive");
    let mut days = Vec::new();
    for (number, count) in (0..).zip(DOCUMENTS) {
        let day = day(number, count, &spec);
        let appended = archive.append(day.date, &day.file, Existing::Keep).await;
        assert!(matches!(appended, Ok(Append::Committed(_))), "{appended:?}");
        days.push(day);
    }
    let plain = store.fork();
    let texts = objects_named(&plain, |name| name.ends_with(".json")).await;
    assert!(texts.len() > days.len(), "{texts:?}");
    let root = Arc::clone(&store) as Arc<dyn ObjectStore>;
    let prefixed = PrefixStore::new(Arc::clone(&root), "archive");
    let config = StorageConfig::default();
    let mut table = DeltaTable::new(default_logstore(
        Arc::new(prefixed),
        root,
        &url("archive/"),
        &config,
    ));
    table.load().await.expect("the table");
    let made = checkpoints::create_checkpoint(&table, None).await;
    made.expect("a checkpoint");
    let checkpoint = objects_named(&store, |name| name.contains("checkpoint")).await;
    assert_eq!(checkpoint.len(), 2, "a checkpoint and what points to it");
    Fixture {
        store: plain,
        texts,
        checkpoint,
        days,
    }
}

/// Returns the objects whose names satisfy `is_wanted`, with their names.
async fn objects_named(store: &InMemory, is_wanted: fn(&str) -> bool) -> Vec<(Path, Vec<u8>)> {
    let listed: Vec<_> = store.list(None).try_collect().await.expect("a listing");
    let mut found = Vec::new();
    for path in listed.into_iter().map(|meta| meta.location) {
        if path.filename().is_some_and(is_wanted) {
            let bytes = get(store, &path).await;
            found.push((path, bytes));
        }
    }
    found.sort();
    found
}

/// Builds the day of this number with `count` documents, and writes its file.
fn day(number: u32, count: usize, spec: &Spec) -> Day {
    let mut rows: Vec<(i64, String)> = (0..count as u64)
        .map(|row| {
            let mixed = (row + 1 + u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed.cast_signed(), format!("{number}-{row:06}"))
        })
        .collect();
    rows.sort();
    let path = crate::scratch().join(format!("{number}.parquet"));
    let writer = FingerprintWriter::create(&path, IdType::String, spec);
    let mut writer = writer.expect("a file");
    let fingerprints: Int64Array = rows.iter().map(|row| Some(row.0)).collect();
    let ids: StringArray = rows.iter().map(|row| Some(&row.1)).collect();
    let sketches: BinaryArray = rows.iter().map(|row| Some(row.0.to_be_bytes())).collect();
    let batch = RecordBatch::try_new(
        archive::schema::fingerprint_schema(IdType::String, SKETCH, true),
        vec![
            Arc::new(fingerprints),
            Arc::new(ids),
            Arc::new(sketches),
        ],
    );
    writer
        .write(batch.expect("a batch"))
        .expect("to be written");
    Day {
        date: NaiveDate::from_ymd_opt(2026, 1, 1 + number).expect("a date"),
        file: writer.finish().expect("a whole file"),
        rows,
    }
}
