//! Documents: files of texts, or of ready fingerprints, in any of the formats.
//!
//! Files of every format become one table: an id, and a text or a fingerprint. Partitions read it in parallel, and every
//! error names its file.

mod carried;
mod columns;
mod columns_read;
mod conform;
pub mod crawl_counts;
mod cuts;
mod documents_table;
pub mod error;
mod file;
mod fingerprint_bits;
mod formats;
mod held_texts;
mod kept;
mod left_out;
mod listed;
mod others;
mod page_text;
mod parquet;
mod partition_reader;
mod planned;
mod preference;
pub mod read_counts;
mod record_days;
mod resume_chunks;
mod row_set;
mod rows;
mod session;
mod shared_reader;
mod short_names;
mod source;
mod splits;
mod strays;
mod table_columns;
mod texts;
mod unread;
mod versions;
mod wanted_rows;
mod xhtml;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use archive::IdType;
use arrow::array::AsArray as _;
use arrow::datatypes::SchemaRef;
use datafusion::prelude::{DataFrame, SessionContext};
use futures::{StreamExt as _, TryStreamExt as _};
use simhash::Spec;
use storage::Location;
use tokio::sync::Semaphore;

use documents_table::DocumentsTable;
use file::InputFile;
use held_texts::HeldTexts;
use partition_reader::{PartitionReader, row_limit};
use rows::held::{Held, HeldFiles};
use short_names::short_names;
use splits::{Split, numbered_splits, total_bytes};
use strays::without_strays;

pub use archive::DocumentId;
use columns::Unseen;
pub use columns::{
    CRAWL_COLUMNS, Columns, Content, CrawlId, CrawlRecords, ID_NAMES, Pages, Remembered, TEXT_NAMES,
};
pub use columns_read::ColumnsRead;
pub use error::DocumentsError;
pub use formats::extensions;
pub use kept::{KeptDrafts, KeptFiles, KeptPlace, MadeCopy, Replace};
pub use left_out::{LeftOut, visible};
pub use planned::{DocumentsPlan, FileCuts, PlannedDocuments, SplitPlan};
pub use preference::{NO_PREFERENCE, Prefer, length_key};
pub use resume_chunks::ResumeChunk;
pub use row_set::{InputNumbers, RowSet};
pub use rows::charset_name;
pub use rows::dialect::Quote;
pub use session::Reading;
pub use table_columns::{
    POSITION, PREFERENCE, PREFERENCE_BEHIND, SOURCE, TEXT, TextRows, decision_fields,
    positions_and_bytes,
};
pub use template::{source_of_site, source_of_url, source_said};
pub use texts::MOST_OF_AN_ID;
pub use unread::{is_no_text, why_unread};
pub use versions::{FileVersion, file_versions};
pub use wanted_rows::Rows;

use crate::error::Result;
use crate::read_counts::{Note, Notes, ReadCounters};

/// The most files that are opened at the same time.
const OPENED: usize = 64;
/// The most row files (JSON Lines, CSV) among them that may be large: opening one holds a whole record in memory.
const ROW_FILES_OPENED: usize = 4;

/// Files of documents, opened, with their columns found.
#[derive(Debug, Clone)]
pub struct Documents {
    files: Vec<Arc<InputFile>>,
    /// Files without a row or a header, whose columns are unknown, and their paths below the common directory of all files.
    empty: Vec<(Location, String)>,
    given: String,
    /// The columns that were asked for, but for the carried ones.
    columns: Columns,
    carried: Vec<String>,
    /// Whether a file was cut within a record.
    had_wrong_cut: bool,
    skipped: Notes,
    held_texts: Arc<HeldTexts>,
}

impl Documents {
    /// Opens files, directories or patterns, and finds their columns.
    ///
    /// # Errors
    /// [`DocumentsError`] when a file cannot be read, has no usable columns, or has other content than the first; or when the
    /// values of a carried column cannot become the type of this column in the decisions.
    pub async fn open(
        context: &SessionContext,
        given: &[String],
        columns: &Columns,
    ) -> Result<Self> {
        let stores = &Reading::in_session(context)?.stores;
        let extensions = extensions();
        let (mut locations, mut skipped) = (Vec::new(), Notes::default());
        for path in given {
            let (files, left_out) = archive::input_files(stores, path, &extensions).await?;
            for (note, others) in [
                (Note::HiddenFiles, &left_out.hidden),
                (Note::OtherEndings, &left_out.other_endings),
                (Note::UnreadableNames, &left_out.unreadable_names),
                (Note::NoFiles, &left_out.no_files),
            ] {
                skipped.add(note, others.number, &others.first);
            }
            if files.is_empty() {
                tracing::warn!("{path}: there is no file of documents");
            }
            locations.extend(without_strays(path, files, &mut skipped));
        }
        // A file with several paths or links is read once.
        let mut seen = HashSet::new();
        locations.retain(|location: &Location| seen.insert(location.identity()));
        let given = given.join(", ");
        let mut documents = Self::open_files(context, given, locations, columns).await?;
        documents.skipped = skipped;
        documents.refuse_other_texts()?;
        let is_crawl = |file: &Arc<InputFile>| file.known_columns().contains(&"url");
        if documents.files.iter().any(is_crawl) {
            let limit = row_limit(context);
            documents.columns.crawl.limits = Some((limit.record, limit.window_log));
        } else if columns.crawl != CrawlRecords::default() {
            tracing::warn!(
                "{}: --id-from, --status and --check-digests change nothing: they are for WARC files",
                documents.given
            );
        }
        Ok(documents)
    }

    /// Opens exactly the files at `locations`, and finds their columns. Errors that concern all of
    /// them name them `given`.
    pub async fn open_files(
        context: &SessionContext,
        given: String,
        locations: Vec<Location>,
        columns: &Columns,
    ) -> Result<Self> {
        let held = HashMap::new();
        let documents = Self::open_some(context, given, locations, columns, held).await?;
        documents.check_seen()?;
        Ok(documents)
    }

    /// As [`Self::open_files`], of files that may be some of all: others may have a column that none of these has. `held` are in
    /// memory, by their paths.
    pub(crate) async fn open_some(
        context: &SessionContext,
        given: String,
        locations: Vec<Location>,
        columns: &Columns,
        held: HashMap<String, Held>,
    ) -> Result<Self> {
        let held_files = &HeldFiles::new(&context.runtime_env().memory_pool, held);
        let row_files = &Semaphore::new(OPENED);
        let opened: Vec<Option<InputFile>> = futures::stream::iter(locations.clone())
            .map(|location| {
                formats::open(location, columns, row_limit(context), row_files, held_files)
            })
            .buffered(OPENED)
            .try_collect()
            .await?;
        let names = short_names(&locations, columns);
        let (mut files, mut empty) = (Vec::new(), Vec::new());
        for ((location, short_name), opened) in locations.into_iter().zip(names).zip(opened) {
            match opened {
                Some(file) => files.push(Arc::new(InputFile { short_name, ..file })),
                None => empty.push((location, short_name)),
            }
        }
        let contents = files.iter().map(|file| file.columns.content.as_ref());
        let first = contents.clone().flatten().next();
        for (file, content) in files.iter().zip(contents) {
            if let Some((first, other)) = first.zip(content)
                && std::mem::discriminant(first) != std::mem::discriminant(other)
            {
                return Err(file.bad_data(format!(
                    "it has {other}, but {} has {first}",
                    files[0].location
                )));
            }
        }
        let mut columns = columns.clone();
        let documents = Self {
            files,
            empty,
            given,
            carried: std::mem::take(&mut columns.carried),
            columns,
            had_wrong_cut: false,
            skipped: Notes::default(),
            held_texts: Arc::new(HeldTexts::new(&context.runtime_env().memory_pool)),
        };
        documents.check_carried()?;
        Ok(documents)
    }

    /// Refuses a column that an option names and that no document has; warns if it may be only the first documents.
    fn check_seen(&self) -> Result<()> {
        let Some(first) = self.files.first() else {
            return Ok(());
        };
        for Unseen { name, columns, .. } in &first.columns.unseen {
            let of_file = |file: &Arc<InputFile>| {
                let mut unseen = file.columns.unseen.iter();
                unseen
                    .find(|other| other.name == *name)
                    .map(|other| other.in_whole_file)
            };
            let in_whole: Option<Vec<bool>> = self.files.iter().map(of_file).collect();
            let Some(in_whole) = in_whole else { continue };
            let hint = self.columns.prefer.hint(|column| column == name);
            let said = format!("no document has the column {name:?}, which an option names{hint}");
            if in_whole.into_iter().all(|whole| whole) {
                let reason = format!("{said}; its columns are {columns}");
                return Err(first.bad_data(reason));
            }
            tracing::warn!(
                "{}: {said}, among the first ones; its columns are {columns}",
                self.given
            );
        }
        Ok(())
    }

    /// Opens the same files again, and finds `columns` in them.
    pub async fn reopen(&self, context: &SessionContext, columns: &Columns) -> Result<Self> {
        let locations = self.files.iter().map(|file| file.location.clone());
        let columns = Columns {
            pages: self.columns.pages,
            domains: self.columns.domains,
            ..columns.clone()
        };
        let given = self.given.clone();
        let held = self.files.iter().filter_map(|file| {
            let held = file.rows()?.held.clone()?;
            Some((file.location.given().to_owned(), held))
        });
        let (locations, held) = (locations.collect(), held.collect());
        let mut reopened = Self::open_some(context, given, locations, &columns, held).await?;
        reopened.check_seen()?;
        reopened.leave_out(self.left_out());
        reopened.held_texts = Arc::clone(&self.held_texts);
        // Empty files are not opened again, but they count for the common directory.
        for (file, before) in reopened.files.iter_mut().zip(&self.files) {
            Arc::make_mut(file)
                .short_name
                .clone_from(&before.short_name);
        }
        reopened.cut_as(self);
        Ok(reopened)
    }

    /// The columns that were asked for, but for the carried ones, and how pages are read.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Whether some of the files have pages: responses of a crawl, or HTML.
    pub fn have_pages(&self) -> bool {
        let has_pages = |file: &Arc<InputFile>| formats::has_pages(&file.location.file_name());
        self.files.iter().any(has_pages)
    }

    /// Reads pages in another way from now on.
    pub fn read_pages(&mut self, pages: Pages) {
        self.columns.pages = pages;
        for file in &mut self.files {
            Arc::make_mut(file).columns.pages = pages;
        }
    }

    /// Takes registrable domains, not hosts, for sources from now on.
    pub fn source_by_domains(&mut self) {
        self.columns.domains = true;
        for file in &mut self.files {
            Arc::make_mut(file).columns.domains = true;
        }
    }

    /// Leaves the templates of sources out of the texts from now on, and their markup; or no longer.
    pub fn leave_out(&mut self, left_out: Option<&Arc<LeftOut>>) {
        for file in &mut self.files {
            Arc::make_mut(file).columns.left_out = left_out.cloned();
        }
    }

    /// What is left out of the texts.
    pub fn left_out(&self) -> Option<&Arc<LeftOut>> {
        self.files.first()?.columns.left_out.as_ref()
    }

    /// Whether documents have sources: the files have a column that says them; or the first document's id is a URL.
    pub async fn have_sources(&self, context: &SessionContext) -> Result<bool> {
        if self.files.iter().any(|file| file.columns.source.is_some()) {
            return Ok(true);
        }
        let has_text_ids =
            |file: &&Arc<InputFile>| file.columns.id.is_some() && file.id_type == IdType::String;
        let Some(file) = self.files.iter().find(has_text_ids) else {
            return Ok(false);
        };
        let first = Split::all(0, 0, file).into_iter().take(1).collect();
        let table = self.table_of_splits(context, IdType::String, 1, Rows::All, first, None)?;
        let failed = || DocumentsError::query(self.given());
        let mut rows = table.execute_stream().await.map_err(failed())?;
        let first = rows.next().await.transpose().map_err(failed())?;
        let first = first.filter(|batch| batch.num_rows() > 0);
        let id = first
            .as_ref()
            .and_then(|batch| batch.column(0).as_string_opt::<i32>());
        Ok(id.is_some_and(|ids| source_of_url(ids.value(0)).is_some()))
    }

    /// The files at the paths given that are not read.
    pub fn skipped(&self) -> &Notes {
        &self.skipped
    }

    /// The paths as they were given, joined by commas.
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The number of files with rows.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// The first file without an id column, and the number of other such files: their documents get the id `file:row`. `None`
    /// if there is no such file.
    pub fn files_with_row_ids(&self) -> Option<(String, usize)> {
        let has_row_ids =
            |file: &&Arc<InputFile>| file.columns.id.is_none() && !file.columns.is_one_document;
        let mut files = self.files.iter().filter(has_row_ids);
        let first = files.next()?.location.to_string();
        Some((first, files.count()))
    }

    /// Whether the content is ready fingerprints.
    pub fn has_fingerprints(&self) -> bool {
        matches!(
            self.files.first().map(|file| &file.columns.content),
            Some(Some(Content::Fingerprint(_)))
        )
    }

    /// Whether the content is ready fingerprints with sketches.
    pub fn has_sketches(&self) -> bool {
        !self.files.is_empty() && self.files.iter().all(|file| file.columns.sketches)
    }

    /// The type of the ids: text when the files differ; `None` without files.
    pub fn id_type(&self) -> Option<IdType> {
        let mut types = self.files.iter().map(|file| file.id_type);
        let first = types.next()?;
        Some(if types.all(|other| other == first) {
            first
        } else {
            IdType::String
        })
    }

    /// The spec of ready fingerprints, with a file that declares it; `None` when no file does.
    ///
    /// # Errors
    /// [`ArchiveError::SpecMismatch`](archive::ArchiveError::SpecMismatch) when files declare different specs.
    pub fn spec(&self) -> Result<Option<(String, Spec)>> {
        let mut found: Option<(String, Spec)> = None;
        for file in &self.files {
            let Some(spec) = &file.spec else { continue };
            match &found {
                Some((name, other)) if other != spec => {
                    return Err(archive::ArchiveError::SpecMismatch {
                        left: name.clone(),
                        right: file.location.to_string(),
                        differences: other.differences(spec),
                    }
                    .into());
                }
                _ => found = Some((file.location.to_string(), spec.clone())),
            }
        }
        Ok(found)
    }

    /// The number of documents, from the files' footers; `None` unless all files have one.
    pub fn known_rows(&self) -> Option<u64> {
        let rows = |file: &Arc<InputFile>| {
            let footer = file.footer.as_ref()?.metadata();
            Some(footer.file_metadata().num_rows().max(0).cast_unsigned())
        };
        self.files.iter().map(rows).sum()
    }

    /// Estimated bytes of ids and content of all documents, before compression.
    pub fn bytes(&self) -> u64 {
        total_bytes(&self.all_splits())
    }

    fn all_splits(&self) -> Vec<Split> {
        numbered_splits(&self.files)
    }

    /// Holds the texts when they are read next with counters, for these documents and those that are [reopened](Self::reopen), if
    /// they find memory, and if it takes long to decode them. Until they are read again, nothing may change how they are read.
    pub fn hold_texts(&self) {
        // Memory is filled as fast as rows are parsed that are not compressed.
        let is_parsed = |split: &Split| split.rows.is_none() && !split.is_compressed();
        let splits = self.all_splits();
        if !splits.iter().all(is_parsed) {
            self.held_texts.begin(total_bytes(&splits));
        }
    }

    /// What was read since [`Self::hold_texts`] is all.
    pub fn texts_are_read(&self) {
        self.held_texts.end();
    }

    /// The table of these `rows`: columns `id`, and `text` (bytes), or `fp` and, if there are sketches, `sketch`; then those that the
    /// rows have beside them. `counters` count the records of WARC files, and take notes of documents; without them, nothing is said of
    /// records that are left out.
    pub fn table(
        &self,
        context: &SessionContext,
        id_type: IdType,
        partitions: usize,
        rows: Rows,
        counters: Option<&Arc<ReadCounters>>,
    ) -> Result<DataFrame> {
        if let Some(table) = self.held_texts.table(context, &rows, id_type)? {
            return Ok(table);
        }
        let splits = self.all_splits();
        self.table_of_splits(context, id_type, partitions, rows, splits, counters)
    }

    fn table_of_splits(
        &self,
        context: &SessionContext,
        id_type: IdType,
        partitions: usize,
        rows: Rows,
        splits: Vec<Split>,
        counters: Option<&Arc<ReadCounters>>,
    ) -> Result<DataFrame> {
        let content = self.files.first();
        let content = content.and_then(|file| file.columns.content.as_ref());
        let decides = matches!(rows, Rows::WithDecisionColumns | Rows::At(_));
        let decide_by = decides.then_some(&self.columns.prefer);
        let schema =
            table_columns::schema(id_type, content, self.has_sketches(), decide_by, vec![]);
        let pass = counters.map(|counters| (counters, &self.held_texts));
        read_table(context, schema, id_type, partitions, rows, splits, pass)
    }
}

/// The table of `rows` of `splits`; its columns are those of `schema`. A `pass` over all documents counts them, and may hold their
/// texts.
fn read_table(
    context: &SessionContext,
    schema: SchemaRef,
    id_type: IdType,
    partitions: usize,
    rows: Rows,
    splits: Vec<Split>,
    pass: Option<(&Arc<ReadCounters>, &Arc<HeldTexts>)>,
) -> Result<DataFrame> {
    let table = DocumentsTable {
        dealt: splits::deal(splits, partitions),
        partitions,
        reader: PartitionReader {
            splits: [].into(),
            schema,
            id_type,
            rows,
            counters: pass.map(|(counters, _)| Arc::clone(counters)),
            held_texts: pass.map(|(_, held_texts)| Arc::clone(held_texts)),
            context: context.clone(),
        },
    };
    context
        .read_table(Arc::new(table))
        .map_err(DocumentsError::query("planning the batch"))
}
