//! The order in which near-duplicates are preferred: a list of rules. A rule orders the documents that all rules before it hold equal.

mod keys;
mod time;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use arrow::array::{ArrayRef, BinaryArray, StringArray};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::DocumentsError;
use keys::Keys;

pub use keys::length_key;

/// Names of columns of times that `earliest` and `latest` find without one, the best first.
const TIME_NAMES: [&str; 10] = [
    "date",
    "fetched",
    "fetched_at",
    "fetch_time",
    "crawled_at",
    "timestamp",
    "warc_date",
    "WARC-Date",
    "published",
    "time",
];
/// The key of a document without a value. It sorts last: every other key begins with a smaller byte.
pub const NO_PREFERENCE: u8 = u8::MAX;

/// A rule by which documents are ordered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rule {
    /// The longest text first, in features: markup, templates, scripts and white space do not count.
    Longest,
    /// By the values of a column. Numbers, times and texts that are numbers or times come before other texts, and a document without
    /// a value comes last.
    Column {
        name: String,
        /// Whether the largest value is preferred, not the smallest.
        descending: bool,
    },
    /// By the times in a column; a document without a time comes last.
    Time {
        /// Its name; `None` for the first one of [`TIME_NAMES`] that a file has.
        name: Option<String>,
        /// Whether the latest time is preferred, not the earliest.
        latest: bool,
    },
    /// The documents of these sources first, in this order.
    Sources(Vec<String>),
    /// In the order in which the inputs are given: those of the first file first.
    Path,
    /// In the order of the input: that of the files, then of their documents.
    First,
}

/// How documents are ordered by preference. Of equally preferred ones, that with the smallest id comes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefer {
    rules: Vec<Rule>,
}

/// The longest text comes first.
impl Default for Prefer {
    fn default() -> Self {
        Self {
            rules: vec![Rule::Longest],
        }
    }
}

impl Rule {
    /// The column that it reads; of a time whose column is not named, `None`.
    fn column(&self) -> Option<&str> {
        match self {
            Self::Column { name, .. } => Some(name),
            Self::Time { name, .. } => name.as_deref(),
            _ => None,
        }
    }
}

impl Prefer {
    /// The columns that the rules name.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().filter_map(Rule::column)
    }

    /// The end of a message that there are no columns of the names that `is_missing` finds: the rules that are meant instead, if any are.
    pub fn hint(&self, is_missing: impl Fn(&str) -> bool) -> String {
        let rules = self.rules.iter().filter_map(|rule| match rule {
            Rule::Column { name, .. } if is_missing(name) => meant(name),
            _ => None,
        });
        match rules.collect::<Vec<String>>().join(",") {
            rules if rules.is_empty() => rules,
            rules => format!(" (if a rule is meant: {rules})"),
        }
    }

    /// Whether the documents' table has the keys: by all rules but the length of texts, which is known with the fingerprints.
    pub(super) fn has_keys(&self) -> bool {
        self.rules != [Rule::Longest]
    }

    /// Whether the documents' table has the keys in two columns, between which that of the length belongs.
    pub(super) fn are_keys_cut(&self) -> bool {
        self.has_keys() && self.rules.contains(&Rule::Longest)
    }

    /// With a column for each time, of a file whose columns are `names`.
    ///
    /// # Errors
    /// The names that were sought, if a file has none.
    pub(super) fn with_columns(&self, names: &[&str]) -> Result<Self, String> {
        let mut found = self.clone();
        for rule in &mut found.rules {
            if let Rule::Time { name, .. } = rule
                && name.is_none()
            {
                let known = TIME_NAMES.into_iter().find(|name| names.contains(name));
                let known = known.ok_or_else(|| TIME_NAMES.join(" or "))?;
                *name = Some(known.to_owned());
            }
        }
        Ok(found)
    }

    /// The keys of documents of one file: those by the rules before the length of texts, and those by the rules behind it. `column`
    /// returns a column of them, `sources` their sources, `file` is the number of the file, and `positions` are the positions of the documents.
    ///
    /// # Errors
    /// What `bad_data` makes of the column whose values have no order, and of the reason.
    pub(super) fn keys<'a>(
        &self,
        column: impl Fn(&str) -> Result<&'a ArrayRef, DocumentsError>,
        sources: impl Fn() -> Result<StringArray, DocumentsError>,
        bad_data: impl Fn(&str, String) -> DocumentsError,
        file: usize,
        positions: &[i64],
    ) -> Result<[BinaryArray; 2], DocumentsError> {
        let rows = positions.len();
        let of_rule = |rule: &Rule| {
            let of_column = |name: &str, keys: Result<Keys, String>| {
                keys.map_err(|reason| bad_data(name, reason))
            };
            Ok::<_, DocumentsError>(match rule {
                // Of two, the second decides nothing.
                Rule::Longest => Keys::new_null(rows),
                Rule::Column { name, descending } => {
                    of_column(name, keys::of_values(column(name)?, *descending))?
                }
                Rule::Time { name, latest } => {
                    let name = name.as_deref().unwrap_or_default();
                    of_column(name, keys::of_times(column(name)?, *latest))?
                }
                Rule::Sources(ranked) => ranks(ranked, &sources()?),
                Rule::Path => keys::of_places((0..rows).map(|_| Some(file as u64))),
                Rule::First => {
                    keys::of_places(positions.iter().map(|place| Some(place.cast_unsigned())))
                }
            })
        };
        let mut parts = self.rules.splitn(2, |rule| *rule == Rule::Longest);
        let mut of_part = || {
            let rules = parts.next().unwrap_or_default();
            let keys: Vec<Keys> = rules.iter().map(of_rule).collect::<Result<_, _>>()?;
            Ok::<_, DocumentsError>(match &keys[..] {
                [keys] if !self.are_keys_cut() => keys.clone(),
                keys => keys::joined(keys, rows),
            })
        };
        let before = of_part()?;
        let behind = if self.are_keys_cut() {
            of_part()?
        } else {
            Keys::new_null(0)
        };
        Ok([before, behind])
    }
}

/// The keys of documents by the places of their `sources` in a list; of other sources, none.
fn ranks(ranked: &[String], sources: &StringArray) -> Keys {
    // A list may name a source twice: its first place counts.
    let places = ranked.iter().enumerate().rev();
    // As it is written, or as the host of a URL.
    let both = |(place, name): (usize, &'_ String)| {
        let host = name.to_lowercase();
        let host = super::source_of_site(&host).map(Cow::into_owned);
        let all = std::iter::once(name.clone()).chain(host);
        all.map(move |name| (name, place as u64))
    };
    let places: HashMap<String, u64> = places.flat_map(both).collect();
    keys::of_places(sources.iter().map(|source| places.get(source?).copied()))
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Longest => f.write_str("longest"),
            Self::Column { name, descending } => {
                write!(f, "{name}:{}", if *descending { "desc" } else { "asc" })
            }
            Self::Time { name, latest } => {
                f.write_str(if *latest { "latest" } else { "earliest" })?;
                match name {
                    Some(name) => write!(f, "={name}"),
                    None => Ok(()),
                }
            }
            Self::Sources(names) if names.len() > SOURCES_SHOWN => {
                let digest = Sha256::digest(names.join("\n"));
                let digest = storage::hex(&digest[..8]);
                write!(f, "source={} names {digest}", names.len())
            }
            Self::Sources(names) => write!(f, "source={}", names.join(",")),
            Self::Path => f.write_str("path"),
            Self::First => f.write_str("first"),
        }
    }
}

/// The rules as they are written, but for the names of sources if there are many: then their digest.
impl fmt::Display for Prefer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<String> = self.rules.iter().map(Rule::to_string).collect();
        f.write_str(&rules.join(","))
    }
}

/// The most names of sources that are written out.
const SOURCES_SHOWN: usize = 8;

impl Prefer {
    /// Reads rules that commas separate: `longest`, `path`, `first`, `earliest`, `latest`, `earliest=COLUMN`, `latest=COLUMN`, `COLUMN`,
    /// `COLUMN:asc`, `COLUMN:desc`; and at the end `source=NAME,NAME` or `source=@FILE`, whose lines `read` returns. Directions may have
    /// capital letters. The name of a column may have colons, but not end like a direction.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn parse(
        text: &str,
        read: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Self, String> {
        let mut rules = Vec::new();
        let mut rest = Some(text);
        while let Some(text) = rest {
            let text = text.trim_start();
            if let Some(names) = text.strip_prefix("source=") {
                rules.push(sources(names, &read)?);
                break;
            }
            let (rule, others) = match text.split_once(',') {
                Some((rule, others)) => (rule, Some(others)),
                None => (text, None),
            };
            rules.push(rule.trim_end().parse()?);
            rest = others;
        }
        Ok(Self { rules })
    }

    /// These rules, and then `others`.
    pub fn then(mut self, others: Self) -> Self {
        self.rules.extend(others.rules);
        self
    }
}

/// Rules of one word.
const WORDS: [&str; 5] = ["longest", "path", "first", "earliest", "latest"];

/// The rule that names sources: separated by commas, or in a file, one on each line.
fn sources(names: &str, read: impl Fn(&str) -> Result<String, String>) -> Result<Rule, String> {
    let (names, are_listed) = match names.strip_prefix('@') {
        Some(path) => (read(path)?, false),
        None => (names.replace(',', "\n"), true),
    };
    let names = names.lines().map(str::trim);
    let names = names.filter(|name| !name.is_empty() && !name.starts_with('#'));
    let names: Vec<String> = names.map(str::to_owned).collect();
    let is_rule = |name: &&String| {
        let directed = [":asc", ":desc"].map(|end| name.to_ascii_lowercase().ends_with(end));
        let word = name.split_once('=').map_or(name.as_str(), |(word, _)| word);
        WORDS.contains(&word) || word == "source" || directed.contains(&true)
    };
    if let Some(rule) = names.iter().find(is_rule).filter(|_| are_listed) {
        return Err(format!(
            "source= takes all names behind it, and {rule} is a rule: put it before source=, or into another --prefer"
        ));
    }
    if names.is_empty() {
        Err("the names of sources are missing".to_owned())
    } else {
        Ok(Rule::Sources(names))
    }
}

/// The rule that is meant if there is no column of this name, such as `earliest:date`, `quality=desc` or `quality:descending`.
fn meant(column: &str) -> Option<String> {
    let (first, rest) = column.split_once([':', '=']).unwrap_or_default();
    let (name, last) = column.rsplit_once([':', '=', ' ']).unwrap_or_default();
    let (rest, name) = (rest.trim(), name.trim_end_matches([':', '=', ' ']));
    let [word, direction] = [first, last].map(|word| word.trim().to_ascii_lowercase());
    Some(match (&*word, direction.trim_end_matches("ending")) {
        ("longest" | "path" | "first", _) => word.clone(),
        ("earliest" | "latest" | "source", _) if !rest.is_empty() => format!("{word}={rest}"),
        ("asc" | "desc", _) if !rest.is_empty() => format!("{rest}:{word}"),
        (_, direction @ ("asc" | "desc")) if !name.is_empty() => format!("{name}:{direction}"),
        _ => return None,
    })
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "longest" => return Ok(Self::Longest),
            "path" => return Ok(Self::Path),
            "first" => return Ok(Self::First),
            _ => {}
        }
        let missing = || "the name of the column is missing".to_owned();
        for (word, latest) in [("earliest", false), ("latest", true)] {
            let rest = text.strip_prefix(word);
            let name = rest.and_then(|rest| rest.strip_prefix('='));
            if name == Some("") {
                return Err(missing());
            }
            if rest == Some("") || name.is_some() {
                let name = name.map(str::to_owned);
                return Ok(Self::Time { name, latest });
            }
        }
        let (name, direction) = text.rsplit_once(':').unwrap_or((text, ""));
        let (name, descending) = match &*direction.trim().to_ascii_lowercase() {
            "asc" => (name.trim_end(), false),
            "desc" => (name.trim_end(), true),
            _ => (text, false),
        };
        if name.is_empty() {
            return Err(missing());
        }
        let name = name.to_owned();
        Ok(Self::Column { name, descending })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Prefer, String> {
        Prefer::parse(text, |path| Err(format!("{path}: no file")))
    }

    #[test]
    fn a_column_may_have_a_direction() {
        let column = |name: &str, descending| {
            let name = name.to_owned();
            Ok(Rule::Column { name, descending })
        };
        assert_eq!("score".parse(), column("score", false));
        assert_eq!("score:asc".parse(), column("score", false));
        assert_eq!("score:DESC".parse(), column("score", true));
        assert_eq!("dc:title".parse(), column("dc:title", false));
        assert_eq!("dc:title:desc".parse(), column("dc:title", true));
        assert_eq!("first:asc".parse(), column("first", false));
        assert_eq!("latest_one".parse(), column("latest_one", false));
        assert_eq!("dc:title : DESC".parse(), column("dc:title", true));
        for bad in [
            "",
            ":desc",
            " : desc",
            "earliest=",
            "a,,b",
            "a,",
            "source=",
            "source= , ",
            "source=a,longest",
        ] {
            parse(bad).unwrap_err();
        }
    }

    #[test]
    fn what_may_be_a_column_is_one_and_has_a_hint() {
        for (column, meant) in [
            ("earliest:date", "earliest=date"),
            ("latest:meta.fetched", "latest=meta.fetched"),
            ("Latest = fetched", "latest=fetched"),
            ("source:a.example", "source=a.example"),
            ("longest=text", "longest"),
            ("first=date", "first"),
            ("path:", "path"),
            ("quality=desc", "quality:desc"),
            ("quality:descending", "quality:desc"),
            ("dc:title = DESC", "dc:title:desc"),
            ("page views DESC", "page views:desc"),
            ("desc:quality", "quality:desc"),
            ("asc=quality", "quality:asc"),
        ] {
            let prefer = parse(&format!("longest,{column}")).unwrap();
            assert_eq!(prefer.columns().collect::<Vec<_>>(), [column]);
            let expected = format!(" (if a rule is meant: {meant})");
            assert_eq!(prefer.hint(|name| name == column), expected);
            assert_eq!(prefer.hint(|_| false), "");
        }
        for column in ["first name", "a=b", "source", "desc", "earliest:", "=desc"] {
            let prefer = parse(column).unwrap();
            assert_eq!(prefer.columns().collect::<Vec<_>>(), [column]);
            assert_eq!(prefer.hint(|_| true), "", "{column}");
        }
    }

    #[test]
    fn rules_are_read_as_they_are_written() {
        let rules =
            "quality:desc,longest,latest,earliest=meta.day,path,first,source=a.example,b.example";
        let read = parse(rules).unwrap();
        assert_eq!(read.to_string(), rules);
        assert_eq!(read.columns().collect::<Vec<_>>(), ["quality", "meta.day"]);
        let file = |path: &str| match path {
            "ranks" => Ok("# the best first\nhttps://www.b.example/x\n\n a.example \n".to_owned()),
            _ => Err("no such file".to_owned()),
        };
        let read = Prefer::parse("x, source=@ranks", file).unwrap();
        assert_eq!(
            read.to_string(),
            "x:asc,source=https://www.b.example/x,a.example"
        );
        Prefer::parse("source=@other", file).unwrap_err();
        let found = parse("latest").unwrap();
        let found = found.with_columns(&["id", "WARC-Date", "fetched"]).unwrap();
        assert_eq!(found.columns().collect::<Vec<_>>(), ["fetched"]);
    }
}
