//! The documents that were dropped, so that they can be decided about again when others were removed.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array as _, AsArray as _, BooleanArray, Date32Array, Int64Array, RecordBatch, StringArray,
};
use arrow::datatypes::{DataType, Date32Type, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use deltalake_core::kernel::Action;
use deltalake_core::protocol::DeltaOperation;
use futures::StreamExt as _;
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use storage::StorageError;

use crate::commit::COMMIT_ATTEMPTS;
use crate::data_files::{RowsToWrite, WrittenFile};
use crate::day_records::CommittedDay;
use crate::decision_settings::DecisionSettings;
use crate::error::{ArchiveError, Result};
use crate::remove::Rewrite;
use crate::schema::{self, KEPT, SPEC_KEY};
use crate::table::{Archive, DataFile};

/// Column of a file of dropped documents: the day.
pub const DROPPED_DAY: &str = "day";
/// Column of a file of dropped documents: the path of the data file.
pub const DROPPED_FILE: &str = "file";
/// Column of a file of dropped documents: the row of the data file.
pub const DROPPED_ROW: &str = "row";

/// The rows of documents, by the paths of their data files; ascending.
pub type RowsByFile = BTreeMap<String, Vec<u64>>;

impl Archive {
    /// The data files in the order of the commits, and how their documents were decided; `None` if they were not, or nothing says it.
    pub async fn files_with_decisions(&self) -> Result<Vec<(DataFile, Option<DecisionSettings>)>> {
        let mut all = Vec::new();
        let mut recorded = None;
        for mut file in self.files()? {
            let mut decisions = file.decisions.clone();
            // Another program that rewrote the file dropped its tags: the records of its day say it, if they agree.
            if let (None, Some(day)) = (&file.day_digest, file.day) {
                let batches = match &recorded {
                    Some(batches) => batches,
                    None => &*recorded.insert(self.recorded_batches().await?),
                };
                let mut committed = Vec::new();
                for batch in batches.iter().filter(|batch| batch.day == day) {
                    committed.extend(self.last_record(*batch).await?);
                }
                file.base_version = committed.iter().map(|batch| batch.base_version).min();
                committed.dedup_by(|batch, before| batch.decisions == before.decisions);
                decisions = match &committed[..] {
                    [all] => all.decisions.clone(),
                    _ => None,
                };
            }
            all.push((file, decisions));
        }
        all.sort_by(|(a, _), (b, _)| (a.base_version, &a.path).cmp(&(b.base_version, &b.path)));
        Ok(all)
    }

    /// Writes a Parquet file of the dropped documents (`kept` is false) of `files` whose file and id `is_asked` accepts: fingerprint, id
    /// and sketch, and [`DROPPED_DAY`], [`DROPPED_FILE`] and [`DROPPED_ROW`], in the order of the files. Returns their number.
    pub async fn write_dropped(
        &self,
        path: &Path,
        files: Vec<DataFile>,
        is_asked: impl Fn(&DataFile, &str) -> bool,
    ) -> Result<u64> {
        let name = path.display().to_string();
        let failed = |error| ArchiveError::parquet(name.clone())(error);
        let arrow_error = ArchiveError::arrow(&name);
        let spec = KeyValue::new(SPEC_KEY.to_owned(), self.spec().to_json());
        let properties = WriterProperties::builder()
            .set_key_value_metadata(Some(vec![spec]))
            .build();
        let schema = dropped_schema(&self.rows_schema(true));
        let file = File::create(path).map_err(StorageError::io(&name))?;
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties));
        let mut writer = writer.map_err(failed)?;
        let mut count = 0;
        let mut rows = std::pin::pin!(self.rows_of(files));
        while let Some((file, batches)) = rows.next().await.transpose()? {
            let mut first = 0;
            for batch in batches {
                let batch = batch?;
                let dropped =
                    dropped_rows(&batch, &file, first, &schema, &is_asked).map_err(&arrow_error)?;
                first += batch.num_rows() as i64;
                count += dropped.num_rows() as u64;
                writer.write(&dropped).map_err(failed)?;
            }
        }
        writer.close().map_err(failed)?;
        Ok(count)
    }

    /// Records in one commit that the documents at `rows` are kept. Returns the version.
    ///
    /// # Errors
    /// [`ArchiveError::Busy`] when another commit changed their data files; nothing is changed then.
    pub async fn record_kept(&mut self, rows: &RowsByFile) -> Result<u64> {
        self.preflight().await?;
        for _ in 0..COMMIT_ATTEMPTS {
            let mut files = self.files()?;
            files.retain(|file| rows.contains_key(&file.path));
            if files.len() < rows.len() {
                break;
            }
            let mut written = Vec::new();
            let actions = self.write_kept(&files, rows, &mut written).await;
            let actions = self.made_or_removed(actions, &written).await?;
            let rewrite = Rewrite {
                documents: rows.values().map(|rows| rows.len() as u64).sum(),
                operation: DeltaOperation::Update {
                    predicate: Some(format!("not {KEPT}")),
                },
                removed_files: files,
                actions,
                transactions: Vec::new(),
                written,
            };
            if let Some(version) = self.commit_rewrite(rewrite).await? {
                return Ok(version);
            }
        }
        Err(self.busy_error())
    }

    /// Writes the files with these rows kept; returns the actions that add them.
    async fn write_kept(
        &self,
        files: &[DataFile],
        rows: &RowsByFile,
        written: &mut Vec<WrittenFile>,
    ) -> Result<Vec<Action>> {
        let now = chrono::Utc::now().timestamp_millis();
        let mut actions = Vec::new();
        for file in files {
            let name = self.location().child_name(&file.path);
            let kept = &rows[&file.path];
            let stored = self.stored_rows(file).await?;
            let stored: Vec<RecordBatch> = stored.collect::<Result<_>>()?;
            let count: usize = stored
                .iter()
                .map(|batch| batch.num_rows() - batch.column(0).null_count())
                .sum();
            let mut first = 0;
            let changed = stored.into_iter().map(|batch| {
                let end = first + batch.num_rows() as u64;
                let here = &kept[kept.partition_point(|row| *row < first)..];
                let here = here.iter().take_while(|row| **row < end);
                let here: Vec<usize> = here.map(|row| (row - first) as usize).collect();
                first = end;
                with_kept_rows(&batch, &here).map_err(ArchiveError::arrow(&name))
            });
            let from = written.len();
            let mut changed = RowsToWrite::foreign(changed);
            self.write_files(file.day, count as u64, &mut changed, written)
                .await?;
            let (batch, committed) = (file.batch(), CommittedDay::of_file(file));
            let added = written[from..].iter();
            actions.extend(added.map(|new| new.add_action(batch, committed.as_ref(), now, true)));
        }
        Ok(actions)
    }
}

/// The columns of rows of data files, without decisions, and the place of each row.
fn dropped_schema(rows: &SchemaRef) -> SchemaRef {
    let own = rows.fields().iter().filter(|field| field.name() != KEPT);
    let places = [
        Field::new(DROPPED_DAY, DataType::Date32, true),
        Field::new(DROPPED_FILE, DataType::Utf8, false),
        Field::new(DROPPED_ROW, DataType::Int64, false),
    ];
    let fields = own.cloned().chain(places.into_iter().map(Arc::new));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Those rows of a record batch that were dropped; `first` is the number of the first row in the file.
fn dropped_rows(
    rows: &RecordBatch,
    file: &DataFile,
    first: i64,
    schema: &SchemaRef,
    is_asked: &impl Fn(&DataFile, &str) -> bool,
) -> Result<RecordBatch, ArrowError> {
    let day = file.day.map(Date32Type::from_naive_date);
    let ids = arrow::compute::cast(rows.column(1), &DataType::Utf8)?;
    let ids = ids.as_string::<i32>();
    let is_dropped: BooleanArray = (0..rows.num_rows())
        .map(|row| {
            let is_dropped =
                schema::kept_at(rows, row) == Some(false) && rows.column(0).is_valid(row);
            Some(is_dropped && is_asked(file, ids.value(row)))
        })
        .collect();
    let count = rows.num_rows();
    let mut columns = Vec::new();
    for field in schema.fields() {
        columns.push(
            match (field.name().as_str(), rows.column_by_name(field.name())) {
                (_, Some(own)) => Arc::clone(own),
                (DROPPED_DAY, None) => Arc::new(Date32Array::from(vec![day; count])),
                (DROPPED_FILE, None) => {
                    Arc::new(StringArray::from(vec![file.path.as_str(); count]))
                }
                (_, None) => Arc::new((first..first + count as i64).collect::<Int64Array>()),
            },
        );
    }
    let all = RecordBatch::try_new(Arc::clone(schema), columns)?;
    arrow::compute::filter_record_batch(&all, &is_dropped)
}

fn with_kept_rows(rows: &RecordBatch, kept: &[usize]) -> Result<RecordBatch, ArrowError> {
    let at = rows.schema().index_of(KEPT)?;
    let mut values: Vec<Option<bool>> = rows.column(at).as_boolean().iter().collect();
    for row in kept {
        values[*row] = Some(true);
    }
    let mut columns = rows.columns().to_vec();
    columns[at] = Arc::new(BooleanArray::from(values));
    RecordBatch::try_new(rows.schema(), columns)
}
