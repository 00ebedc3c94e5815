//! Data files of an archive: the program writes them, reads them back, and only then names them in
//! the log.

mod read;
mod write;
mod written;

use chrono::NaiveDate;

use crate::schema::DAY;

pub use read::FileRows;
pub(crate) use read::StoredRows;
pub(crate) use write::RowsToWrite;
pub(crate) use written::WrittenFile;

/// Partition value of rows without a day, by Hive's convention.
const NO_DAY: &str = "__HIVE_DEFAULT_PARTITION__";

/// Whether `path`, below an archive's directory, is named like a data file of this program.
pub(crate) fn is_data_file(path: &str) -> bool {
    let parse = || {
        let (directory, name) = path.split_once('/')?;
        let day = directory.strip_prefix(DAY)?.strip_prefix('=')?;
        let (number, id) = name
            .strip_prefix("part-")?
            .strip_suffix(".parquet")?
            .split_once('-')?;
        let is_day = day == NO_DAY
            || NaiveDate::parse_from_str(day, "%Y-%m-%d")
                .is_ok_and(|parsed| parsed.to_string() == day);
        let is_number = number.len() >= 5 && number.bytes().all(|digit| digit.is_ascii_digit());
        let is_id = uuid::Uuid::try_parse(id).is_ok_and(|parsed| {
            parsed.hyphenated().to_string() == id && parsed.get_version_num() == 4
        });
        Some(is_day && is_number && is_id)
    };
    parse().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_names_are_data_files() {
        let name = "part-00000-6f9619ff-8b86-4d01-b42d-00cf4fc964ff.parquet";
        assert!(is_data_file(&format!("day=2026-01-01/{name}")));
        assert!(is_data_file(&format!("day={NO_DAY}/{name}")));
        for other in [
            name.to_owned(),
            format!("pages/{name}"),
            format!("day=today/{name}"),
            format!("day=2026-01-01/x/{name}"),
            "day=2026-01-01/day.parquet".into(),
            "day=2026-01-01/part-00000.parquet".into(),
            // Names that other programs give.
            "day=2026-01-01/part-00000-6f9619ff-8b86-4d01-b42d-00cf4fc964ff.c000.snappy.parquet"
                .into(),
            "day=2026-01-01/part-00000-6f9619ff-8b86-4d01-b42d-00cf4fc964ff-c000.snappy.parquet"
                .into(),
        ] {
            assert!(!is_data_file(&other), "{other}");
        }
    }
}
