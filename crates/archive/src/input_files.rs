//! The files that an input path stands for; a Delta table stands for its data files.
//!
//! A table's directory also holds files that its log no longer names, or does not name yet. So the log of a table says
//! which files are read, and [`Stores::expand`] refuses paths and patterns below the table.

use std::sync::Arc;

use deltalake_core::DeltaTable;
use futures::{StreamExt as _, TryStreamExt as _};
use storage::{Expansion, Location, Skipped, Stores};

use crate::delta::{catch_async_panic, log_store};
use crate::error::{ArchiveError, Result};
use crate::foreign;
use crate::remembered_log::LogBy;
use crate::schema::SPEC_KEY;

const CONCURRENT_REQUESTS: usize = 32;

/// Lists the files that a path stands for, and what the list leaves out, as [`Stores::expand`] does; for a Delta table, the data files of its latest
/// version.
///
/// # Errors
/// As [`Stores::expand`]. For a table, [`ArchiveError`] when its log cannot be read, or a feature
/// makes its rows differ from those in its files; [`ArchiveError::BadData`] when a data file is
/// missing.
pub async fn input_files(
    stores: &Stores,
    given: &str,
    extensions: &[&str],
) -> Result<(Vec<Location>, Skipped)> {
    match stores.expand(given, extensions).await? {
        Expansion::Files(files, skipped) => Ok((files, skipped)),
        Expansion::Table(table) => Ok((data_files(&table).await?, Skipped::default())),
    }
}

/// The data files of a table at its latest version, sorted by path.
async fn data_files(location: &Location) -> Result<Vec<Location>> {
    let given = location.given();
    let mut table = DeltaTable::new(log_store(location, LogBy::Checkpoint)?);
    let loaded = catch_async_panic(table.load()).await;
    loaded.map_err(ArchiveError::delta(given))?;
    foreign::refuse_unreadable(&table, given)?;
    let (spec, names) = spec_and_names(&table, given)?;
    let spec = &spec;
    futures::stream::iter(names)
        .map(|name| async move {
            let file = location.child(&name)?;
            let size = file.current_size().await;
            let size = size.map_err(ArchiveError::data_file(file.given()))?;
            Ok(file.with_table_facts(size, spec.clone()))
        })
        .buffered(CONCURRENT_REQUESTS)
        .try_collect()
        .await
}

/// The spec of a table's fingerprints, if it has one, and the names of its data files.
fn spec_and_names(table: &DeltaTable, given: &str) -> Result<(Option<Arc<str>>, Vec<String>)> {
    let state = table.snapshot().map_err(ArchiveError::delta(given))?;
    let spec = state.metadata().configuration().get(SPEC_KEY);
    let log = state.log_data();
    let mut names: Vec<String> = log.iter().map(|file| file.path().into_owned()).collect();
    names.sort();
    Ok((spec.map(|spec| spec.as_str().into()), names))
}
