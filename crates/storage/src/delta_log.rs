//! Recognises Delta tables by file names: a directory is a table if its `_delta_log/` has an entry.

use std::path::{Path, PathBuf};

/// Name of the log's directory in the directory of a table.
pub const LOG_DIRECTORY: &str = "_delta_log";

/// Name of the hint at the latest checkpoint, in the directory of the log.
pub const CHECKPOINT_HINT: &str = "_last_checkpoint";

/// The message for a log entry whose digest is wrong.
pub const DAMAGED_ENTRY: &str = "this entry of the log is damaged: it is not what was written";

/// Whether a file of this name in `_delta_log/` is an entry, that is, a commit or a checkpoint.
pub fn is_log_entry(name: &str) -> bool {
    let version = name.split('.').next().unwrap_or_default();
    version.len() == 20
        && version.bytes().all(|digit| digit.is_ascii_digit())
        && (name.ends_with(".json") || name.contains(".checkpoint."))
}

/// The directory of the table whose log has `path` as an entry; `None` if `path` is no log entry.
pub(crate) fn table_of_entry(path: &str) -> Option<&str> {
    let (log, _) = path
        .rsplit_once('/')
        .filter(|(_, name)| is_log_entry(name))?;
    let directory = log.strip_suffix(LOG_DIRECTORY)?;
    if directory.is_empty() {
        Some("")
    } else {
        directory.strip_suffix('/')
    }
}

pub(crate) fn is_local_table(directory: &Path) -> bool {
    let log = directory.join(LOG_DIRECTORY);
    match std::fs::read_dir(&log) {
        Ok(entries) => entries
            .flatten()
            .any(|entry| is_log_entry(&entry.file_name().to_string_lossy())),
        // A log that is there, but that this process may not read, counts as one with entries.
        Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied && log.exists(),
    }
}

/// The nearest table at or above a local path, or above the real path behind its symlinks. The path
/// need not exist.
pub(crate) fn local_table_above(path: &Path) -> Option<PathBuf> {
    let real = path.ancestors().find_map(|above| above.canonicalize().ok());
    let behind_links = real.iter().flat_map(|real| real.ancestors());
    let mut all = path.ancestors().chain(behind_links);
    all.find(|directory| is_local_table(directory))
        .map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_entries_are_recognised_by_their_names() {
        let entry = "00000000000000000012.json";
        for (path, table) in [
            (format!("a/b/_delta_log/{entry}"), Some("a/b")),
            (format!("_delta_log/{entry}"), Some("")),
            (
                "a/_delta_log/00000000000000000010.checkpoint.parquet".into(),
                Some("a"),
            ),
            (format!("a/_delta_log/{entry}#123000001"), None),
            (format!("a/x_delta_log/{entry}"), None),
            (format!("a/_delta_log/_sidecars/{entry}"), None),
            ("a/_delta_log/_last_checkpoint".into(), None),
            (entry.into(), None),
        ] {
            assert_eq!(table_of_entry(&path), table, "{path}");
        }
    }

    #[test]
    fn tables_above_a_local_path_are_found_behind_links() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let (table, day) = (root.join("table"), root.join("table/day=1"));
        std::fs::create_dir_all(&day).unwrap();
        std::fs::create_dir(table.join(LOG_DIRECTORY)).unwrap();
        std::os::unix::fs::symlink(&day, root.join("link")).unwrap();
        // A log without entries makes no table.
        assert_eq!(local_table_above(&day), None);
        std::fs::write(
            table.join(LOG_DIRECTORY).join("00000000000000000000.json"),
            "",
        )
        .unwrap();
        let link = root.join("link/x.parquet");
        for below in [&table, &day, &day.join("missing/*.parquet"), &link] {
            assert_eq!(local_table_above(below), Some(table.clone()), "{below:?}");
        }
        assert_eq!(local_table_above(&root), None);
    }
}
