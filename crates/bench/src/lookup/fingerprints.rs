//! The fingerprints of the archive, read without the index.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use archive::{Archive, DecodedStep, Scope, Snapshot};
use storage::Stores;
use tokio::runtime::Runtime;

use crate::threads;

/// An archive whose fingerprints can be read.
pub struct Fingerprints<'a> {
    runtime: &'a Runtime,
    snapshot: Snapshot,
    groups: Vec<RowGroup>,
}

/// A row group of an archive.
#[derive(Debug, Clone, Copy)]
struct RowGroup {
    /// The file, by its index in the snapshot.
    file: usize,
    /// The row group, by its index in the file.
    number: usize,
    /// Rows of the archive before it.
    first_row: u64,
}

impl<'a> Fingerprints<'a> {
    pub fn open(runtime: &'a Runtime, directory: &Path) -> Self {
        let stores = Stores::default();
        let location = stores.locate(&directory.display().to_string());
        let location = location.expect("a local path");
        let snapshot = runtime.block_on(async {
            let archive = Archive::open(&location).await.expect("an archive");
            Snapshot::open_archive(&archive, Scope::All)
                .await
                .expect("an archive")
        });
        let (mut groups, mut first_row) = (Vec::new(), 0);
        for (file, opened) in snapshot.files.iter().enumerate() {
            for (number, rows) in opened.reader.row_groups().enumerate() {
                groups.push(RowGroup {
                    file,
                    number,
                    first_row,
                });
                first_row += rows;
            }
        }
        Self {
            runtime,
            snapshot,
            groups,
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.snapshot.rows()
    }

    /// Returns all fingerprints, in the order of their rows.
    pub fn all(&self) -> Vec<u64> {
        let mut all = Vec::with_capacity(self.rows() as usize);
        for group in &self.groups {
            self.read(*group, &mut all);
        }
        all
    }

    /// Calls `each` on all cores with the fingerprints of every row group, and the number of rows before it.
    pub fn scan(&self, each: impl Fn(u64, &[u64]) + Sync) {
        let next = AtomicUsize::new(0);
        threads::run(threads::cores(), |_| {
            let mut values = Vec::new();
            while let Some(group) = self.groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                values.clear();
                self.read(*group, &mut values);
                each(group.first_row, &values);
            }
        });
    }

    fn read(&self, group: RowGroup, values: &mut Vec<u64>) {
        let reader = &self.snapshot.files[group.file].reader;
        let encoded = self.runtime.block_on(reader.fetch(group.number));
        let encoded = encoded.expect("the archive's fingerprints");
        let mut step = DecodedStep::default();
        reader
            .decode(group.number, encoded, &mut step, |step| {
                values.extend_from_slice(step.values());
                true
            })
            .expect("the archive's fingerprints");
    }
}
