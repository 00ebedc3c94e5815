//! One module a command: its arguments to settings, one call, its summary.

pub mod archive;
pub mod explain;
pub mod fingerprint;
pub mod generate;
pub mod help;
pub mod idf;
pub mod plan;
pub mod run;
pub mod tune;

use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// An option that the command cannot do without.
fn required<T>(value: Option<T>, option: &str) -> Result<T, Failure> {
    value.ok_or_else(|| Failure::Usage(format!("{option} is needed; see --help")))
}

/// Refuses an output that could not be written, or that would overwrite what is read, before any work is done.
fn check_output(option: &str, output: &Path, inputs: &[&str]) -> Result<(), Failure> {
    let target = resolved(output);
    if target.is_dir() {
        return Err(Failure::Usage(format!(
            "{option} {} is a directory",
            output.display()
        )));
    }
    if target.exists() && !target.is_file() {
        return Err(Failure::Usage(format!(
            "{option} {} is no regular file",
            output.display()
        )));
    }
    for input in inputs {
        let read = match ::archive::Location::parse(input) {
            Ok(location) if location.local().exists() => vec![location],
            // A pattern, or nothing, which is for the reader to say.
            _ => ::archive::location::expand(input, &[]).unwrap_or_default(),
        };
        let read_here = read.iter().any(|location| {
            let place = resolved(location.local());
            target == place || (place.is_dir() && target.starts_with(&place))
        });
        if read_here {
            return Err(Failure::Usage(format!(
                "{option} {} lies in {input}, which is read",
                output.display()
            )));
        }
    }
    match target.parent() {
        Some(parent) if !parent.is_dir() => Err(Failure::Io {
            path: output.display().to_string(),
            source: std::io::Error::new(
                std::io::ErrorKind::NotFound,
                format!("there is no directory {}", parent.display()),
            ),
        }),
        _ => Ok(()),
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

/// A local path, or why it is none.
fn local(option: &str, path: &str) -> Result<PathBuf, Failure> {
    let location = ::archive::Location::parse(path)
        .map_err(|error| Failure::Usage(format!("{option} {error}")))?;
    // As it was given, where that is a path: summaries and errors show it.
    Ok(if path.contains("://") {
        location.local().to_owned()
    } else {
        PathBuf::from(path)
    })
}
