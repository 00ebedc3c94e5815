//! [`Snapshot`]: what a run compares its batch with, either an archive at one version or plain
//! Parquet files of fingerprints.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use futures::{StreamExt as _, TryStreamExt as _};
use simhash::Spec;
use storage::{Location, Stores};

use crate::error::{ArchiveError, Result};
use crate::file_checksums::Tail;
use crate::input_files::input_files;
use crate::reader::{ColumnNames, FingerprintReader};
use crate::schema::IdType;
use crate::scope::Scope;
use crate::table::{Archive, DataFile};

/// Maximum number of footers read concurrently.
const CONCURRENT_FOOTERS: usize = 64;

/// The open files of an archive at one version, or open plain files.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The path of the archive or the files, as the user gave it.
    pub name: String,
    /// The spec of its fingerprints; `None` for plain files if no footer has it.
    pub spec: Option<Spec>,
    /// The type of its ids; `None` for plain files if there are none.
    pub id_type: Option<IdType>,
    /// The version of the Delta table; `None` for plain files.
    pub version: Option<u64>,
    /// Its files, sorted by path.
    pub files: Vec<SnapshotFile>,
}

#[derive(Debug, Clone)]
pub struct SnapshotFile {
    pub location: Location,
    /// Size in bytes.
    pub size: u64,
    /// The day of its rows, if it is known.
    pub day: Option<NaiveDate>,
    /// What names its commit in rulings; `None` if nothing says it.
    pub commit: Option<String>,
    /// The version that its rows were compared with when they were committed; `None` if nothing says it.
    pub base_version: Option<u64>,
    /// What the archive's log says of the file's tail; nothing of plain files, and of those that other programs wrote.
    pub tail: Option<Tail>,
    /// The file, with its footer read.
    pub reader: FingerprintReader,
}

impl Snapshot {
    /// No files, for a batch that is compared with itself only.
    pub fn none() -> Self {
        Self {
            name: "no archive".to_owned(),
            spec: None,
            id_type: None,
            version: None,
            files: Vec::new(),
        }
    }

    /// Opens plain Parquet files: one file, the files below a directory, or those that match a pattern. A path
    /// component like `day=2026-11-20` gives the day.
    pub async fn open_files(stores: &Stores, given: &str, columns: &ColumnNames) -> Result<Self> {
        let (files, _) = input_files(stores, given, &[".parquet"]).await?;
        let files: Vec<SnapshotFile> = futures::stream::iter(files)
            .map(|location| async move {
                let day = hive_day(&location);
                let size = location.size().await?;
                SnapshotFile::open(location, size, day, columns, None).await
            })
            .buffered(CONCURRENT_FOOTERS)
            .try_collect()
            .await?;
        let mut snapshot = Self {
            name: given.to_owned(),
            files,
            ..Self::none()
        };
        snapshot.take_spec_and_id_type()?;
        Ok(snapshot)
    }

    /// Opens the data files of an archive that have rows in `scope`.
    pub async fn open_archive(archive: &Archive, scope: Scope) -> Result<Self> {
        let mut listed = archive.files_in(scope).await?;
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        let files = futures::stream::iter(listed)
            .map(|file| async move { archive.open_file(&file).await })
            .buffered(CONCURRENT_FOOTERS)
            .try_collect()
            .await?;
        Ok(Self {
            name: archive.location().to_string(),
            spec: Some(archive.spec().clone()),
            id_type: Some(archive.id_type()),
            version: Some(archive.version()),
            files,
        })
    }

    /// The number of rows of all files.
    pub fn rows(&self) -> u64 {
        self.files
            .iter()
            .flat_map(|file| file.reader.row_groups())
            // A damaged footer may claim any number of rows.
            .fold(0, u64::saturating_add)
    }

    /// How many fingerprints follow in ascending order on average, from file to file: those of one commit are sorted. Files that
    /// another program wrote count as unsorted.
    pub fn sorted_run(&self) -> u64 {
        let (mut runs, mut end) = (0_u64, None);
        for file in &self.files {
            let range = file.tail.and_then(|_| file.reader.fingerprint_range());
            match range {
                Some((first, _)) => {
                    runs = runs.saturating_add(u64::from(end.is_none_or(|end| first < end)))
                }
                None => runs = (file.reader.row_groups()).fold(runs, u64::saturating_add),
            }
            end = range.map(|(_, last)| last);
        }
        self.rows() / runs.max(1)
    }

    /// Bytes of the fingerprints in local files.
    pub fn local_fingerprint_bytes(&self) -> u64 {
        let local = self.files.iter().filter(|file| file.reader.is_local());
        let row_groups = local.flat_map(|file| {
            (0..file.reader.row_groups().len()).map(|number| file.reader.fingerprint_bytes(number))
        });
        row_groups.fold(0, u64::saturating_add)
    }

    pub fn days(&self) -> BTreeSet<NaiveDate> {
        self.files.iter().filter_map(|file| file.day).collect()
    }

    /// Takes the spec and the id type from the files, and refuses files that differ.
    fn take_spec_and_id_type(&mut self) -> Result<()> {
        let mut first: Option<(&str, Spec)> = None;
        for file in &self.files {
            let reader = &file.reader;
            match (reader.spec()?, &first) {
                (Some(spec), None) => first = Some((reader.name(), spec)),
                (Some(spec), Some((name, other))) if spec != *other => {
                    return Err(ArchiveError::SpecMismatch {
                        left: (*name).to_owned(),
                        right: reader.name().to_owned(),
                        differences: other.differences(&spec),
                    });
                }
                _ => {}
            }
            let id_type = *self.id_type.get_or_insert(reader.id_type());
            if id_type != reader.id_type() {
                return Err(ArchiveError::bad_data(
                    reader.name(),
                    format!(
                        "its ids are {}, those of {} are {id_type}",
                        reader.id_type(),
                        self.files[0].reader.name()
                    ),
                ));
            }
        }
        self.spec = first.map(|(_, spec)| spec);
        Ok(())
    }
}

impl Archive {
    /// Opens a data file that the log names.
    pub async fn open_file(&self, file: &DataFile) -> Result<SnapshotFile> {
        let columns = &ColumnNames::given_or_standard(None, None);
        let location = self.location().child(&file.path)?;
        let name = location.to_string();
        let (size, day) = (file.size, file.day);
        let opened = SnapshotFile::open(location, size, day, columns, file.tail).await;
        let opened = opened.map_err(|error| {
            if error.is_not_found() {
                ArchiveError::missing(&name)
            } else {
                error
            }
        })?;
        Ok(SnapshotFile {
            commit: file.commit.clone(),
            base_version: file.base_version,
            ..opened
        })
    }
}

impl SnapshotFile {
    async fn open(
        location: Location,
        size: u64,
        day: Option<NaiveDate>,
        columns: &ColumnNames,
        tail: Option<Tail>,
    ) -> Result<Self> {
        let name = location.given();
        let reader = FingerprintReader::open(name, &location, size, columns, tail).await?;
        Ok(Self {
            location,
            size,
            day,
            commit: None,
            base_version: None,
            tail,
            reader,
        })
    }
}

/// The day in a path like `…/day=2026-11-20/x.parquet`.
fn hive_day(location: &Location) -> Option<NaiveDate> {
    let parts: Vec<_> = location.path().parts().collect();
    let mut parts = parts.iter().rev();
    parts.find_map(|part| part.as_ref().strip_prefix("day=")?.parse().ok())
}
