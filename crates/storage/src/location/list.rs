//! Expands a path to files: the file itself, the files below a directory, or those that match a pattern.

use std::collections::HashSet;
use std::path::Path as FsPath;

use futures::TryStreamExt as _;
use glob::Pattern;
use object_store::ObjectMeta;
use object_store::path::Path;

use super::Location;
use super::names::{Skipped, has_extension, is_hidden, is_hidden_by_pattern, is_visible};
use super::pattern::{first_wildcard, is_pattern, matches};
use super::table::remote_table_above;
use super::walk::Walk;
use crate::delta_log::{is_local_table, local_table_above, table_of_entry};
use crate::error::{Result, StorageError};
use crate::store::Stores;

/// What a path stands for.
#[derive(Debug, Clone)]
pub enum Expansion {
    /// These files, sorted by path, and what the list leaves out.
    Files(Vec<Location>, Skipped),
    /// A Delta table: its log says which files are its data.
    Table(Location),
}

impl Stores {
    /// Lists the files that a path stands for: the file itself, the files below the directory, or
    /// those that match the pattern. A directory's list leaves out hidden files and directories and those by
    /// which jobs mark what they did, and warns of files with other `extensions`. If symlinks or hard links give a file several
    /// names, the list has only the first. The directory of a Delta table stands for the table; `expand` refuses
    /// every other path to a table's files.
    ///
    /// # Errors
    /// [`StorageError::NotFound`] when there is no such file, [`StorageError::BadPath`] for a malformed pattern, for a pipe or a
    /// device, and for a directory whose files have none of the `extensions`; [`StorageError::InTable`] and
    /// [`StorageError::HoldsTable`] for files of a Delta table.
    pub async fn expand(&self, given: &str, extensions: &[&str]) -> Result<Expansion> {
        let location = self.locate(given)?;
        match location.local() {
            Some(local) if is_local_table(local) => Ok(Expansion::Table(location)),
            Some(local) => expand_local(self, &location, local, extensions),
            None => self.expand_remote(location, extensions).await,
        }
    }
}

/// The error for what is on this machine, but no regular file.
fn no_file(location: &Location, reason: &str) -> StorageError {
    let reason = format!(
        "{reason} is not read here, because a file is read several times; save it to a file"
    );
    StorageError::bad_path(location, reason)
}

fn not_found(location: &Location) -> StorageError {
    StorageError::NotFound {
        path: location.given.clone(),
    }
}

/// The error for a directory that has `others` files, but none with one of the `extensions`.
fn no_such_extension(location: &Location, others: u64, extensions: &[&str]) -> StorageError {
    let endings = endings_in_words(extensions);
    StorageError::bad_path(
        location,
        format!("none of its {others} files ends in {endings}"),
    )
}

/// Endings of files' names, those with a compression in few words.
pub fn endings_in_words(endings: &[&str]) -> String {
    const COMPRESSED: [&str; 2] = [".gz", ".zst"];
    let is_compressed = |name: &str| COMPRESSED.iter().any(|ending| name.ends_with(ending));
    let plain: Vec<&str> = endings
        .iter()
        .copied()
        .filter(|name| !is_compressed(name))
        .collect();
    let also = if plain.len() < endings.len() {
        ", most also with .gz or .zst behind them"
    } else {
        ""
    };
    format!("{}{also}", plain.join(", "))
}

fn expand_local(
    stores: &Stores,
    location: &Location,
    local: &FsPath,
    extensions: &[&str],
) -> Result<Expansion> {
    if let Some(table) = local_table_above(local) {
        return Err(StorageError::in_table(location, table.display()));
    }
    let mut walk = Walk::new(location, extensions);
    if local.is_file() {
        return Ok(Expansion::Files(vec![location.clone()], walk.skipped));
    } else if local.is_dir() {
        walk.add_below(local)?;
        let others = walk.skipped.other_endings.number;
        if walk.files.is_empty() && others > 0 {
            return Err(no_such_extension(location, others, extensions));
        }
    } else if local.exists() {
        return Err(no_file(location, "a pipe or device"));
    } else if location.given == "-" {
        return Err(no_file(location, "standard input"));
    } else if is_pattern(&location.given) {
        walk.add_matching(local)?;
        if walk.files.is_empty() {
            return Err(not_found(location));
        }
    } else {
        return Err(not_found(location));
    }
    walk.skipped.warn(&location.given);
    let mut files = walk.files;
    files.sort();
    let mut locations = Vec::with_capacity(files.len());
    let mut seen = HashSet::new();
    for file in files {
        let file = stores.locate_local(file.to_string_lossy().into_owned(), file)?;
        if seen.insert(file.identity()) {
            locations.push(file);
        }
    }
    Ok(Expansion::Files(locations, walk.skipped))
}

impl Stores {
    async fn expand_remote(&self, location: Location, extensions: &[&str]) -> Result<Expansion> {
        let whole = location.path.as_ref();
        let is_directory = location.given.ends_with('/') || whole.is_empty();
        let exists = async { Ok::<_, StorageError>(!is_directory && location.exists().await?) };
        let (exists, table) = futures::join!(exists, remote_table_above(&location));
        let exists = exists?;
        match table? {
            Some(table) if table == location.path => return Ok(Expansion::Table(location)),
            Some(table) => {
                return Err(StorageError::in_table(
                    &location,
                    url_of(&location, table.as_ref()),
                ));
            }
            None if exists => {
                return Ok(Expansion::Files(vec![location.found()], Skipped::default()));
            }
            None => {}
        }
        let (prefix, (mut files, mut skipped)) = match first_wildcard(whole) {
            Some(at) => {
                let prefix = whole[..at].rsplit_once('/');
                let prefix = prefix.map_or("", |(prefix, _)| prefix);
                let files = objects_matching(&location, prefix, extensions).await?;
                (prefix, (files, Skipped::default()))
            }
            None => (whole, objects_below(&location, extensions).await?),
        };
        let below = format!("{prefix}/");
        for key in self.traffic().odd_keys(below.trim_start_matches('/')) {
            skipped.unreadable_names.add(&key);
        }
        skipped.warn(&location.given);
        if files.is_empty() {
            return Err(not_found(&location));
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Expansion::Files(files, skipped))
    }
}

/// The objects below the location that are not hidden and have one of the extensions.
async fn objects_below(
    location: &Location,
    extensions: &[&str],
) -> Result<(Vec<Location>, Skipped)> {
    let listed = list(location, &location.path).await?;
    let entries = listed.iter().map(|meta| meta.location.as_ref());
    let mut tables = entries.filter_map(table_of_entry);
    if let Some(table) = tables.find(|table| is_visible(path_below(location, table))) {
        return Err(StorageError::holds_table(location, url_of(location, table)));
    }
    let mut files = Vec::new();
    let mut skipped = Skipped::default();
    let mut hidden = HashSet::new();
    for meta in listed {
        let name = path_below(location, meta.location.as_ref());
        if let Some(component) = name.split('/').find(|component| is_hidden(component)) {
            // A directory counts once.
            if hidden.insert(component.to_owned()) {
                skipped.hidden.add(component);
            }
            continue;
        }
        if has_extension(name, extensions) {
            files.push(listed_object(location, meta))
        } else {
            skipped.other_endings.add(name)
        }
    }
    let others = skipped.other_endings.number;
    if files.is_empty() && others > 0 {
        return Err(no_such_extension(location, others, extensions));
    }
    Ok((files, skipped))
}

/// The part of an object's path below the location.
fn path_below<'a>(location: &Location, path: &'a str) -> &'a str {
    let below = path.strip_prefix(location.path.as_ref());
    below.unwrap_or(path).trim_start_matches('/')
}

/// The objects below `prefix` that match the location as a pattern, or lie below a directory that
/// matches it.
async fn objects_matching(
    location: &Location,
    prefix: &str,
    extensions: &[&str],
) -> Result<Vec<Location>> {
    let whole = location.path.as_ref();
    let pattern = Pattern::new(whole).map_err(|error| StorageError::bad_path(location, error))?;
    // Not `Path::from`, which would encode a `%`.
    let prefix = Path::parse(prefix).map_err(|error| StorageError::bad_path(location, error))?;
    let listed = list(location, &prefix).await?;
    let entries = listed.iter().map(|meta| meta.location.as_ref());
    let tables: HashSet<String> = entries
        .filter_map(table_of_entry)
        .map(str::to_owned)
        .collect();
    let mut files = Vec::new();
    for meta in listed {
        let path = meta.location.as_ref();
        // A pattern that matches a directory stands for the files below it.
        let ends = path.match_indices('/').map(|(at, _)| at);
        let directory = ends.rev().find(|&end| matches(&pattern, &path[..end]));
        let is_included = match directory {
            _ if matches(&pattern, path) => !is_hidden_by_pattern(whole, path),
            Some(end) => {
                let (directory, below) = (&path[..end], &path[end + 1..]);
                !is_hidden_by_pattern(whole, directory)
                    && is_visible(below)
                    && has_extension(path, extensions)
            }
            None => false,
        };
        if !is_included {
            continue;
        }
        let mut above = path.match_indices('/').map(|(end, _)| &path[..end]);
        if let Some(table) = above.find(|above| tables.contains(*above)) {
            return Err(StorageError::in_table(location, url_of(location, table)));
        }
        files.push(listed_object(location, meta));
    }
    Ok(files)
}

fn url_of(location: &Location, path: &str) -> String {
    format!("{}/{path}", location.root.as_str().trim_end_matches('/'))
}

fn listed_object(location: &Location, meta: ObjectMeta) -> Location {
    Location {
        given: url_of(location, meta.location.as_ref()),
        path: meta.location,
        size: Some(meta.size),
        is_found: true,
        ..location.clone()
    }
}

async fn list(location: &Location, prefix: &Path) -> Result<Vec<ObjectMeta>> {
    let listed = location.store.list(Some(prefix)).try_collect().await;
    let mut listed: Vec<ObjectMeta> = listed.map_err(|error| location.store_error(error))?;
    // An empty object with others below it is the mark of a folder.
    if listed.iter().all(|meta| meta.size > 0) {
        return Ok(listed);
    }
    let folders: HashSet<String> = listed
        .iter()
        .flat_map(|meta| {
            let path = meta.location.as_ref();
            path.match_indices('/')
                .map(|(end, _)| path[..end].to_owned())
        })
        .collect();
    listed.retain(|meta| meta.size > 0 || !folders.contains(meta.location.as_ref()));
    Ok(listed)
}
