//! Copies of the kept documents: the rows of the inputs with all their columns, in the inputs' formats, order and
//! compression.

mod pieces;
mod rows;

use std::collections::HashSet;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::runtime::SpawnedTask;
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;
use rayon::ThreadPool;
use storage::{Draft, Location, StorageError, Stores, UnchangedFile};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::file::InputFile;
use super::formats::ending as ending_of;
use super::partition_reader::row_limit;
use super::row_set::RowSet;
use super::rows::limit::Limit;
use super::splits::first_parts;
use super::{Documents, parquet};
use crate::error::{DocumentsError, Result};
use streams::thread_pool;

/// Where kept documents are copied to.
#[derive(Debug, Clone)]
pub struct KeptPlace {
    /// A file if the batch is one file, or a directory.
    pub given: String,
    /// Which existing files may be replaced.
    pub replace: Replace,
}

/// Which existing files may be replaced by copies of kept documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    Nothing,
    /// Those with the same bytes, so that a run that committed its batch can run again.
    Same,
    Everything,
}

/// The files of the copies, one for each input, in the order of the inputs.
#[derive(Debug, Clone)]
pub struct KeptFiles {
    files: Vec<Location>,
    /// Those of inputs without a row or a header.
    empty: Vec<Location>,
    /// The one file that all copies go to, one behind the other, if it is one.
    joined: Option<Location>,
    replace: Replace,
}

/// Copies that are written, but not published yet.
#[derive(Debug, Default)]
pub struct KeptDrafts {
    drafts: Vec<Draft>,
    /// Copies that the parts of a job made, and their targets.
    copies: Vec<(Location, Location)>,
    /// Copies of an earlier run, of documents that are not kept now.
    stale: Vec<Location>,
    /// Bytes of all files.
    pub bytes: u64,
}

impl KeptDrafts {
    fn add(&mut self, others: Self) {
        self.bytes += others.bytes;
        self.drafts.extend(others.drafts);
        self.copies.extend(others.copies);
        self.stale.extend(others.stale);
    }

    /// Puts the files in their places, one after the other, and removes old copies of documents that are not kept now. Adds the
    /// names of those in place to `placed`: of many the first, and how many there are.
    pub async fn publish(self, placed: &mut Vec<String>) -> Result<()> {
        let mut done = Vec::new();
        let published = self.place(&mut done).await;
        let others = done.len().saturating_sub(1);
        placed.extend(done.into_iter().next().map(|first| match others {
            0 => first,
            _ => format!("{first} and {others} other kept files"),
        }));
        published
    }

    /// As [`Self::publish`]; adds the names of all files in place to `done`.
    async fn place(self, done: &mut Vec<String>) -> Result<()> {
        for draft in self.drafts {
            let target = draft.target().map(ToString::to_string);
            draft.publish().await?;
            done.extend(target);
        }
        let has_failed = AtomicBool::new(false);
        let copies = self.copies.into_iter();
        let copying = copies
            .take_while(|_| !has_failed.load(Ordering::Relaxed))
            .map(|(copy, target)| async move {
                copy.copy_within_store(&target).await?;
                Ok::<_, StorageError>(target.to_string())
            });
        let mut copied = futures::stream::iter(copying).buffer_unordered(COPIED_AT_ONCE);
        let mut all = Ok(());
        // Behind a failure, those that have begun end.
        while let Some(copy) = copied.next().await {
            match copy {
                Ok(target) => done.push(target),
                Err(error) => {
                    has_failed.store(true, Ordering::Relaxed);
                    all = all.and(Err(error));
                }
            }
        }
        all?;
        for file in self.stale {
            file.remove().await?;
        }
        Ok(())
    }
}

impl Documents {
    /// Where each input file's copy goes; the inputs were given as `new`. If `new` is the path of
    /// one file, and `place` is no directory, then `place` is the copy; also of several files of JSON Lines. Otherwise the copies
    /// are below `place`, at the paths that the inputs have below their common directory.
    ///
    /// # Errors
    /// [`DocumentsError::Usage`] when a copy would replace an input or another file that may not be
    /// replaced, or when its name has the ending of another format.
    pub async fn kept_files(
        &self,
        stores: &Stores,
        new: &[String],
        place: &KeptPlace,
    ) -> Result<KeptFiles> {
        let given = &place.given;
        let usage = |reason: String| DocumentsError::Usage(format!("--kept {given}: {reason}"));
        let root = stores.locate(given)?;
        let is_directory = given.ends_with('/') || root.local().is_some_and(Path::is_dir);
        let mut files = Vec::new();
        let one = match new {
            [path] => Some(stores.locate(path)?.identity()),
            _ => None,
        };
        let inputs: Vec<(&Location, &String)> = self.inputs().collect();
        let ending = ending_of(&root.file_name()).unwrap_or_default();
        let is_one = matches!(inputs[..], [(only, _)] if one == Some(only.identity()));
        let is_joined =
            !is_directory && !is_one && JOINED.iter().any(|lines| ending.starts_with(lines));
        if is_joined {
            let other =
                |(input, _): &&(&Location, &String)| ending_of(&input.file_name()) != Some(ending);
            if let Some((other, _)) = inputs.iter().find(other) {
                return Err(usage(format!(
                    "documents are copied in their own format, and {other} does not end in {ending}: name a directory"
                )));
            }
        }
        let is_array = |file: &&Arc<InputFile>| is_joined && file.columns.is_array;
        if let Some(array) = self.files.iter().find(is_array) {
            return Err(usage(format!(
                "{} is one array of JSON, and no JSON Lines: name a directory",
                array.location
            )));
        }
        match inputs[..] {
            _ if is_joined => files.push(root),
            [(only, _)] if !is_directory && is_one => {
                let (name, input) = (root.file_name(), only.file_name());
                let ending = ending_of(&input).unwrap_or_default();
                if ending_of(&name) != Some(ending) {
                    return Err(usage(format!(
                        "the documents are copied in their own format, so the name must end in {ending}"
                    )));
                }
                files.push(root);
            }
            _ => {
                if !is_directory && !ending.is_empty() {
                    return Err(usage(format!(
                        "the batch has several files, and only those of JSON Lines are copied to one: name a directory, such as {given}/"
                    )));
                }
                if root.local().is_some_and(Path::is_file) {
                    return Err(usage(
                        "this is a file, but the batch is not one file: name a directory".into(),
                    ));
                }
                for (_, short_name) in &inputs {
                    files.push(root.child(short_name)?);
                }
            }
        }
        let given_files: HashSet<_> = inputs.iter().map(|(input, _)| input.identity()).collect();
        for file in &files {
            if given_files.contains(&file.identity()) {
                return Err(usage(format!("{file} is an input of this run")));
            }
            if place.replace == Replace::Nothing && file.exists().await? {
                return Err(exists(file));
            }
        }
        Ok(KeptFiles {
            joined: is_joined.then(|| files.remove(0)),
            empty: files.split_off(files.len().min(self.files.len())),
            files,
            replace: place.replace,
        })
    }

    /// All input files and their paths below their common directory, the empty ones last.
    fn inputs(&self) -> impl Iterator<Item = (&Location, &String)> {
        let files = self.files.iter();
        let files = files.map(|file| (&file.location, &file.short_name));
        files.chain(self.empty.iter().map(|(location, name)| (location, name)))
    }

    /// Copies the rows of `kept` to drafts of the files, several at the same time.
    ///
    /// # Errors
    /// [`DocumentsError`] when an input cannot be read, or a copy cannot be written; nothing is left behind.
    pub async fn copy_kept(
        &self,
        context: &SessionContext,
        kept: &Arc<RowSet>,
        files: &KeptFiles,
        scratch: &Path,
    ) -> Result<KeptDrafts> {
        if let Some(target) = &files.joined {
            return self
                .copy_joined(context, kept, target, files.replace, scratch)
                .await;
        }
        let copiers = Copiers::new(context, self.files.len())?;
        let at_once = copiers.threads.current_num_threads();
        let copying = self
            .files
            .iter()
            .zip(&files.files)
            .zip(first_parts(&self.files));
        let copying = copying.map(|((input, target), first_part)| {
            let (input, target, kept) = (Arc::clone(input), target.clone(), Arc::clone(kept));
            let (copiers, scratch, replace) = (copiers.clone(), scratch.to_owned(), files.replace);
            async move {
                if input.columns.is_one_document && !kept.contains(first_part, 0) {
                    let is_stale = replace == Replace::Everything && target.exists().await?;
                    return Ok(KeptDrafts {
                        stale: is_stale.then_some(target).into_iter().collect(),
                        ..KeptDrafts::default()
                    });
                }
                let draft = new_draft(&target, &scratch)?;
                let out = Output {
                    file: draft.open()?,
                    name: target.to_string(),
                };
                write_kept(input, first_part, kept, copiers, out).await?;
                one_draft(draft, &target, replace).await
            }
        });
        let mut copied = futures::stream::iter(copying).buffered(at_once);
        let mut copies = KeptDrafts::default();
        while let Some(more) = copied.next().await {
            copies.add(more?);
        }
        self.copy_empty(files, scratch, &mut copies).await?;
        Ok(copies)
    }

    /// Copies the rows of `kept` to a draft of one file.
    async fn copy_joined(
        &self,
        context: &SessionContext,
        kept: &Arc<RowSet>,
        target: &Location,
        replace: Replace,
        scratch: &Path,
    ) -> Result<KeptDrafts> {
        let draft = new_draft(target, scratch)?;
        let name = target.to_string();
        let file = draft.open()?;
        let copiers = Copiers::new(context, 1)?;
        for (input, first_part) in self.files.iter().zip(first_parts(&self.files)) {
            let out = Output {
                file: file
                    .try_clone()
                    .map_err(|source| Output::failed(&name, source))?,
                name: name.clone(),
            };
            let (mut input, kept) = (Arc::clone(input), Arc::clone(kept));
            if self.files.len() > 1 {
                Arc::make_mut(&mut input).columns.is_joined = true;
            }
            write_kept(input, first_part, kept, copiers.clone(), out).await?;
        }
        one_draft(draft, target, replace).await
    }

    /// Takes the copies that the parts of a job made of the files, in their order; the copies of empty files are made here.
    pub async fn take_copies(
        &self,
        made: Vec<Option<MadeCopy>>,
        files: &KeptFiles,
        scratch: &Path,
    ) -> Result<KeptDrafts> {
        if let Some(target) = &files.joined {
            let draft = new_draft(target, scratch)?;
            let mut file = draft.open()?;
            let failed = |source| Output::failed(&target.to_string(), source);
            let piece = scratch.join("copy");
            for made in made.into_iter().flatten() {
                made.location
                    .copy_to(File::create(&piece).map_err(failed)?)
                    .await?;
                if UnchangedFile::at(&piece)?.digest().await? != (made.bytes, made.sha256.clone()) {
                    return Err(made.damaged().await);
                }
                let mut piece = File::open(&piece).map_err(failed)?;
                std::io::copy(&mut piece, &mut file).map_err(failed)?;
            }
            return one_draft(draft, target, files.replace).await;
        }
        let mut copies = KeptDrafts::default();
        for (made, target) in made.into_iter().zip(&files.files) {
            let Some(made) = made else {
                if files.replace == Replace::Everything && target.exists().await? {
                    copies.stale.push(target.clone());
                }
                continue;
            };
            let same = || (made.bytes, made.sha256.clone());
            if files.replace == Replace::Same
                && target.exists().await?
                && target.digest().await? != same()
            {
                return Err(exists(target));
            }
            copies.bytes += made.bytes;
            let is_in_store = target.local().is_none() && target.root() == made.location.root();
            if is_in_store && made.bytes <= COPIED_BY_STORE {
                // A store has no part of an object; and to read it all would take as long as to copy it.
                if made.location.current_size().await? != made.bytes {
                    return Err(made.damaged().await);
                }
                copies.copies.push((made.location, target.clone()));
                continue;
            }
            let mut draft = new_draft(target, scratch)?;
            made.location.copy_to(draft.open()?).await?;
            if draft.digest().await? != same() {
                return Err(made.damaged().await);
            }
            draft.send().await?;
            copies.drafts.push(draft);
        }
        self.copy_empty(files, scratch, &mut copies).await?;
        Ok(copies)
    }

    /// Copies the kept rows of the only file, whose first part has the number `first_part`, to the file at `path`; returns false if
    /// the file is one document that is not kept.
    pub async fn copy_kept_to(
        &self,
        context: &SessionContext,
        first_part: usize,
        kept: &Arc<RowSet>,
        path: &Path,
    ) -> Result<bool> {
        let [input] = &self.files[..] else {
            return Err(DocumentsError::Internal("not one file to copy".into()));
        };
        if input.columns.is_one_document && !kept.contains(first_part, 0) {
            return Ok(false);
        }
        let name = path.display().to_string();
        let out = Output {
            file: File::create(path).map_err(|source| Output::failed(&name, source))?,
            name,
        };
        let (input, kept) = (Arc::clone(input), Arc::clone(kept));
        write_kept(input, first_part, kept, Copiers::new(context, 1)?, out).await?;
        Ok(true)
    }

    async fn copy_empty(
        &self,
        files: &KeptFiles,
        scratch: &Path,
        copies: &mut KeptDrafts,
    ) -> Result<()> {
        for ((input, _), target) in self.empty.iter().zip(&files.empty) {
            let draft = new_draft(target, scratch)?;
            let written = draft.open()?.write_all(&input.read().await?);
            written.map_err(|source| Output::failed(&target.to_string(), source))?;
            copies.add(one_draft(draft, target, files.replace).await?);
        }
        Ok(())
    }
}

/// The endings of files that can be joined: JSON Lines.
const JOINED: [&str; 2] = [".jsonl", ".ndjson"];

/// A copy that is written. Refuses to replace an existing file that has other bytes, if these must be the same.
async fn one_draft(mut draft: Draft, target: &Location, replace: Replace) -> Result<KeptDrafts> {
    if replace == Replace::Same
        && target.exists().await?
        && target.digest().await? != draft.digest().await?
    {
        return Err(exists(target));
    }
    let bytes = draft.send().await?;
    Ok(KeptDrafts {
        bytes,
        drafts: vec![draft],
        ..KeptDrafts::default()
    })
}

/// A copy of a file that a part of a job made.
#[derive(Debug, Clone)]
pub struct MadeCopy {
    pub location: Location,
    pub bytes: u64,
    pub sha256: String,
}

impl MadeCopy {
    /// Removes the copy, so that its part is not answered any more.
    async fn damaged(&self) -> DocumentsError {
        let done = match self.location.remove().await {
            Ok(()) => "and is removed; `dedup-job reduce` now names the part".to_owned(),
            Err(error) => {
                format!(
                    "and cannot be removed ({error}): remove it; then `dedup-job reduce` names the part"
                )
            }
        };
        let reason = format!("this copy is not the one that a part made, {done}");
        DocumentsError::bad_data(&self.location, reason)
    }
}

/// Bytes that every store copies in one request: Amazon S3 refuses more than 5 GB.
const COPIED_BY_STORE: u64 = 4 << 30;
const COPIED_AT_ONCE: usize = 32;

/// What copies take of the machine.
#[derive(Clone)]
struct Copiers {
    /// Of rows in memory.
    limit: Limit,
    /// The threads that compress pieces.
    threads: Arc<ThreadPool>,
    /// Pieces of a file that are compressed, or wait for those before.
    pieces: usize,
}

impl Copiers {
    fn new(context: &SessionContext, files: usize) -> Result<Self> {
        let threads = Arc::new(thread_pool(context)?);
        let at_once = threads.current_num_threads().min(files).max(1);
        Ok(Self {
            limit: row_limit(context),
            pieces: (2 * threads.current_num_threads()).div_ceil(at_once),
            threads,
        })
    }
}

/// Copies the kept rows of a file, on another thread. The caller keeps the draft: if a signal ends the run, it is removed, even while
/// that thread goes on.
async fn write_kept(
    input: Arc<InputFile>,
    first_part: usize,
    kept: Arc<RowSet>,
    copiers: Copiers,
    out: Output,
) -> Result<()> {
    let write = async move {
        let is_kept = |part, row| kept.contains(first_part + part, row);
        match input.rows() {
            Some(source) => {
                let copy = || rows::copy(&input, source, &copiers, out, &is_kept);
                match Handle::current().runtime_flavor() {
                    RuntimeFlavor::CurrentThread => copy(),
                    _ => tokio::task::block_in_place(copy),
                }
            }
            None => parquet::copy(&input, out, &|row| is_kept(0, row)).await,
        }
    };
    let written = SpawnedTask::spawn(write).join_unwind().await;
    written.map_err(|error| DocumentsError::Internal(format!("a copy did not end: {error}")))?
}

/// A draft of the copy at `target`, whose directory is created.
fn new_draft(target: &Location, scratch: &Path) -> Result<Draft> {
    if let Some(directory) = target.local().and_then(Path::parent) {
        std::fs::create_dir_all(directory).map_err(StorageError::io(directory.display()))?;
    }
    Ok(Draft::new(target, scratch)?)
}

/// The error for an existing file that may not be replaced.
fn exists(file: &Location) -> DocumentsError {
    DocumentsError::Usage(format!(
        "--kept {file} exists; choose another name, or replace it with --overwrite"
    ))
}

/// A file that rows are copied to, with its name in errors.
pub(super) struct Output {
    pub(super) file: File,
    pub(super) name: String,
}

impl Output {
    pub(super) fn failed(name: &str, source: std::io::Error) -> DocumentsError {
        StorageError::io(name)(source).into()
    }
}
