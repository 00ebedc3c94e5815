//! The settings of `archive set`.

use std::str::FromStr;

use archive::RunDefaults;
use engine::profile::default_similarity;
use simhash::Measure;

/// One setting, KEY=VALUE.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    /// The largest distance of a pair.
    MaxDistance(u32),
    /// Whether pairs are verified by their sketches.
    Verify(bool),
    /// The least similarity of a pair by its sketches.
    MinSimilarity(f64),
    /// The column of ids; `None` for the one that is found by its name.
    IdColumn(Option<String>),
    /// The column of texts; `None` for the one that is found by its name.
    TextColumn(Option<String>),
    /// The column of sources; `None` for the URLs.
    SourceColumn(Option<String>),
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const KEYS: &str = "k, verify, min-similarity, id-column, text-column and source-column";
        let Some((key, value)) = text.split_once('=') else {
            return Err(format!("it is not KEY=VALUE; the keys are {KEYS}"));
        };
        let column = (!value.is_empty()).then(|| value.to_owned());
        match key {
            "k" | "max-distance" => match value.parse() {
                Ok(k @ 0..=16) => Ok(Self::MaxDistance(k)),
                _ => Err("k is a number from 0 to 16".into()),
            },
            "verify" => match value {
                "sketch" => Ok(Self::Verify(true)),
                "none" => Ok(Self::Verify(false)),
                _ => Err("an archive records sketch or none: it knows no texts".into()),
            },
            "min-similarity" => match value.parse() {
                Ok(least) if (0.0..=1.0).contains(&least) => Ok(Self::MinSimilarity(least)),
                _ => Err("min-similarity is a number from 0 to 1".into()),
            },
            "id-column" => Ok(Self::IdColumn(column)),
            "text-column" => Ok(Self::TextColumn(column)),
            "source-column" => Ok(Self::SourceColumn(column)),
            _ => Err(format!("there is no setting {key}; the keys are {KEYS}")),
        }
    }
}

impl Setting {
    /// Whether it needs sketches.
    pub fn verifies(&self) -> bool {
        matches!(self, Self::Verify(true) | Self::MinSimilarity(_))
    }

    /// Changes what the archive records.
    pub fn apply(&self, defaults: &mut RunDefaults) {
        match self {
            Self::MaxDistance(k) => defaults.max_distance = *k,
            Self::Verify(false) => defaults.min_similarity = None,
            Self::Verify(true) => {
                let least = default_similarity(Measure::Sketch);
                defaults.min_similarity.get_or_insert(least);
            }
            Self::MinSimilarity(least) => defaults.min_similarity = Some(*least),
            Self::IdColumn(name) => defaults.id_column.clone_from(name),
            Self::TextColumn(name) => defaults.text_column.clone_from(name),
            Self::SourceColumn(name) => defaults.source_column.clone_from(name),
        }
    }
}
