//! Files that this package puts beside a job, where other machines read them, and removes again.

use std::collections::HashMap;
use std::path::Path;

use pyo3::prelude::*;
use storage::Draft;

use crate::error::Failed;
use crate::interrupt::wait_for;
use crate::stores::stores;

/// Copy a local file to a path or URL, whole or not at all. One that is there stays: the caller's names have digests of the
/// content. storage has the options of object stores, as text.
#[pyfunction]
pub(crate) fn put_file(
    py: Python<'_>,
    file: String,
    path: String,
    storage: HashMap<String, String>,
) -> PyResult<()> {
    let target = stores(&storage)?.locate(&path).map_err(Failed::from)?;
    wait_for(py, async || {
        if target.exists().await? {
            return Ok(());
        }
        if let Some(directory) = target.local().and_then(Path::parent) {
            std::fs::create_dir_all(directory).map_err(|error| Failed::io(&path, &error))?;
        }
        let draft = Draft::new(&target, &std::env::temp_dir())?;
        draft.fill_from(Path::new(&file))?;
        Ok(draft.publish().await?)
    })
}

/// Remove a file, or a directory with everything below it. A missing one is no error.
#[pyfunction]
pub(crate) fn remove_all(
    py: Python<'_>,
    path: String,
    storage: HashMap<String, String>,
) -> PyResult<()> {
    let location = stores(&storage)?.locate(&path).map_err(Failed::from)?;
    wait_for(py, async || {
        if location.local().is_some_and(Path::is_dir) || location.local().is_none() {
            location.remove_all().await?;
        }
        Ok(location.remove().await?)
    })
}
