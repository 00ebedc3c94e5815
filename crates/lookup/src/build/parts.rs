//! Splits the data files of an archive into parts: up to 64 files of one day each.

use std::collections::BTreeMap;

use archive::{Archive, DataFile};
use sha2::{Digest as _, Sha256};
use storage::hex;

use crate::error::Result;
use crate::segment::Part;

/// The most files of a part; all are read at once.
const FILES: usize = 64;
/// The most rows of a part of several files.
const ROWS: u64 = 1 << 31;

pub(super) struct ArchivePart {
    pub(super) part: Part,
    pub(super) files: Vec<DataFile>,
    pub(super) rows: u64,
}

/// The parts of an archive, by day.
pub(super) fn from_archive(archive: &Archive) -> Result<Vec<ArchivePart>> {
    let mut days: BTreeMap<_, Vec<DataFile>> = BTreeMap::new();
    for file in archive.files()? {
        days.entry(file.day).or_default().push(file);
    }
    let mut parts = Vec::new();
    for (day, mut files) in days {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut sets: Vec<(u64, Vec<DataFile>)> = Vec::new();
        for file in files {
            // Logs without row counts are rare. The tables then get too few buckets: slower, but correct.
            let rows = file.rows.unwrap_or(0);
            match sets.last_mut() {
                Some((sum, set)) if set.len() < FILES && *sum + rows <= ROWS => {
                    *sum += rows;
                    set.push(file);
                }
                _ => sets.push((rows, vec![file])),
            }
        }
        parts.extend(sets.into_iter().map(|(rows, files)| ArchivePart {
            part: Part {
                day,
                source: source(&files),
            },
            files,
            rows,
        }));
    }
    Ok(parts)
}

/// A digest of the files' paths, sizes and checksums: data files never change, and their names are unique.
fn source(files: &[DataFile]) -> String {
    let mut digest = Sha256::new();
    for file in files {
        let sha256 = file.sha256.as_deref().unwrap_or_default();
        digest.update(format!("{}\n{}\n{sha256}\n", file.path, file.size));
    }
    hex(&digest.finalize())
}
