//! Settings that are chosen by name. Each has one table of names, from which parsing, display, errors, serialization and
//! the command line's help derive.

use std::fmt;
use std::ops::RangeInclusive;

/// A setting that is chosen by name, such as [`crate::Weight`].
pub trait Choice: Copy + PartialEq + fmt::Debug + 'static {
    /// The plural noun for the values in error messages, such as `weights`.
    const PLURAL: &'static str;
    /// Every value by its name, in the order of help; the usual one first.
    const NAMES: &'static [Name<Self>];

    /// One value for each name; in names that end in N, N is 4.
    #[must_use]
    fn examples() -> Vec<Self> {
        let example = |name: &Name<Self>| match name.values {
            Values::One(value) => value,
            Values::Numbered { make, .. } => make(4),
        };
        Self::NAMES.iter().map(example).collect()
    }
}

/// One name of a [`Choice`].
#[derive(Debug, Clone, Copy)]
pub struct Name<T> {
    name: &'static str,
    help: &'static str,
    values: Values<T>,
    missing_feature: Option<&'static str>,
}

/// The values that a name stands for.
#[derive(Debug, Clone, Copy)]
enum Values<T> {
    One(T),
    /// The name ends in `N`, which stands for a number from `least` to `most`.
    Numbered {
        make: fn(u8) -> T,
        least: u8,
        most: u8,
    },
}

impl<T: Copy + PartialEq> Name<T> {
    /// A name for `value`; `help` explains the value in one phrase.
    #[must_use]
    pub const fn new(name: &'static str, value: T, help: &'static str) -> Self {
        Self {
            name,
            help,
            values: Values::One(value),
            missing_feature: None,
        }
    }

    /// A name that ends in `N`, for the values `make(N)` with N in `numbers`.
    #[must_use]
    pub(crate) const fn numbered(
        name: &'static str,
        numbers: RangeInclusive<u8>,
        make: fn(u8) -> T,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            help,
            values: Values::Numbered {
                make,
                least: *numbers.start(),
                most: *numbers.end(),
            },
            missing_feature: None,
        }
    }

    /// The same name, refused by builds without the crate feature `feature`; `built` says whether this build has it.
    #[must_use]
    pub(crate) const fn needs(self, feature: &'static str, built: bool) -> Self {
        Self {
            missing_feature: if built { None } else { Some(feature) },
            ..self
        }
    }

    /// The name; an `N` at its end stands for a number.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// One phrase that explains the value.
    #[must_use]
    pub const fn help(&self) -> &'static str {
        self.help
    }

    /// The limits of the name, for help texts: the range of N, and the crate feature that this
    /// build lacks. Each begins with a space and stands in parentheses; empty without limits.
    #[must_use]
    pub fn limits(&self) -> String {
        let mut limits = match self.values {
            Values::One(_) => String::new(),
            Values::Numbered { least, most, .. } => format!(" (N from {least} to {most})"),
        };
        if let Some(feature) = self.missing_feature {
            limits.push_str(&format!(" (in a build with the feature {feature})"));
        }
        limits
    }

    /// Whether `value` has this name.
    #[must_use]
    pub fn is_name_of(&self, value: T) -> bool {
        self.name_of(value).is_some()
    }

    /// The whole name of `value`, with its number, if it has this name.
    fn name_of(&self, value: T) -> Option<String> {
        match self.values {
            Values::One(own) => (own == value).then(|| self.name.to_owned()),
            Values::Numbered { make, least, most } => {
                let number = (least..=most).find(|&number| make(number) == value)?;
                Some(format!("{}{number}", self.prefix()))
            }
        }
    }

    /// Parses `text` as this name; `None` if it is another name, or if this build lacks its crate
    /// feature.
    fn parse(&self, text: &str) -> Option<T> {
        if self.missing_feature.is_some() {
            return None;
        }
        match self.values {
            Values::One(value) => (text == self.name).then_some(value),
            Values::Numbered { make, least, most } => {
                let digits = text.strip_prefix(self.prefix())?;
                let number = digits.parse().ok()?;
                // Refuses "+3" and "03".
                let is_name = (least..=most).contains(&number) && number.to_string() == digits;
                is_name.then(|| make(number))
            }
        }
    }

    /// The name without its `N`.
    fn prefix(&self) -> &'static str {
        self.name.trim_end_matches('N')
    }
}

impl<T: Copy + PartialEq> fmt::Display for Name<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, self.limits())
    }
}

/// A text that names no value of a [`Choice`]; the message lists the names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {plural} are {names}")]
pub struct UnknownName {
    plural: &'static str,
    names: String,
}

/// Parses the name of a value.
///
/// # Errors
/// [`UnknownName`] when no value has it.
pub fn parse<T: Choice>(text: &str) -> Result<T, UnknownName> {
    let value = T::NAMES.iter().find_map(|name| name.parse(text));
    value.ok_or_else(|| {
        let mut names: Vec<String> = T::NAMES.iter().map(ToString::to_string).collect();
        let last = names.pop().unwrap_or_default();
        UnknownName {
            plural: T::PLURAL,
            names: format!("{} and {last}", names.join(", ")),
        }
    })
}

/// Writes the name of `value`.
///
/// # Errors
/// Those of the formatter.
pub fn write<T: Choice>(value: T, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match T::NAMES.iter().find_map(|name| name.name_of(value)) {
        Some(text) => f.write_str(&text),
        None => fmt::Debug::fmt(&value, f),
    }
}

/// Implements display, parsing and serialization of a [`Choice`] by its names.
macro_rules! by_name {
    ($choice:ty) => {
        impl std::fmt::Display for $choice {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::choice::write(*self, f)
            }
        }

        impl std::str::FromStr for $choice {
            type Err = $crate::choice::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::choice::parse(text)
            }
        }

        impl serde::Serialize for $choice {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $choice {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use by_name;

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;
    use crate::{Markup, Measure, Normalize, Tokenizer, Weight};

    #[test]
    fn names_are_read_as_they_are_written() {
        fn check<T: Choice + FromStr<Err = UnknownName> + fmt::Display>() {
            for (value, name) in T::examples().into_iter().zip(T::NAMES) {
                assert!(name.is_name_of(value));
                if name.missing_feature.is_none() {
                    assert_eq!(T::from_str(&value.to_string()), Ok(value));
                }
                assert!(T::from_str(&value.to_string().to_uppercase()).is_err());
            }
        }
        check::<Markup>();
        check::<Measure>();
        check::<Normalize>();
        check::<Tokenizer>();
        check::<Weight>();
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_names() {
        let error = "log".parse::<Weight>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the weights are sqrt-tf, tf, log-tf, set and levels"
        );
        let error = "shingles-1".parse::<Tokenizer>().unwrap_err().to_string();
        assert!(error.contains("shingles-N (N from 2 to 16)"), "{error}");
    }

    #[cfg(not(feature = "article"))]
    #[test]
    fn a_name_of_another_build_is_answered_with_its_feature() {
        let error = "article".parse::<Markup>().unwrap_err().to_string();
        let expected = "text, main and article (in a build with the feature article)";
        assert!(error.contains(expected), "{error}");
    }
}
