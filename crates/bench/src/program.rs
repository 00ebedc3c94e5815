//! The program that is measured, where a bench runs it as users do.

use std::path::{Path, PathBuf};

/// The program at `given`, or else `dedup-job` beside this one.
pub fn path(given: Option<&Path>) -> PathBuf {
    given.map_or_else(
        || {
            let own = std::env::current_exe().expect("the path of this program");
            own.with_file_name("dedup-job")
        },
        Path::to_owned,
    )
}
