//! One module a command: its arguments to settings, one call, its summary.

pub mod archive;
pub mod cluster;
pub mod executor;
pub mod explain;
pub mod fingerprint;
pub mod generate;
pub mod help;
pub mod idf;
pub mod plan;
pub mod run;
pub mod scheduler;
pub mod sql;
pub mod tune;

use std::path::{Path, PathBuf};

use ::archive::{Location, Stores};
use chrono::NaiveDate;

use crate::exit::Failure;

/// What stands for the day in paths.
const DAY: &str = "{day}";

/// An option that the command cannot do without.
fn required<T>(value: Option<T>, option: &str) -> Result<T, Failure> {
    value.ok_or_else(|| Failure::Usage(format!("{option} is needed; see --help")))
}

/// A path with the day in its place.
pub fn with_day(option: &str, path: &str, day: Option<NaiveDate>) -> Result<String, Failure> {
    match day {
        _ if !path.contains(DAY) => Ok(path.to_owned()),
        Some(day) => Ok(path.replace(DAY, &day.to_string())),
        None => Err(Failure::Usage(format!("{DAY} in {option} needs --day"))),
    }
}

/// Where an output goes; refused when it could not be written, or would overwrite what is read, before any work is done.
pub async fn output(
    stores: &Stores,
    option: &str,
    path: &str,
    inputs: &[&str],
) -> Result<Location, Failure> {
    let refused = |reason: &str| Err(Failure::Usage(format!("{option} {path} {reason}")));
    let output = stores.locate(path).map_err(|error| match error {
        ::archive::ArchiveError::BadPath { .. } => Failure::Usage(format!("{option} {error}")),
        error => error.into(),
    })?;
    let Some(local) = output.local() else {
        if path.ends_with('/') || output.path().as_ref().is_empty() {
            return refused("is a directory");
        }
        for input in inputs {
            if stores
                .locate(input)
                .is_ok_and(|input| input.covers(&output))
            {
                return refused(&format!("lies in {input}, which is read"));
            }
        }
        return Ok(output);
    };
    let target = resolved(local);
    if target.is_dir() {
        return refused("is a directory");
    }
    if target.exists() && !target.is_file() {
        return refused("is no regular file");
    }
    for input in inputs {
        let read = match stores.locate(input) {
            Ok(location) if location.local().is_none() => continue,
            Ok(location) if location.local().is_some_and(Path::exists) => vec![location],
            // A pattern, or nothing, which is for the reader to say.
            _ => stores.expand(input, &[]).await.unwrap_or_default(),
        };
        let read_here = read.iter().filter_map(Location::local).any(|location| {
            let place = resolved(location);
            target == place || (place.is_dir() && target.starts_with(&place))
        });
        if read_here {
            return refused(&format!("lies in {input}, which is read"));
        }
    }
    match target.parent() {
        Some(parent) if !parent.is_dir() => Err(Failure::Io {
            path: path.to_owned(),
            source: std::io::Error::new(
                std::io::ErrorKind::NotFound,
                format!("there is no directory {}", parent.display()),
            ),
        }),
        _ => Ok(output),
    }
}

/// Whether both are the same place.
fn is_same(one: &Location, other: &Location) -> bool {
    match (one.local(), other.local()) {
        (Some(one), Some(other)) => resolved(one) == resolved(other),
        _ => one.is(other),
    }
}

/// The path without links and dots, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let Ok(real) = absolute.canonicalize() {
        return real;
    }
    match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => parent
            .canonicalize()
            .unwrap_or_else(|_| parent.to_owned())
            .join(name),
        _ => absolute,
    }
}
