//! Decides again about the documents that an archive dropped: each is compared with all that it keeps.

use std::fs::File;

use archive::schema::{FINGERPRINT, ID};
use archive::{Archive, ArchiveError, DROPPED_DAY, DROPPED_FILE, DROPPED_ROW, DataFile};
use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch};
use arrow::datatypes::{DataType, Date32Type, Int64Type};
use engine::decide::{DUPLICATE_DAY, DUPLICATE_OF, KEPT};
use engine::run::{OnRepeats, RunLimits, compared_by};
use engine::{CompareOptions, EngineError, RunSettings};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use storage::StorageError;

use super::run::settings;
use crate::args::{ColumnArgs, RunArgs};
use crate::exit::Failure;
use crate::process::Process;

/// A document that was dropped.
pub(super) struct Again {
    pub(super) id: String,
    /// Its day, in days since 1970.
    pub(super) day: Option<i32>,
    /// The nearest kept document, and its day; `None` if there is none.
    pub(super) of: Option<(String, Option<i32>)>,
    /// Where it is: its data file, and the row there.
    pub(super) place: (String, u64),
}

/// Documents of commits that follow each other, decided by settings that find the same pairs.
pub(super) struct Decided {
    files: Vec<DataFile>,
    compare: CompareOptions,
}

/// The documents of an archive, in the order of the commits.
pub(super) async fn decided(archive: &Archive) -> Result<Vec<Decided>, Failure> {
    let mut all: Vec<Decided> = Vec::new();
    for (file, decisions) in archive.files_with_decisions().await? {
        let compare = decisions.map(|decisions| compared_by(&decisions.settings));
        let compare = compare.unwrap_or_default();
        match all.last_mut() {
            Some(last) if last.compare == compare => last.files.push(file),
            _ => all.push(Decided {
                files: vec![file],
                compare,
            }),
        }
    }
    Ok(all)
}

/// Calls `each` for those of the documents that the archive at `dir` dropped and for which `is_asked` is true, by file and id. If `within`,
/// those without an original are compared with each other, too, in the order of the commits: the first is kept then.
pub(super) async fn decide_again(
    process: &Process,
    (dir, archive): (&str, &Archive),
    decided: Decided,
    is_asked: impl Fn(&DataFile, &str) -> bool,
    within: bool,
    mut each: impl FnMut(Again),
) -> Result<(), Failure> {
    let scratch = process.scratch.path();
    // The process remembers files by their names.
    let own = tempfile::tempdir_in(scratch).map_err(StorageError::io(scratch.display()))?;
    let [dropped, decisions] =
        ["dropped.parquet", "again.parquet"].map(|name| own.path().join(name));
    let Decided { files, compare } = decided;
    if archive.write_dropped(&dropped, files, is_asked).await? == 0 {
        return Ok(());
    }
    let carried = [DROPPED_DAY, DROPPED_FILE, DROPPED_ROW];
    let args = RunArgs {
        documents: vec![dropped.display().to_string()],
        base: vec![dir.to_owned()],
        decisions: Some(decisions.display().to_string()),
        no_within: !within,
        prefer: vec!["first".into()],
        carried: carried.map(str::to_owned).into(),
        columns: ColumnArgs {
            id_column: Some(ID.into()),
            fingerprint_column: Some(FINGERPRINT.into()),
            ..ColumnArgs::default()
        },
        ..RunArgs::default()
    };
    let settings = RunSettings {
        compare,
        finds_updates: false,
        compares_all: true,
        limits: RunLimits {
            on_repeats: OnRepeats::Accept,
            ..RunLimits::default()
        },
        ..settings::build(process, &args, &mut None).await?
    };
    engine::run(&process.context, &process.resources, &settings).await?;
    let name = decisions.display().to_string();
    let failed = |error| ArchiveError::parquet(name.clone())(error);
    let file = File::open(&decisions).map_err(StorageError::io(&name))?;
    let rows = ParquetRecordBatchReaderBuilder::try_new(file).map_err(failed)?;
    for rows in rows.build().map_err(failed)? {
        let rows = rows.map_err(ArchiveError::arrow(&name))?;
        add_rows(&rows, &mut each)?;
    }
    Ok(())
}

fn add_rows(rows: &RecordBatch, each: &mut impl FnMut(Again)) -> Result<(), Failure> {
    let missing = |name: &str| EngineError::Internal(format!("decisions without {name}"));
    let column = |name: &str| rows.column_by_name(name).ok_or_else(|| missing(name));
    let cast = |name: &str, kind: &DataType| -> Result<ArrayRef, EngineError> {
        arrow::compute::cast(column(name)?, kind).map_err(|_| missing(name))
    };
    let [ids, others, files] =
        [ID, DUPLICATE_OF, DROPPED_FILE].map(|name| cast(name, &DataType::Utf8));
    let (ids, others, files) = (ids?, others?, files?);
    let [ids, others, files] = [&ids, &others, &files].map(|texts| texts.as_string::<i32>());
    let [days, other_days] = [DROPPED_DAY, DUPLICATE_DAY].map(|name| cast(name, &DataType::Date32));
    let (days, other_days) = (days?, other_days?);
    let [days, other_days] = [&days, &other_days].map(|days| days.as_primitive::<Date32Type>());
    let numbers = cast(DROPPED_ROW, &DataType::Int64)?;
    let numbers = numbers.as_primitive::<Int64Type>();
    let kept = cast(KEPT, &DataType::Boolean)?;
    let kept = kept.as_boolean();
    let day =
        |days: &arrow::array::Date32Array, row: usize| days.is_valid(row).then(|| days.value(row));
    for row in 0..rows.num_rows() {
        let of = (!kept.value(row)).then(|| (others.value(row).to_owned(), day(other_days, row)));
        each(Again {
            id: ids.value(row).to_owned(),
            day: day(days, row),
            of,
            place: (
                files.value(row).to_owned(),
                numbers.value(row).cast_unsigned(),
            ),
        });
    }
    Ok(())
}
