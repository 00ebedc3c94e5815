//! Files of a directory that are about the documents beside them.

use storage::Location;

use super::formats;
use crate::read_counts::{Note, Notes};

/// What Hugging Face's `datasets` writes about a data set beside its files.
const ABOUT: [&str; 4] = [
    "dataset_info.json",
    "dataset_infos.json",
    "dataset_dict.json",
    "state.json",
];

/// The files found at a path, without those that are about the records beside them: HTML and plain text, which may be a page or
/// a licence, the metadata of data sets, and beside Parquet any JSON.
pub(super) fn without_strays(
    path: &str,
    mut files: Vec<Location>,
    skipped: &mut Notes,
) -> Vec<Location> {
    let has_parquet = files
        .iter()
        .any(|file| formats::is_parquet(&file.file_name()));
    let is_stray = |file: &Location| {
        let name = file.file_name();
        formats::is_one_document(&name)
            || ABOUT.contains(&&*name)
            || (has_parquet && formats::ending(&name) == Some(".json"))
    };
    let strays = files.iter().filter(|file| is_stray(file)).count();
    let is_pattern = path.contains(['*', '?', '[']);
    if strays > 0 && strays < files.len() && !is_pattern {
        let first = files.iter().find(|file| is_stray(file));
        let first = first.map(Location::file_name).unwrap_or_default();
        tracing::warn!(
            "{path}: files of records are read; of text or JSON, {strays} are not, among them {first}: to read these, name them"
        );
        skipped.add(Note::BesideRecords, strays as u64, &first);
        files.retain(|file| !is_stray(file));
    }
    files
}
