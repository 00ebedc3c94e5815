//! Fuzzes the reader of data files with damaged and forged ones: footer, pages, checksums, offset
//! index. Without the facts that the log records of a file, the reader returns some rows or an
//! error. With them, it returns the rows that were written, or an error.
#![no_main]

use std::sync::{Arc, LazyLock};

use archive::{
    Archive, ArchiveError, ColumnNames, DecodedStep, FingerprintReader, Scope, Snapshot, Tail,
};
use arrow::array::{Array as _, AsArray as _};
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use engine::batch::Batch;
use inputs::fixture::{self, ARCHIVE};
use inputs::{Input, assert_not_internal, block_on, edited, run, scratch};
use libfuzzer_sys::fuzz_target;
use object_store::memory::InMemory;
use object_store::path::Path;
use storage::{Location, Stores};

/// Limit on the rows read from a row group: a Parquet page of a few bytes can claim billions.
const MAX_ROWS: usize = 1 << 20;
const NAME: &str = "file.parquet";
/// Memory limit for loading a batch, in bytes.
const MEMORY: usize = 64 << 20;

/// A data file of the archive, and the batch file that it was appended from.
struct Original {
    bytes: Vec<u8>,
    tail: Option<Tail>,
    batch: Vec<u8>,
}

static ORIGINAL: LazyLock<Original> = LazyLock::new(|| {
    let fixture = fixture::fixture();
    let day = &fixture.days[0];
    block_on(async {
        let stores = fixture::stores(Arc::new(fixture.store.fork()));
        let location = stores.locate(ARCHIVE).expect("a location");
        let archive = Archive::open(&location).await.expect("an archive");
        let base = Snapshot::open_archive(&archive, Scope::All).await;
        let files = base.expect("its files").files;
        let mut of_day = files.iter().filter(|file| file.day == Some(day.date));
        let file = of_day.next().expect("a file");
        assert!(file.tail.is_some(), "the log has the file's tail");
        Original {
            bytes: fixture::get(&fixture.store, file.location.path()).await,
            tail: file.tail,
            batch: std::fs::read(&day.file.path).expect("the day's file"),
        }
    })
});

fuzz_target!(|bytes: &[u8]| run(|| {
    let original = &*ORIGINAL;
    let mut input = Input::new(bytes);
    let choice = input.byte();
    if choice % 8 == 7 {
        return load_batch(original, input);
    }
    let with_tail = choice & 1 == 1;
    let is_local = choice & 2 == 2;
    let step = input.below(97) + 1;
    let bytes = edited(&original.bytes, &mut input);
    let (size, tail) = if with_tail {
// The log also records the size of the file.
(original.bytes.len(), original.tail)
} else { (bytes.len(), None) };
    let read = block_on(async {
        let location = put(is_local, bytes).await;
        read(&location, size as u64, tail, step).await
    });
    match read {
        Err(error) => assert_not_internal(error.kind(), &error),
        Ok(read) if with_tail => {
            let expected = &fixture::fixture().days[0].rows;
            let found: Vec<i64> = read.fingerprints.concat();
            let all = expected.iter().map(|row| row.0);
            assert!(all.eq(found), "other fingerprints than were written");
            for (row, id) in read.ids {
                assert_eq!(expected[row].1, id, "another id than was written");
            }
        }
        Ok(_) => {}
    }
}));

/// Puts a file on this machine or into a store, and returns its location.
async fn put(is_local: bool, bytes: Vec<u8>) -> Location {
    if is_local {
        let path = scratch().join(NAME);
        std::fs::write(&path, bytes).expect("a file");
        let located = Stores::default().locate(path.to_str().expect("a name"));
        return located.expect("a location");
    }
    let store = InMemory::new();
    fixture::put(&store, &Path::from(NAME), bytes).await;
    let stores = fixture::stores(Arc::new(store));
    stores
        .locate(&format!("s3://fuzz/{NAME}"))
        .expect("a location")
}

/// What was read from a file.
struct Read {
    /// Fingerprints of each row group.
    fingerprints: Vec<Vec<i64>>,
    /// Rows and their ids.
    ids: Vec<(usize, String)>,
}

/// Reads all fingerprints, and the id of every `step`th row of each row group.
async fn read(
    location: &Location,
    size: u64,
    tail: Option<Tail>,
    step: usize,
) -> Result<Read, ArchiveError> {
    let columns = ColumnNames::given_or_standard(None, None);
    let reader = FingerprintReader::open(NAME, location, size, &columns, tail).await?;
    reader.spec()?;
    let mut read = Read {
        fingerprints: Vec::new(),
        ids: Vec::new(),
    };
    for group in 0..reader.row_groups().len() {
        let _ = reader.fingerprint_bytes(group);
        let encoded = reader.fetch(group).await?;
        let mut values: Vec<i64> = Vec::new();
        reader.decode(group, encoded, &mut DecodedStep::default(), |step| {
            values.extend(step.values().iter().map(|value| value.cast_signed()));
            for index in 0..step.values().len() {
                let _ = step.row(index);
            }
            values.len() < MAX_ROWS
        })?;
        read.fingerprints.push(values);
    }
    let pages = reader.row_pages().await?;
    let mut first = 0;
    for (group, values) in read.fingerprints.iter().enumerate() {
        let count = values.len().min(MAX_ROWS);
        let rows: Vec<u32> = (0..count as u32).step_by(step).collect();
        let found = reader.rows(&pages, group, &rows, fixture::COLUMNS).await?;
        let ids = found.ids;
        assert_eq!(ids.len(), rows.len(), "one id of each row");
        assert_eq!(found.sketches.len(), rows.len(), "one sketch of each row");
        if let Some(ids) = ids.as_string_opt::<i32>() {
            let ids = ids.iter().map(|id| id.unwrap_or_default().to_owned());
            let rows = rows.iter().map(|row| first + *row as usize);
            read.ids.extend(rows.zip(ids));
        }
        first += count;
    }
    Ok(read)
}

/// Loads an edited batch file, as a part of a job does before the file's digest is known.
fn load_batch(original: &Original, mut input: Input<'_>) {
    let mut file = fixture::fixture().days[0].file.clone();
    file.path = scratch().join(NAME);
    let bytes = edited(&original.batch, &mut input);
    std::fs::write(&file.path, bytes).expect("a file");
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(MEMORY));
    // The program loads a batch on a separate thread, and turns a panic of that thread into an
    // error.
    let loaded = inputs::catch_library_panic(|| Batch::load(&file, &pool));
    if let Some(Err(error)) = loaded {
        assert_not_internal(error.kind(), &error);
    }
}
