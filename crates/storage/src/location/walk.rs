//! Finds the local files that lie below a directory or match a pattern.
//!
//! The walk follows symlinks, but enters each directory only once, so that a cycle of symlinks
//! ends.

use std::collections::HashSet;
use std::fs::{DirEntry, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path as FsPath, PathBuf};

use glob::{Pattern, PatternError};

use super::Location;
use super::names::{Skipped, has_extension, is_hidden, is_hidden_by_pattern};
use super::pattern::{is_pattern, matches};
use crate::delta_log::{is_local_table, local_table_above};
use crate::error::{Result, StorageError};

/// Matches any number of directories.
const RECURSIVE: &str = "**";

/// Device and inode.
type Node = (u64, u64);

fn node_of(metadata: &Metadata) -> Node {
    (metadata.dev(), metadata.ino())
}

/// The entries of a directory, sorted by name.
fn entries(directory: &FsPath) -> Result<Vec<DirEntry>> {
    let entries = std::fs::read_dir(directory).and_then(Iterator::collect);
    let mut entries: Vec<DirEntry> = entries.map_err(StorageError::io(directory.display()))?;
    entries.sort_by_cached_key(DirEntry::file_name);
    Ok(entries)
}

/// Collects the files that lie below directories or match a pattern.
pub(super) struct Walk<'a> {
    location: &'a Location,
    extensions: &'a [&'a str],
    walked: HashSet<Node>,
    pub(super) files: Vec<PathBuf>,
    pub(super) skipped: Skipped,
}

impl<'a> Walk<'a> {
    pub(super) fn new(location: &'a Location, extensions: &'a [&'a str]) -> Self {
        Self {
            location,
            extensions,
            walked: HashSet::new(),
            files: Vec::new(),
            skipped: Skipped::default(),
        }
    }

    /// Adds the files below `directory` that have one of the extensions.
    ///
    /// # Errors
    /// [`StorageError::HoldsTable`] for a Delta table below it, [`StorageError::InTable`] for a symlink into one.
    pub(super) fn add_below(&mut self, directory: &FsPath) -> Result<()> {
        let metadata = directory
            .metadata()
            .map_err(StorageError::io(directory.display()))?;
        if !self.walked.insert(node_of(&metadata)) {
            return Ok(());
        }
        if is_local_table(directory) {
            return Err(StorageError::holds_table(
                self.location,
                directory.display(),
            ));
        }
        for entry in entries(directory)? {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if is_hidden(&name) {
                self.skipped.hidden.add(&name);
                continue;
            }
            let path = entry.path();
            if let Some(table) = linked_table(&path) {
                return Err(StorageError::in_table(path.display(), table.display()));
            }
            if path.is_dir() {
                self.add_below(&path)?;
            } else if !has_extension(&name, self.extensions) {
                self.skipped.other_endings.add(&name);
            } else {
                self.add(path);
            }
        }
        Ok(())
    }

    /// Adds the files that match the location as a pattern, and the files below directories that match it.
    ///
    /// # Errors
    /// [`StorageError::BadPath`] for a malformed pattern, and as [`Self::add_below`].
    pub(super) fn add_matching(&mut self, local: &FsPath) -> Result<()> {
        let mut matches = Matches::default();
        let parts = parse_pattern(self.location, local)?;
        matches.find(PathBuf::from("/"), &parts)?;
        let mut checked = HashSet::new();
        for found in matches.found {
            if is_hidden_by_pattern(self.location.given(), &found.to_string_lossy()) {
                continue;
            }
            let parent = found.parent().unwrap_or(FsPath::new("/")).to_owned();
            // `add_below` checks whether a directory is itself a table.
            let table = if checked.insert(parent.clone()) {
                local_table_above(&parent)
            } else {
                None
            };
            if let Some(table) = table.or_else(|| linked_table(&found)) {
                return Err(StorageError::in_table(self.location, table.display()));
            }
            if found.is_dir() {
                self.add_below(&found)?;
            } else {
                self.add(found);
            }
        }
        Ok(())
    }

    fn add(&mut self, file: PathBuf) {
        match file.to_str() {
            // A pipe would wait for a writer. A link that leads nowhere is an error when it is read.
            Some(name) if file.exists() && !file.is_file() => self.skipped.no_files.add(name),
            // Stores have no such names.
            Some(name) if has_control(name) && !has_control(self.location.given()) => {
                self.skipped
                    .unreadable_names
                    .add(&name.escape_debug().to_string());
            }
            Some(_) => self.files.push(file),
            None => self.skipped.unreadable_names.add(&file.to_string_lossy()),
        }
    }
}

fn has_control(name: &str) -> bool {
    name.bytes().any(|byte| byte.is_ascii_control())
}

/// The table that a symlink's target lies in; `None` if the target is the table itself, or `link` is no symlink.
fn linked_table(link: &FsPath) -> Option<PathBuf> {
    if !link.is_symlink() {
        return None;
    }
    let target = link.canonicalize().ok()?;
    local_table_above(target.parent()?)
}

/// A component of a pattern.
enum Part {
    Name(PathBuf),
    Pattern(Pattern),
    /// `**`: any number of directories.
    Recursive,
}

fn parse_pattern(location: &Location, local: &FsPath) -> Result<Vec<Part>> {
    let bad = |error: PatternError| StorageError::bad_path(location, error);
    // Parses the whole pattern first, so that an error gives the position in the whole pattern.
    Pattern::new(&local.to_string_lossy()).map_err(bad)?;
    let mut parts = Vec::new();
    for component in local.components() {
        let Component::Normal(name) = component else {
            continue;
        };
        let text = name.to_string_lossy();
        parts.push(match &*text {
            RECURSIVE => Part::Recursive,
            text if is_pattern(text) => Part::Pattern(Pattern::new(text).map_err(bad)?),
            _ => Part::Name(name.into()),
        });
    }
    Ok(parts)
}

/// Finds the paths that match a pattern.
#[derive(Default)]
struct Matches {
    found: Vec<PathBuf>,
    /// Directories that a `**` matched, each with the number of pattern components after that `**`.
    /// `find` does not search a directory again with the same components: it would find the same
    /// files.
    searched: HashSet<(Node, usize)>,
}

impl Matches {
    /// Adds the paths below `directory` that match `parts`.
    fn find(&mut self, directory: PathBuf, parts: &[Part]) -> Result<()> {
        let Some((part, rest)) = parts.split_first() else {
            self.found.push(directory);
            return Ok(());
        };
        if !directory.is_dir() {
            return Ok(());
        }
        match part {
            Part::Name(name) => {
                let path = directory.join(name);
                if path.symlink_metadata().is_ok() {
                    self.find(path, rest)?;
                }
            }
            Part::Pattern(pattern) => {
                for entry in entries(&directory)? {
                    let name = entry.file_name();
                    if matches(pattern, &name.to_string_lossy()) {
                        self.find(entry.path(), rest)?;
                    }
                }
            }
            Part::Recursive => {
                let metadata = directory
                    .metadata()
                    .map_err(StorageError::io(directory.display()))?;
                if !self.searched.insert((node_of(&metadata), rest.len())) {
                    return Ok(());
                }
                self.find(directory.clone(), rest)?;
                // A `**` at the end matches the directory itself; `add_matching` walks it later.
                if rest.is_empty() {
                    return Ok(());
                }
                for entry in entries(&directory)? {
                    let path = entry.path();
                    if path.is_dir() {
                        self.find(path, parts)?;
                    }
                }
            }
        }
        Ok(())
    }
}
