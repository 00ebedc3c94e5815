//! A summary of what an archive holds.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use simhash::Spec;

use super::Archive;
use crate::day_batch::BatchName;
use crate::error::Result;
use crate::run_defaults::RunDefaults;
use crate::schema::IdType;

/// What an archive holds.
#[derive(Debug, Clone)]
pub struct Info {
    pub version: u64,
    pub id_type: IdType,
    pub has_kept: bool,
    /// Features of the table that this program does not write, so that it commits nothing.
    pub unwritable: Option<String>,
    pub spec: Spec,
    /// The settings of runs that count now.
    pub defaults: RunDefaults,
    /// Rows, files and bytes of each day.
    pub days: BTreeMap<NaiveDate, DayInfo>,
    /// Rows, files and bytes that another program wrote without a day.
    pub without_day: DayInfo,
}

/// The size of one day in an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DayInfo {
    /// Rows, each with a fingerprint.
    pub rows: u64,
    /// Data files.
    pub files: u64,
    /// Bytes of the data files.
    pub bytes: u64,
    /// Rows of each batch.
    pub batches: BTreeMap<BatchName, u64>,
}

impl Archive {
    /// Summarises what it holds.
    ///
    /// # Errors
    /// [`Delta`](crate::ArchiveError::Delta) when the log cannot be read.
    pub fn info(&self) -> Result<Info> {
        let mut info = Info {
            version: self.version(),
            id_type: self.id_type(),
            has_kept: self.has_kept(),
            unwritable: self.unwritable_features()?,
            spec: self.spec().clone(),
            defaults: self.run_defaults().clone(),
            days: BTreeMap::default(),
            without_day: DayInfo::default(),
        };
        for file in self.files()? {
            let day = match file.day {
                Some(day) => info.days.entry(day).or_default(),
                None => &mut info.without_day,
            };
            // A damaged log may claim any number.
            let rows = file.rows.unwrap_or(0);
            day.rows = day.rows.saturating_add(rows);
            let of_batch = day.batches.entry(file.batch_name).or_default();
            *of_batch = of_batch.saturating_add(rows);
            day.files += 1;
            day.bytes = day.bytes.saturating_add(file.size);
        }
        Ok(info)
    }
}
