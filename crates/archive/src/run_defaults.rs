//! [`RunDefaults`]: the settings of runs that an archive records, for what the options of a run leave open.
//!
//! The table keeps all that it ever recorded, each with the version that recorded it. So a rerun of a committed day finds the
//! settings of that day, also when the log no longer has its version.

use serde::{Deserialize, Serialize};

use crate::error::{ArchiveError, Result};
use crate::schema::{FORMAT, FORMAT_KEY, RUN_DEFAULTS_KEY};

/// The settings of runs that an archive records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunDefaults {
    /// Fingerprints that differ in at most this many bits are a pair.
    #[serde(rename = "k")]
    pub max_distance: u32,
    /// Pairs whose sketches estimate a smaller similarity are dropped; `None` if pairs are not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_similarity: Option<f64>,
    /// The column of document ids; `None` if it is found by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_column: Option<String>,
    /// The column of texts; `None` if it is found by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_column: Option<String>,
    /// The column of sources; `None` if URLs say them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_column: Option<String>,
}

impl RunDefaults {
    /// Pairs within `max_distance` bits, verified if there is a least similarity by sketches.
    pub fn new(max_distance: u32, min_similarity: Option<f64>) -> Self {
        Self {
            max_distance,
            min_similarity,
            id_column: None,
            text_column: None,
            source_column: None,
        }
    }
}

/// Settings, from a version of the table on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) since: u64,
    pub(crate) settings: RunDefaults,
}

/// The table's properties of a new archive.
pub(crate) fn properties(defaults: &RunDefaults) -> [(&'static str, Option<String>); 2] {
    let recorded = [Recorded {
        since: 0,
        settings: defaults.clone(),
    }];
    [
        (FORMAT_KEY, Some(FORMAT.to_owned())),
        (RUN_DEFAULTS_KEY, Some(as_json(&recorded))),
    ]
}

pub(crate) fn as_json(recorded: &[Recorded]) -> String {
    serde_json::json!(recorded).to_string()
}

/// Reads what the table's properties record.
pub(crate) fn read<'a>(
    given: &str,
    property: impl Fn(&str) -> Option<&'a String>,
) -> Result<Vec<Recorded>> {
    let format = property(FORMAT_KEY).map_or("1", String::as_str);
    if format != FORMAT {
        return Err(ArchiveError::OtherFormat {
            path: given.to_owned(),
            format: format.to_owned(),
        });
    }
    let bad = |reason: String| ArchiveError::ForeignTable {
        path: given.to_owned(),
        reason: format!("its property {RUN_DEFAULTS_KEY} is damaged: {reason}"),
    };
    let text = property(RUN_DEFAULTS_KEY).ok_or_else(|| bad("it is missing".into()))?;
    let recorded: Vec<Recorded> =
        serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
    match recorded.first() {
        Some(first) if first.since == 0 => Ok(recorded),
        _ => Err(bad("it does not begin at version 0".into())),
    }
}
