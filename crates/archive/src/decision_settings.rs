//! [`DecisionSettings`]: whether an archive got all documents of a day or only the kept ones, and
//! by which settings they were decided.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How the documents of a day were decided, and which of them were appended. Does not hold the
/// decisions on single documents.
///
/// As text, in tags and records: `all` or `kept`, a space, and the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DecisionSettings {
    /// Whether only the kept documents were appended.
    pub only_kept: bool,
    /// The settings by which the documents were decided, as this program shows them.
    pub settings: String,
}

const ALL: &str = "all";
const KEPT: &str = "kept";

impl fmt::Display for DecisionSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let appended = if self.only_kept { KEPT } else { ALL };
        write!(f, "{appended} {}", self.settings)
    }
}

impl TryFrom<String> for DecisionSettings {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (appended, settings) = text.split_once(' ').unwrap_or((text.as_str(), ""));
        let only_kept = match appended {
            ALL => false,
            KEPT => true,
            other => return Err(format!("{other:?} is neither {ALL} nor {KEPT}")),
        };
        Ok(Self {
            only_kept,
            settings: settings.to_owned(),
        })
    }
}

impl From<DecisionSettings> for String {
    fn from(decisions: DecisionSettings) -> Self {
        decisions.to_string()
    }
}

/// Describes a day's decisions for errors.
pub(crate) fn describe(decisions: Option<&DecisionSettings>) -> String {
    match decisions {
        None => "all documents, without decisions".into(),
        Some(decisions) => {
            let appended = if decisions.only_kept {
                "only the kept documents"
            } else {
                "all documents"
            };
            format!("{appended}, decided by {}", decisions.settings)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_read_as_they_are_written() {
        for only_kept in [false, true] {
            let decisions = DecisionSettings {
                only_kept,
                settings: "k=3 prefer=a b:desc".into(),
            };
            assert_eq!(
                DecisionSettings::try_from(decisions.to_string()),
                Ok(decisions)
            );
        }
        assert!(DecisionSettings::try_from("some k=3".to_owned()).is_err());
    }
}
