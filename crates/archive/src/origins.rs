//! [`Origins`]: the archives that a day was in before it was merged into this one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The commit of a day to an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The id of the archive's table.
    pub archive: Uuid,
    /// The version of the archive before the commit.
    pub base_version: u64,
}

/// The commits of a day to other archives, the first of them first. As text, in tags and records: `ID:VERSION`, with spaces between them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Origins(Vec<Origin>);

impl Origins {
    /// The commit of the run that decided the day.
    pub(crate) fn first(&self) -> Option<Origin> {
        self.0.first().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, origin: Origin) {
        self.0.push(origin);
    }

    /// Whether the archive of `other` had the day before that commit.
    pub(crate) fn are_before(&self, other: Origin) -> bool {
        let is_before =
            |own: &Origin| own.archive == other.archive && own.base_version < other.base_version;
        self.0.iter().any(is_before)
    }
}

impl fmt::Display for Origins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, origin) in self.0.iter().enumerate() {
            let space = if number == 0 { "" } else { " " };
            write!(f, "{space}{}:{}", origin.archive, origin.base_version)?;
        }
        Ok(())
    }
}

impl FromStr for Origins {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let origin = |text: &str| {
            let (archive, version) = text.split_once(':')?;
            Some(Origin {
                archive: archive.parse().ok()?,
                base_version: version.parse().ok()?,
            })
        };
        let origins: Option<Vec<Origin>> = text.split_whitespace().map(origin).collect();
        let origins = origins.ok_or_else(|| format!("{text:?} names no versions of archives"))?;
        Ok(Self(origins))
    }
}

impl TryFrom<String> for Origins {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Origins> for String {
    fn from(origins: Origins) -> Self {
        origins.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read_as_they_are_written() {
        let at = |archive, base_version| Origin {
            archive: Uuid::from_u128(archive),
            base_version,
        };
        let mut origins = Origins::default();
        for number in 0..3 {
            assert_eq!(origins.to_string().parse(), Ok(origins.clone()));
            origins.push(at(number, 7));
        }
        assert_eq!(origins.first(), Some(at(0, 7)));
        assert!(origins.are_before(at(2, 8)));
        assert!(!origins.are_before(at(2, 7)) && !origins.are_before(at(3, 9)));
        assert!("x:1".parse::<Origins>().is_err());
    }
}
