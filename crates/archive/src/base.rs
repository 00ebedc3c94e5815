//! What a run compares with: an archive at one version, or plain Parquet files of fingerprints.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use futures::{StreamExt as _, TryStreamExt as _};
use simhash::Spec;

use crate::error::{ArchiveError, Result};
use crate::location::{self, Location};
use crate::reader::{BaseColumns, FingerprintReader};
use crate::schema::IdType;
use crate::table::Archive;

/// Footers that are read at once.
const FOOTERS_AT_ONCE: usize = 32;

/// The files of a history, opened.
#[derive(Debug, Clone)]
pub struct Base {
    /// What it was given as.
    pub name: String,
    /// The spec of its fingerprints, where it says.
    pub spec: Option<Spec>,
    /// The type of its ids; `None` when there is no file to tell.
    pub id_type: Option<IdType>,
    /// The version of the Delta table; `None` for plain files.
    pub version: Option<u64>,
    /// Its files, sorted by path.
    pub files: Vec<BaseFile>,
}

/// One file of a [`Base`].
#[derive(Debug, Clone)]
pub struct BaseFile {
    /// Where it is.
    pub location: Location,
    /// Size in bytes.
    pub size: u64,
    /// The day of its rows, where it is known.
    pub day: Option<NaiveDate>,
    /// Its footer, read.
    pub reader: FingerprintReader,
}

impl Base {
    /// Opens plain Parquet files: one file, the files below a directory, or those that match a pattern. Parts of
    /// a path like `day=2026-11-20` say the day.
    ///
    /// # Errors
    /// [`ArchiveError`] when a file cannot be read, or they do not go together.
    pub async fn plain(given: &str, columns: &BaseColumns) -> Result<Self> {
        let files = location::expand(given, &[".parquet"])?;
        let files: Vec<BaseFile> = futures::stream::iter(files)
            .map(|location| async move {
                let day = hive_day(&location);
                let size = location.size().await?;
                BaseFile::open(location, size, day, columns).await
            })
            .buffered(FOOTERS_AT_ONCE)
            .try_collect()
            .await?;
        let mut base = Self {
            name: given.to_owned(),
            spec: None,
            id_type: None,
            version: None,
            files,
        };
        base.agree()?;
        Ok(base)
    }

    /// Opens the data files of an archive, but for those of `except`.
    ///
    /// # Errors
    /// [`ArchiveError`] when a file that the log names is missing or cannot be read.
    pub async fn of_archive(archive: &Archive, except: Option<NaiveDate>) -> Result<Self> {
        let mut listed = archive.files()?;
        listed.retain(|file| except.is_none() || file.day != except);
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        let columns = &BaseColumns::standard_or(None, None);
        let files = futures::stream::iter(listed)
            .map(|file| async move {
                let location = archive
                    .location()
                    .file(archive.location().local().join(&file.path))?;
                let opened = BaseFile::open(location, file.size, file.day, columns).await;
                opened.map_err(|error| match error {
                    ArchiveError::Parquet { object, source } if is_not_found(&source) => {
                        ArchiveError::BadData {
                            object,
                            reason: "the archive's log names this file, but it is missing".into(),
                        }
                    }
                    other => other,
                })
            })
            .buffered(FOOTERS_AT_ONCE)
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

    /// Fingerprints (or nulls) in all files.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.files
            .iter()
            .flat_map(|file| file.reader.row_groups())
            .sum()
    }

    /// The days it has.
    #[must_use]
    pub fn days(&self) -> BTreeSet<NaiveDate> {
        self.files.iter().filter_map(|file| file.day).collect()
    }

    /// Takes spec and id type from the files, which must agree.
    fn agree(&mut self) -> Result<()> {
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
                return Err(ArchiveError::BadData {
                    object: reader.name().to_owned(),
                    reason: format!(
                        "its ids are {}, those of {} are {id_type}",
                        reader.id_type(),
                        self.files[0].reader.name()
                    ),
                });
            }
        }
        self.spec = first.map(|(_, spec)| spec);
        Ok(())
    }
}

impl BaseFile {
    async fn open(
        location: Location,
        size: u64,
        day: Option<NaiveDate>,
        columns: &BaseColumns,
    ) -> Result<Self> {
        let reader = FingerprintReader::open(location.given(), &location, size, columns).await?;
        Ok(Self {
            location,
            size,
            day,
            reader,
        })
    }
}

fn is_not_found(error: &parquet::errors::ParquetError) -> bool {
    let parquet::errors::ParquetError::External(inner) = error else {
        return false;
    };
    matches!(
        inner.downcast_ref(),
        Some(object_store::Error::NotFound { .. })
    )
}

/// The day in a path like `…/day=2026-11-20/x.parquet`.
fn hive_day(location: &Location) -> Option<NaiveDate> {
    let mut parts = location.local().components().rev();
    parts.find_map(|part| {
        part.as_os_str()
            .to_str()?
            .strip_prefix("day=")?
            .parse()
            .ok()
    })
}
