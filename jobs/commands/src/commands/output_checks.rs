//! Checks outputs before any work: an output must not replace an input, a file of another program,
//! or a part of an archive.

use std::path::{Path, PathBuf};

use engine::output::{OutputFormat, OutputKind, OutputTarget, Present, present};
use storage::{Location, StorageError, Stores};

use crate::exit::{Failure, usage};

/// The path that means standard output.
const STDOUT: &str = "-";

/// Checks the outputs of a command against what they must not replace.
pub struct Outputs<'a> {
    pub stores: &'a Stores,
    /// The command's inputs.
    pub inputs: Vec<&'a str>,
    /// Whether existing files of any kind may be replaced: --overwrite.
    pub overwrite: bool,
}

impl Outputs<'_> {
    /// Checks an output of rows of the kind `written`; returns it with the format of its ending.
    pub async fn check_rows(
        &self,
        option: &str,
        path: &str,
        written: OutputKind,
    ) -> Result<OutputTarget, Failure> {
        if path == STDOUT {
            return Ok(OutputTarget::stdout());
        }
        let location = self.check_location(option, path).await?;
        let target = OutputTarget::file(location.clone())
            .map_err(|error| Failure::Usage(format!("{option} {error}")))?;
        self.check_owner(option, &location, written).await?;
        Ok(target)
    }

    /// Checks an output that is a Parquet file of the kind `written`; returns its location.
    pub async fn check_parquet(
        &self,
        option: &str,
        path: &str,
        written: OutputKind,
    ) -> Result<Location, Failure> {
        let location = self.check_location(option, path).await?;
        if OutputFormat::from_name(&location.file_name()) != Some(OutputFormat::Parquet) {
            return usage(format!(
                "{option} {path}: the output is a Parquet file, so its name must end in .parquet"
            ));
        }
        self.check_owner(option, &location, written).await?;
        Ok(location)
    }

    /// Checks a file or directory that is to get copies of documents; returns its path.
    pub async fn check_copies(&self, option: &str, path: &str) -> Result<String, Failure> {
        let place = self.stores.locate(path).map_err(|error| match error {
            StorageError::BadPath { .. } => Failure::Usage(format!("{option} {error}")),
            error => error.into(),
        })?;
        let is_directory = path.ends_with('/') || place.local().is_some_and(Path::is_dir);
        // Checks a file in the directory instead: any such file lies in the same inputs and tables.
        let checked = if is_directory {
            place.child_name("copy")
        } else {
            path.to_owned()
        };
        let location = self.stores.locate(&checked)?;
        if let Some(table) = location.table_above().await? {
            return usage(format!("{option} {path} lies in the Delta table {table}"));
        }
        match self.input_with(&location).await {
            Some(input) => usage(format!("{option} {path} lies in {input}, which is read")),
            None => Ok(path.to_owned()),
        }
    }

    /// The input that an output lies in.
    async fn input_with(&self, output: &Location) -> Option<&str> {
        for input in &self.inputs {
            let located = self.stores.locate(input);
            let Some(local) = output.local() else {
                if located.is_ok_and(|input| input.covers(output)) {
                    return Some(input);
                }
                continue;
            };
            let target = resolved(local);
            let read = match located {
                Ok(location) if location.local().is_none() => continue,
                Ok(location) if location.local().is_some_and(Path::exists) => vec![location],
                // A pattern, or a path where nothing exists. The reader of the input reports
                // errors.
                _ => ::archive::input_files(self.stores, input, &[])
                    .await
                    .map(|(files, _)| files)
                    .unwrap_or_default(),
            };
            let is_inside = read.iter().filter_map(Location::local).any(|location| {
                let input = resolved(location);
                target == input || (input.is_dir() && target.starts_with(&input))
            });
            if is_inside {
                return Some(input);
            }
        }
        None
    }

    /// Checks an output of the kind `written`, whose name may have any ending; returns its
    /// location.
    pub async fn check_file(
        &self,
        option: &str,
        path: &str,
        written: OutputKind,
    ) -> Result<Location, Failure> {
        let location = self.check_location(option, path).await?;
        self.check_owner(option, &location, written).await?;
        Ok(location)
    }

    /// Refuses a location whose existing file may not be replaced by an output of the kind
    /// `written`.
    async fn check_owner(
        &self,
        option: &str,
        location: &Location,
        written: OutputKind,
    ) -> Result<(), Failure> {
        if self.overwrite {
            return Ok(());
        }
        let why = match present(location).await? {
            Present::Nothing => return Ok(()),
            Present::Output(kind) if kind == written => return Ok(()),
            Present::Output(_) => {
                "the existing file has rows of another kind (pairs, decisions or fingerprints)"
            }
            Present::Foreign => "dedup-job did not write the existing file",
        };
        usage(format!(
            "{option} {location}: {why}; choose another name, or replace it with --overwrite"
        ))
    }

    /// The location of a path. Refuses a path that cannot be a file, or lies in an input or a Delta
    /// table.
    async fn check_location(&self, option: &str, path: &str) -> Result<Location, Failure> {
        let refused = |reason: &str| usage(format!("{option} {path} {reason}"));
        let output = self.stores.locate(path).map_err(|error| match error {
            StorageError::BadPath { .. } => Failure::Usage(format!("{option} {error}")),
            error => error.into(),
        })?;
        let target = output.local().map(resolved);
        match &target {
            None if path.ends_with('/') || output.path().as_ref().is_empty() => {
                return refused("is a directory");
            }
            Some(target) if target.is_dir() => return refused("is a directory"),
            Some(target) if target.exists() && !target.is_file() => {
                return refused("is not a regular file");
            }
            _ => {}
        }
        if let Some(input) = self.input_with(&output).await {
            return refused(&format!("lies in {input}, which is read"));
        }
        if let Some(parent) = target.as_deref().and_then(Path::parent)
            && !parent.is_dir()
        {
            let missing = format!("there is no directory {}", parent.display());
            let missing = std::io::Error::new(std::io::ErrorKind::NotFound, missing);
            return Err(StorageError::io(path)(missing).into());
        }
        match output.table_above().await? {
            Some(table) => refused(&format!("lies in the Delta table {table}")),
            None => Ok(output),
        }
    }
}

/// Whether two locations are the same file or object.
pub fn is_same(one: &Location, other: &Location) -> bool {
    match (one.local(), other.local()) {
        (Some(one), Some(other)) => resolved(one) == resolved(other),
        _ => one.is(other),
    }
}

/// The path with symbolic links and `..` resolved, as far as it exists.
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
