//! `dedup_job._native`: what the Python package `dedup_job` needs from Rust.
//!
//! Two kinds of functions: those on data, which run in the interpreter's process with the GIL released ([`fingerprints`],
//! [`pairs`], [`index`], [`archive_rows`]), and `main`, the whole program, which the package starts as a process of its
//! own. Data comes and goes by Arrow's PyCapsule interface ([`import`], [`export`]); NumPy reads arrays by its array
//! interface, so that neither NumPy nor pyarrow is needed here.
//!
//! Nothing here keeps threads between two calls: a process that was forked would not have them.

mod archive_rows;
mod error;
mod export;
mod fingerprints;
mod import;
mod index;
mod interrupt;
mod lock;
mod model;
mod needed;
mod numbers;
mod objects;
mod pairs;
mod parquet_files;
mod program;
mod progress;
mod stores;
mod table;
mod texts;

use pyo3::prelude::*;

/// The module that Python loads.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<archive_rows::ArchiveRows>()?;
    module.add_class::<export::Array>()?;
    module.add_class::<import::ArrowData>()?;
    module.add_class::<index::Index>()?;
    module.add_class::<model::Model>()?;
    module.add_class::<table::Table>()?;
    module.add("TEXT_NAMES", documents::TEXT_NAMES.to_vec())?;
    module.add_function(wrap_pyfunction!(export::array_of, module)?)?;
    module.add_function(wrap_pyfunction!(fingerprints::fingerprint, module)?)?;
    module.add_function(wrap_pyfunction!(fingerprints::sketch, module)?)?;
    module.add_function(wrap_pyfunction!(numbers::fingerprint_array, module)?)?;
    module.add_function(wrap_pyfunction!(objects::put_file, module)?)?;
    module.add_function(wrap_pyfunction!(objects::remove_all, module)?)?;
    module.add_function(wrap_pyfunction!(pairs::pairs_between, module)?)?;
    module.add_function(wrap_pyfunction!(pairs::pairs_within, module)?)?;
    module.add_function(wrap_pyfunction!(parquet_files::read_parquet, module)?)?;
    module.add_function(wrap_pyfunction!(parquet_files::write_parquet, module)?)?;
    module.add_function(wrap_pyfunction!(program::main, module)?)?;
    module.add_function(wrap_pyfunction!(texts::text_array, module)?)?;
    Ok(())
}
