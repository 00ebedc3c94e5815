//! [`DaySource`]: where the day of a batch comes from.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use datafusion::prelude::SessionContext;

use crate::error::{EngineError, Result};
use documents::Documents;

/// How to proceed without the days of records.
const REMEDY: &str = "name the day by --day YYYY-MM-DD";

/// Where the day of a batch comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DaySource {
    Date(NaiveDate),
    /// From the dates of the batch's records, which must all be of one day.
    Records,
}

impl DaySource {
    /// The day of a batch of `documents`. For the dates of records, all files are read; those that were cut within a record are
    /// whole then.
    ///
    /// # Errors
    /// [`EngineError::Usage`] when the documents have no dates of records; [`EngineError::BadData`] when these are of several
    /// days, or some are missing; another one when a file cannot be read.
    pub async fn resolve(
        self,
        context: &SessionContext,
        documents: &mut Documents,
    ) -> Result<NaiveDate> {
        match self {
            Self::Date(day) => Ok(day),
            Self::Records => {
                let days = documents.record_days(context).await?;
                let given = documents.given();
                let days = days.ok_or_else(|| {
                    EngineError::Usage(format!(
                        "--day from-records: only records of WARC files have dates, and {given} is not WARC files alone; {REMEDY}"
                    ))
                })?;
                the_only_day(&days).map_err(|reason| EngineError::bad_data(given, reason))
            }
        }
    }
}

/// Returns the one day of all records, or the reason why they do not have one. `days` counts the records of each day, and those
/// without a date.
fn the_only_day(days: &BTreeMap<Option<NaiveDate>, u64>) -> Result<NaiveDate, String> {
    if let Some(records) = days.get(&None) {
        return Err(format!(
            "{records} records have no date that can be read; {REMEDY}"
        ));
    }
    let (first, last) = (days.first_key_value(), days.last_key_value());
    let (Some((Some(first), of_first)), Some((Some(last), of_last))) = (first, last) else {
        return Err(format!("there are no records with a date; {REMEDY}"));
    };
    match days.len() {
        1 => Ok(*first),
        number => Err(format!(
            "its records are of {number} days, from {first} ({of_first} records) to {last} ({of_last} records), and a batch has \
             one; run the files of each day by themselves, or {REMEDY}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Days = [(Option<NaiveDate>, u64)];

    #[test]
    fn records_have_one_day() {
        let day = |day: u32| NaiveDate::from_ymd_opt(2026, 1, day);
        let only = |days: &Days| the_only_day(&days.iter().copied().collect::<BTreeMap<_, _>>());
        assert_eq!(only(&[(day(30), 5)]), Ok(day(30).unwrap()));
        let cases: [(&Days, &str); 3] = [
            (
                &[(day(31), 2), (day(30), 5), (day(29), 7)],
                "of 3 days, from 2026-01-29 (7 records) to 2026-01-31 (2 records)",
            ),
            (&[(None, 4), (day(30), 5)], "4 records have no date"),
            (&[], "no records with a date"),
        ];
        for (days, part) in cases {
            let error = only(days).unwrap_err();
            assert!(error.contains(part) && error.contains("--day"), "{error}");
        }
    }
}
