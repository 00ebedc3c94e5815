//! [`DayBatch`]: what one commit brings, a day or one of its batches.

use std::fmt;
use std::str::FromStr;

use chrono::NaiveDate;

/// The most bytes of a name.
const MAX_BYTES: usize = 24;

/// The name of a batch of a day; empty for the batch without one.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BatchName([u8; MAX_BYTES]);

impl BatchName {
    fn as_str(&self) -> &str {
        let end = self.0.iter().position(|byte| *byte == 0);
        std::str::from_utf8(&self.0[..end.unwrap_or(MAX_BYTES)]).unwrap_or_default()
    }

    /// Whether it is that of the batch without a name.
    pub fn is_empty(&self) -> bool {
        self.0[0] == 0
    }
}

impl fmt::Display for BatchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for BatchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl FromStr for BatchName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if text.is_empty() || text.len() > MAX_BYTES || !text.bytes().all(is_plain) {
            return Err(format!(
                "a name of a batch has 1 to {MAX_BYTES} letters, digits, - and _"
            ));
        }
        let mut name = [0; MAX_BYTES];
        name[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self(name))
    }
}

/// What one commit brings: a day, or one of several batches of a day. Shown as `DAY` or `DAY/NAME`, which is the application id of its
/// Delta transaction, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DayBatch {
    pub day: NaiveDate,
    pub name: BatchName,
}

impl From<NaiveDate> for DayBatch {
    fn from(day: NaiveDate) -> Self {
        Self {
            day,
            name: BatchName::default(),
        }
    }
}

impl DayBatch {
    /// The start of the names of its records: `DAY` or `DAY.NAME`.
    pub(crate) fn file_name(&self) -> String {
        self.to_string().replace('/', ".")
    }

    pub(crate) fn from_file_name(name: &str) -> Option<Self> {
        let (day, name) = match name.split_once('.') {
            Some((day, name)) => (day, name.parse().ok()?),
            None => (name, BatchName::default()),
        };
        let day = day.parse().ok()?;
        Some(Self { day, name })
    }
}

impl fmt::Display for DayBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.day)?;
        if self.name.is_empty() {
            Ok(())
        } else {
            write!(f, "/{}", self.name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_says_day_and_name() {
        let day: NaiveDate = "2026-01-03".parse().unwrap();
        let named = DayBatch {
            day,
            name: "a-1_B".parse().unwrap(),
        };
        assert_eq!(named.to_string(), "2026-01-03/a-1_B");
        for batch in [day.into(), named] {
            assert_eq!(DayBatch::from_file_name(&batch.file_name()), Some(batch));
        }
        for other in ["", "x", "2026-01-03.", "2026-01-03.a/b", "2026-01-03.ä"] {
            assert_eq!(DayBatch::from_file_name(other), None, "{other}");
        }
        assert!("a".repeat(MAX_BYTES).parse::<BatchName>().is_ok());
        assert!("a".repeat(MAX_BYTES + 1).parse::<BatchName>().is_err());
    }
}
