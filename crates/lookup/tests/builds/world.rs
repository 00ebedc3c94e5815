//! An archive in memory and an index of it. Each step opens them as a new process does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use archive::{
    Append, Archive, DocumentId, Existing, FingerprintWriter, IdSet, IdType, RunDefaults, SpecFiles,
};
use arrow::array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use chrono::NaiveDate;
use lookup::{BuildReport, Index, IndexFiles, Settings};
use object_store::memory::InMemory;
use simhash::{SketchBits, Spec};
use storage::{Location, Stores};
use url::Url;

const ARCHIVE: &str = "s3://model/archive";

/// Number and fingerprint of a document. Several documents may have one number.
pub type Row = (u16, u64);

/// The model of an archive: the rows of each day.
pub type Days = BTreeMap<usize, Vec<Row>>;

/// A document near a query: number of the query, distance, fingerprint, id and day.
pub type Hit = (usize, u32, u64, DocumentId, Option<NaiveDate>);

/// What the rows of an archive have, and where its index is.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Whether ids are numbers.
    pub bigint: bool,
    pub sketches: bool,
    /// Whether the index is in a store, and used from copies.
    pub in_store: bool,
}

/// An archive and an index; see the module.
pub struct World {
    store: Arc<InMemory>,
    /// Has the day to be committed, and the index or the copies of its segments.
    directory: tempfile::TempDir,
    shape: Shape,
}

fn date(day: usize) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, 1 + day as u32).unwrap()
}

/// An id as text; the texts have the order of the numbers.
fn text(number: u16) -> String {
    format!("document {number:05}")
}

/// The sketch of a row. It depends on the fingerprint, so that a test notices another row's sketch.
fn sketch(fingerprint: u64) -> [u8; 8] {
    (!fingerprint.rotate_left(9)).to_be_bytes()
}

impl World {
    /// An empty archive, without an index.
    pub async fn new(shape: Shape) -> Self {
        let world = Self {
            store: Arc::new(InMemory::new()),
            directory: tempfile::tempdir().unwrap(),
            shape,
        };
        let location = world.locate(ARCHIVE);
        let (id_type, spec, files) = (world.id_type(), world.spec(), SpecFiles::default());
        let defaults = RunDefaults::new(3, None);
        let created = Archive::create(&location, id_type, false, &spec, &files, &defaults);
        created.await.unwrap();
        world
    }

    fn id_type(&self) -> IdType {
        if self.shape.bigint {
            IdType::Bigint
        } else {
            IdType::String
        }
    }

    fn spec(&self) -> Spec {
        let sketch = if self.shape.sketches {
            SketchBits::Bits64
        } else {
            SketchBits::None
        };
        Spec {
            sketch,
            ..Spec::default()
        }
    }

    fn id(&self, number: u16) -> DocumentId {
        if self.shape.bigint {
            DocumentId::Number(number.into())
        } else {
            DocumentId::Text(text(number).into())
        }
    }

    /// A location as a new process resolves it.
    fn locate(&self, path: &str) -> Location {
        let stores = Stores::default();
        let store: Arc<InMemory> = Arc::clone(&self.store);
        stores.register(&Url::parse("s3://model").unwrap(), store);
        stores.locate(path).unwrap()
    }

    async fn archive(&self) -> Archive {
        Archive::open(&self.locate(ARCHIVE)).await.unwrap()
    }

    /// Commits a day, in files of at most `file_rows` rows. Replaces the day if it is there with other rows.
    pub async fn commit(&self, day: usize, rows: &[Row], file_rows: u64) -> Append {
        let mut rows = rows.to_vec();
        rows.sort_by_key(|(number, fingerprint)| (fingerprint.cast_signed(), *number));
        let numbers = rows.iter().map(|row| row.0);
        let fingerprints = rows.iter().map(|row| row.1);
        let ids: ArrayRef = if self.shape.bigint {
            Arc::new(
                numbers
                    .map(|number| Some(i64::from(number)))
                    .collect::<Int64Array>(),
            )
        } else {
            Arc::new(
                numbers
                    .map(|number| Some(text(number)))
                    .collect::<StringArray>(),
            )
        };
        let stored = fingerprints.clone().map(|value| Some(value.cast_signed()));
        let mut columns: Vec<ArrayRef> = vec![Arc::new(stored.collect::<Int64Array>()), ids];
        if self.shape.sketches {
            let sketches = fingerprints.map(|value| Some(sketch(value)));
            columns.push(Arc::new(sketches.collect::<BinaryArray>()));
        }
        let path = self.directory.path().join("day.parquet");
        let mut writer = FingerprintWriter::create(&path, self.id_type(), &self.spec()).unwrap();
        let batch = RecordBatch::try_new(writer.schema(), columns).unwrap();
        writer.write(batch).unwrap();
        let file = writer.finish().unwrap();
        let mut archive = self.archive().await.with_file_rows(file_rows);
        let appended = archive.append(date(day), &file, Existing::Replace);
        appended.await.unwrap()
    }

    pub async fn remove_day(&self, day: usize) {
        let mut archive = self.archive().await;
        archive.remove_day(date(day), None).await.unwrap();
    }

    /// Removes the documents with these numbers from all days.
    pub async fn remove_ids(&self, numbers: &[u16]) {
        let numbers = numbers.iter().copied();
        let ids = if self.shape.bigint {
            IdSet::Bigints(numbers.map(i64::from).collect())
        } else {
            IdSet::Strings(numbers.map(text).collect())
        };
        let mut archive = self.archive().await;
        archive.remove_ids(&ids).await.unwrap();
    }

    pub async fn compact(&self) {
        let mut archive = self.archive().await;
        archive.compact(None).await.unwrap();
    }

    /// The files of the index, as a new process finds them.
    pub fn files(&self) -> IndexFiles {
        let directory = self.directory.path();
        let index = if self.shape.in_store {
            "s3://model/index".to_owned()
        } else {
            directory.join("index").to_str().unwrap().to_owned()
        };
        let copies = directory.join("copies");
        IndexFiles::new(&self.locate(&index), &copies, directory).unwrap()
    }

    /// Brings the index up to date with the archive.
    pub async fn build(&self, merge_all: bool) -> lookup::Result<BuildReport> {
        self.build_while(merge_all, |_| {}).await
    }

    /// As [`Self::build`]; calls `rows_done` after it wrote each segment, before it publishes a version with it.
    pub async fn build_while(
        &self,
        merge_all: bool,
        rows_done: impl Fn(u64) + Send + Sync + 'static,
    ) -> lookup::Result<BuildReport> {
        let settings = Settings {
            threads: 2,
            merge_all,
        };
        let archive = self.archive().await;
        lookup::build(&archive, &self.files(), settings, Arc::new(rows_done)).await
    }

    pub fn index_directory(&self) -> PathBuf {
        self.directory.path().join("index")
    }

    /// What the index answers, sorted.
    pub fn hits(&self, index: &Index, queries: &[u64], k: u32) -> Vec<Hit> {
        self.try_hits(index, queries, k).unwrap()
    }

    /// As [`Self::hits`], of an index that may be damaged.
    pub fn try_hits(&self, index: &Index, queries: &[u64], k: u32) -> lookup::Result<Vec<Hit>> {
        let mut all = Vec::new();
        index.searcher().search(queries, k, &mut all)?;
        let mut hits = Vec::new();
        for found in &all {
            let expected = self.shape.sketches.then(|| sketch(found.fingerprint));
            for row in found.rows.clone() {
                let document = index.document(found.segment, row)?;
                assert_eq!(
                    document.sketch.as_deref(),
                    expected.as_ref().map(<[u8; 8]>::as_slice),
                    "the sketch of another row"
                );
                hits.push((
                    found.query as usize,
                    found.distance,
                    found.fingerprint,
                    document.id,
                    document.day,
                ));
            }
        }
        hits.sort();
        Ok(hits)
    }

    /// What the index should answer: brute force over the model, sorted.
    pub fn expected(&self, days: &Days, queries: &[u64], k: u32) -> Vec<Hit> {
        let mut hits = Vec::new();
        for (query, wanted) in queries.iter().enumerate() {
            for (day, rows) in days {
                for (number, fingerprint) in rows {
                    let distance = (fingerprint ^ wanted).count_ones();
                    if distance <= k {
                        let (id, day) = (self.id(*number), Some(date(*day)));
                        hits.push((query, distance, *fingerprint, id, day));
                    }
                }
            }
        }
        hits.sort();
        hits
    }
}
