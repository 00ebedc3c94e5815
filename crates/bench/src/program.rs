//! The `dedup-job` program, for benchmarks that run it as users do, and other programs.

use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Runs a program; returns what it writes to its standard output.
pub fn output(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("a program");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    output.stdout
}

/// What `dedup-job generate fingerprints` is to make.
pub struct Generated {
    /// Number of fingerprints in the batch.
    pub batch: u64,
    /// Number of fingerprints in the archive.
    pub archive: u64,
    /// Number of days in the archive.
    pub days: u32,
    /// Largest planted distance, in bits.
    pub max_distance: u32,
}

impl Generated {
    /// Makes the data, with integer ids, in `directory`, unless an earlier run made them there.
    pub fn make(&self, program: &Path, directory: &Path) {
        if directory.join("expected.parquet").exists() {
            return;
        }
        let _ = std::fs::remove_dir_all(directory);
        let status = Command::new(program)
            .args([
                "generate",
                "fingerprints",
                "--quiet",
                "--id-type",
                "bigint",
                "--output",
            ])
            .arg(directory)
            .args(["--new", &self.batch.to_string()])
            .args(["--base", &self.archive.to_string()])
            .args(["--days", &self.days.to_string()])
            .args(["-k", &self.max_distance.to_string()])
            .status()
            .expect("the program");
        assert!(status.success(), "the archive cannot be generated");
    }
}
