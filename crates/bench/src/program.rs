//! The `dedup-job` program, for benchmarks that run it as users do.

use std::path::{Path, PathBuf};

/// Returns `given`, or the path of `dedup-job` beside this program.
pub fn path(given: Option<&Path>) -> PathBuf {
    given.map_or_else(
        || {
            let own = std::env::current_exe().expect("the path of this program");
            own.with_file_name("dedup-job")
        },
        Path::to_owned,
    )
}
