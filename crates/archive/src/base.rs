//! What a run compares with: an archive at one version, or plain Parquet files of fingerprints.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use futures::{StreamExt as _, TryStreamExt as _};
use simhash::Spec;

use crate::error::{ArchiveError, Result};
use crate::location::Location;
use crate::reader::{BaseColumns, FingerprintReader};
use crate::schema::IdType;
use crate::store::Stores;
use crate::table::{Archive, DataFile};

/// Footers that are read at once.
const FOOTERS_AT_ONCE: usize = 32;

/// Which days of an archive are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All.
    All,
    /// Those that a committed day was compared with: the days that were there before it. Files of days are told by
    /// their tags, which stay when they are rewritten.
    Before {
        /// The day.
        day: NaiveDate,
        /// The version that it was compared with.
        base_version: u64,
    },
}

impl Scope {
    fn has(self, file: &DataFile) -> bool {
        match self {
            Self::All => true,
            Self::Before { day, base_version } => {
                // A day that was committed before `base_version` was itself compared with an earlier one.
                file.day != Some(day) && file.base_version.is_none_or(|of| of < base_version)
            }
        }
    }
}

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
    pub async fn plain(stores: &Stores, given: &str, columns: &BaseColumns) -> Result<Self> {
        let files = stores.expand(given, &[".parquet"]).await?;
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

    /// Opens the data files of an archive.
    ///
    /// # Errors
    /// [`ArchiveError`] when a file that the log names is missing or cannot be read.
    pub async fn of_archive(archive: &Archive, scope: Scope) -> Result<Self> {
        let mut listed = archive.files()?;
        listed.retain(|file| scope.has(file));
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        let columns = &BaseColumns::standard_or(None, None);
        let files = futures::stream::iter(listed)
            .map(|file| async move {
                let location = archive.location().child(&file.path)?;
                let name = location.to_string();
                let opened = BaseFile::open(location, file.size, file.day, columns).await;
                opened.map_err(|error| match error {
                    ArchiveError::NotFound { .. } => ArchiveError::missing(&name),
                    ArchiveError::Parquet { object, source } if is_not_found(&source) => {
                        ArchiveError::missing(&object)
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
    let parts: Vec<_> = location.path().parts().collect();
    let mut parts = parts.iter().rev();
    parts.find_map(|part| part.as_ref().strip_prefix("day=")?.parse().ok())
}
