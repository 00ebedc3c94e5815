//! Cuts large WARC files into parts, so that several threads, or parts of a job, read a file.
//!
//! The places are found once, before documents are read: of compressed files, from a few bytes around each; of plain ones, from
//! the headers of all records up to the last place. See [`warc::Cuts`].
//!
//! A place of a file that was made for it may be wrong, and so may one behind a second dictionary. Only the reader of the part
//! before it notices that, at the end of the part.
//! Others have then used rows of the file: so what was made of the documents is thrown away, and made again without the cuts of
//! the file, see [`Documents::uncut`]. The first pass over the documents reads all parts to their ends, so no later one finds a
//! wrong cut.

use std::io::BufReader;
use std::sync::Arc;

use datafusion::prelude::SessionContext;
use futures::{StreamExt as _, TryStreamExt as _};
use storage::{Location, StorageError, UnchangedFile};
use warc::{Cuts, Dictionary, MemberCuts, RecordStarts};

use super::Documents;
use super::file::InputFile;
use super::partition_reader::row_limit;
use super::rows::window;
use super::splits;
use crate::error::{DocumentsError, Result};
use streams::blocking;

/// Files whose places are found at the same time.
const FILES_AT_ONCE: usize = 4;
/// Places of a file that are found at the same time.
const PLACES_AT_ONCE: usize = 4;
/// How many bytes behind a wanted place are searched for a cut: first the smaller number, then the larger. If they have none, the
/// file is not cut there.
const WINDOWS: [u64; 2] = [512 << 10, 4 << 20];
/// Bytes that are read at a time of a file whose records are found by their lengths.
const BUFFER: usize = 128 << 10;

impl Documents {
    /// Whether [`Self::cut`] may cut some of the files.
    pub fn can_be_cut(&self) -> bool {
        self.files.iter().any(|file| pieces(file, 0) > 1)
    }

    /// Cuts large WARC files, so that `readers` readers can share the documents evenly. Files that are one gzip member or one
    /// zstd frame, and files in a store that are not compressed, stay whole.
    pub async fn cut(&mut self, context: &SessionContext, readers: usize) -> Result<()> {
        if readers <= 1 || !self.can_be_cut() {
            return Ok(());
        }
        let most = splits::split_bytes(self.bytes(), readers as u64);
        let window_log = row_limit(context).window_log;
        let finding = self.files.iter().map(|file| {
            let file = Arc::clone(file);
            async move {
                match pieces(&file, most) {
                    0 | 1 => Ok(Vec::new()),
                    pieces => find(&file, pieces, window_log).await,
                }
            }
        });
        let found = futures::stream::iter(finding).buffered(FILES_AT_ONCE);
        let found: Vec<Vec<u64>> = found.try_collect().await?;
        let found = self.files.iter_mut().zip(found);
        for (file, places) in found.filter(|(_, places)| !places.is_empty()) {
            let file = Arc::make_mut(file);
            tracing::debug!(file = %file.location, parts = places.len() + 1, "a file is cut");
            file.cut_at(places);
        }
        Ok(())
    }

    /// Removes the cuts of the file with a wrong cut, given by its name and the cut's offset in bytes, whether this process or a
    /// part of a job found it. The caller then reads all documents again. The second wrong cut removes the cuts of all files, so
    /// that the caller reads the documents at most three times, however many files have wrong cuts. Returns `false` if there is no
    /// such file.
    pub fn uncut(&mut self, wrong_cut: Option<(&str, u64)>) -> bool {
        let Some((name, offset)) = wrong_cut else {
            return false;
        };
        // Parts of a job have the absolute name.
        let has_name =
            |location: &Location| location.to_string() == name || location.absolute_name() == name;
        let is_wrong = |file: &Arc<InputFile>| !file.cuts().is_empty() && has_name(&file.location);
        let is_wrong: Vec<bool> = self.files.iter().map(is_wrong).collect();
        let Some(wrong) = is_wrong.iter().position(|is_wrong| *is_wrong) else {
            return false;
        };
        let cut = DocumentsError::WrongCut {
            file: self.files[wrong].location.to_string(),
            offset,
        };
        let all = std::mem::replace(&mut self.had_wrong_cut, true);
        let which = if all { "each file" } else { "this file" };
        tracing::warn!("{cut}; the documents are read again, {which} as a whole");
        for (file, is_wrong) in self.files.iter_mut().zip(is_wrong) {
            if all || is_wrong {
                Arc::make_mut(file).cut_at(Vec::new());
            }
        }
        true
    }

    /// Cuts the files where those of `other` are cut, which are the same. Positions name the parts.
    pub fn cut_as(&mut self, other: &Self) {
        for (file, cut) in self.files.iter_mut().zip(&other.files) {
            Arc::make_mut(file).cut_at(cut.cuts().to_vec());
        }
    }
}

/// The parts that a file should have, of about `most` decompressed bytes each, but not less than a split has; 1 if its format is
/// not cut.
fn pieces(file: &InputFile, most: u64) -> u64 {
    match file.rows() {
        Some(rows) if rows.format.has_members() => {
            rows.bytes.div_ceil(most.max(splits::MIN_SPLIT_BYTES))
        }
        _ => 1,
    }
}

/// Places that cut a file into about `pieces` equal parts, ascending.
async fn find(file: &InputFile, pieces: u64, window_log: u32) -> Result<Vec<u64>> {
    let Some(rows) = file.rows() else {
        return Ok(Vec::new());
    };
    let (size, location) = (rows.size, &file.location);
    let wanted = (1..pieces).map(|piece| {
        let at = u128::from(size) * u128::from(piece) / u128::from(pieces);
        at as u64
    });
    let mut start = window(location, size, 0, WINDOWS[0]).await?;
    if let Some(dictionary) = Dictionary::frame_length(&start) {
        // The members behind it have to be seen, too.
        start = window(location, size, 0, WINDOWS[0] + dictionary as u64).await?;
    }
    let cuts = blocking(move || Ok::<_, DocumentsError>(Cuts::of_file(&start, window_log))).await?;
    let mut places = match cuts {
        None => Vec::new(),
        Some(Cuts::Members(cuts)) => {
            let finding = wanted.map(move |at| find_member(location, size, at, cuts.clone()));
            let found = futures::stream::iter(finding).buffered(PLACES_AT_ONCE);
            let found: Vec<Option<u64>> = found.try_collect().await?;
            found.into_iter().flatten().collect()
        }
        Some(Cuts::Records) => match &rows.local {
            Some(local) => {
                let (local, name) = (local.clone(), location.to_string());
                let wanted: Vec<u64> = wanted.collect();
                blocking(move || find_records(&local, size, &name, wanted)).await?
            }
            // To find a record by lengths takes the whole file.
            None => Vec::new(),
        },
    };
    places.retain(|place| 0 < *place && *place < size);
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

/// The first place at `at` or behind where a member starts; `None` if the bytes there show none.
async fn find_member(
    location: &Location,
    size: u64,
    at: u64,
    cuts: MemberCuts,
) -> Result<Option<u64>> {
    for length in WINDOWS {
        let bytes = window(location, size, at, length).await?;
        let is_end = at + bytes.len() as u64 == size;
        let cuts = cuts.clone();
        let found = blocking(move || Ok::<_, DocumentsError>(cuts.find(&bytes, is_end))).await?;
        if found.is_some() || is_end {
            return Ok(found.map(|found| at + found as u64));
        }
    }
    Ok(None)
}

/// For each of the `wanted` offsets, the first record there or behind. The file has `size` bytes.
fn find_records(
    local: &UnchangedFile,
    size: u64,
    name: &str,
    wanted: Vec<u64>,
) -> Result<Vec<u64>> {
    let failed = StorageError::io(name);
    let input = BufReader::with_capacity(BUFFER, local.open()?);
    let mut starts = RecordStarts::new(input, size);
    let mut places = Vec::new();
    for at in wanted {
        while places.last().is_none_or(|last| *last < at) {
            match starts.next_start().map_err(&failed)? {
                Some(start) if start >= at => places.push(start),
                Some(_) => {}
                None => return Ok(places),
            }
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Columns;
    use crate::session::test_session;

    #[tokio::test]
    async fn a_wrong_cut_makes_its_file_whole_and_a_second_one_all_files() {
        let dir = tempfile::tempdir().unwrap();
        let mut given = ["a.jsonl", "b.jsonl", "c.jsonl"].map(|name| {
            let path = dir.path().join(name);
            std::fs::write(&path, "{\"id\":\"x\",\"text\":\"one two three four\"}\n").unwrap();
            path.to_str().unwrap().to_owned()
        });
        given[0].insert_str(0, "file://");
        let context = test_session(1 << 30);
        let opened = Documents::open(&context, &given, &Columns::default()).await;
        let mut documents = opened.unwrap();
        for file in &mut documents.files {
            Arc::make_mut(file).cut_at(vec![10, 20]);
        }
        let names: Vec<String> = documents
            .files
            .iter()
            .map(|file| file.location.to_string())
            .collect();
        let wrong = |number: usize| {
            let error = DocumentsError::WrongCut {
                file: names[number].clone(),
                offset: 10,
            };
            DocumentsError::query("reading")(error.into())
        };
        let parts = |documents: &Documents| -> Vec<usize> {
            let parts = documents.files.iter().map(|file| file.parts().len());
            parts.collect()
        };
        assert!(!documents.uncut(DocumentsError::Internal("x".into()).wrong_cut()));
        assert_eq!(parts(&documents), [3, 3, 3]);
        assert!(documents.uncut(wrong(1).wrong_cut()));
        assert_eq!(parts(&documents), [3, 1, 3]);
        // The parts behind it have other numbers, also when the files are opened again.
        let again = documents.reopen(&context, &Columns::default()).await;
        let splits = again.unwrap().all_splits();
        assert_eq!(splits.last().unwrap().part_number, 6);
        // A file that is whole has no wrong cut.
        assert!(!documents.uncut(wrong(1).wrong_cut()));
        // A part of a job has the absolute name.
        let file = documents.files[0].location.absolute_name();
        assert_ne!(file, names[0]);
        let of_part = DocumentsError::WrongCut { file, offset: 20 };
        assert!(documents.uncut(of_part.wrong_cut()));
        assert_eq!(parts(&documents), [1, 1, 1]);
    }
}
