//! Documents as the plan of a job names them, so that another process reads some of their splits.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use archive::IdType;
use datafusion::dataframe::DataFrame;
use datafusion::prelude::SessionContext;
use serde::{Deserialize, Serialize};
use storage::{Location, StorageError};

use super::carried::carried_columns_table;
use super::file::RowRange;
use super::splits::Split;
use super::splits::first_parts;
use super::wanted_rows::Rows;
use super::{Columns, Documents};
use crate::error::{DocumentsError, Result};
use crate::read_counts::ReadCounters;
use crate::session::Reading;
use crate::versions::{FileVersion, file_versions};

/// Documents, for other processes: their files, and how to read them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DocumentsPlan {
    given: String,
    columns: Columns,
    carried: Vec<String>,
    files: Vec<FilePlan>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct FilePlan {
    #[serde(flatten)]
    file: FileVersion,
    short_name: String,
    cuts: Vec<u64>,
    /// Number of its first part among the parts of all files.
    first_part: usize,
}

/// Where files are cut, and the limits of records of WARC files: all that the numbers of documents depend on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCuts {
    /// Offsets, by the paths of the files.
    places: BTreeMap<String, Vec<u64>>,
    /// See [`CrawlRecords::limits`](super::CrawlRecords::limits).
    limits: Option<(usize, u32)>,
}

/// A split, for other processes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SplitPlan {
    /// Number of its file in the plan of the documents.
    pub file: usize,
    part_number: usize,
    row_group: Option<usize>,
    /// Rows of the row group; `None` for all.
    cut: Option<Range<usize>>,
    bytes_of_part: Option<Range<u64>>,
    /// Its rows, if they are known.
    pub rows: Option<u64>,
}

/// Some of the files of a plan, opened.
#[derive(Clone)]
pub struct PlannedDocuments {
    pub documents: Documents,
    /// For each opened file, its number in the plan, ascending.
    opened: Vec<usize>,
    /// The number of the first part of the first opened file, among the parts of all files of the plan.
    first_part: usize,
}

impl Documents {
    /// The files of these documents that have rows, and those that have none.
    pub fn locations(&self) -> impl Iterator<Item = &Location> {
        let files = self.files.iter().map(|file| &file.location);
        files.chain(self.empty.iter().map(|(location, _)| location))
    }

    /// Where the files are cut, by their paths, and the limits of records of WARC files.
    pub fn cuts(&self) -> FileCuts {
        let cut = self.files.iter().filter(|file| !file.cuts().is_empty());
        let places = cut.map(|file| (file.location.absolute_name(), file.cuts().to_vec()));
        FileCuts {
            places: places.collect(),
            limits: self.columns.crawl.limits,
        }
    }

    /// Cuts the files as [`Self::cuts`] said in another process.
    pub fn cut_as_before(&mut self, cuts: &FileCuts) {
        self.columns.crawl.limits = cuts.limits;
        for file in &mut self.files {
            if let Some(places) = cuts.places.get(&file.location.absolute_name()) {
                Arc::make_mut(file).cut_at(places.clone());
            }
        }
    }

    /// These documents, for other processes.
    pub async fn to_plan(&self) -> Result<DocumentsPlan> {
        let versions = file_versions(self.files.iter().map(|file| &file.location)).await?;
        let files = self.files.iter().zip(versions);
        let files = files.zip(first_parts(&self.files));
        let files = files.map(|((file, version), first_part)| FilePlan {
            file: version,
            short_name: file.short_name.clone(),
            cuts: file.cuts().to_vec(),
            first_part,
        });
        Ok(DocumentsPlan {
            given: self.given.clone(),
            columns: self.columns.clone(),
            carried: self.carried.clone(),
            files: files.collect(),
        })
    }

    /// The splits of all files, of about `most` bytes each where files can be cut, with the bytes that their readers decode.
    pub fn split_plans(&self, most: u64) -> Vec<(SplitPlan, u64)> {
        let plan = |split: Split| {
            let plan = SplitPlan {
                file: split.file_number,
                part_number: split.part_number,
                row_group: split.rows.as_ref().map(|rows| rows.row_group),
                cut: split.rows.as_ref().and_then(|rows| rows.cut.clone()),
                bytes_of_part: split.bytes_of_part.clone(),
                rows: split.row_count(),
            };
            (plan, split.bytes)
        };
        let splits = self.all_splits().into_iter();
        let splits = splits.flat_map(|split| split.cut_rows(most));
        splits.map(plan).collect()
    }
}

impl DocumentsPlan {
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// Opens the files with these numbers, each once.
    ///
    /// # Errors
    /// [`DocumentsError::Configuration`] naming a file that is not as `split` saw it.
    pub async fn open(
        &self,
        context: &SessionContext,
        numbers: impl IntoIterator<Item = usize>,
    ) -> Result<PlannedDocuments> {
        let stores = &Reading::in_session(context)?.stores;
        let numbers: BTreeSet<usize> = numbers.into_iter().collect();
        let plan = |number: usize| match self.files.get(number) {
            Some(plan) => Ok((number, plan)),
            None => Err(DocumentsError::Internal(format!(
                "{}: no file {number}",
                self.given
            ))),
        };
        let plans = numbers.into_iter().map(plan);
        let plans: Vec<(usize, &FilePlan)> = plans.collect::<Result<_>>()?;
        let locations: Vec<Location> = plans
            .iter()
            .map(|(_, plan)| Ok(stores.locate(&plan.file.path)?.found()))
            .collect::<Result<_>>()?;
        let changed = |path: &str, how: &str| {
            DocumentsError::Configuration(format!(
                "{path}: it {how} since the job was split: begin anew by `dedup-job split --restart` with the options of the run"
            ))
        };
        let versions = match file_versions(&locations).await {
            Err(DocumentsError::Storage(
                StorageError::NotFound { path } | StorageError::Gone { path },
            )) => {
                return Err(changed(&path, "was removed"));
            }
            versions => versions?,
        };
        for ((_, plan), found) in plans.iter().zip(&versions) {
            if plan.file != *found {
                return Err(changed(&found.path, "changed"));
            }
        }
        let columns = Columns {
            carried: self.carried.clone(),
            ..self.columns.clone()
        };
        let (given, held) = (self.given.clone(), HashMap::new());
        let mut documents = Documents::open_some(context, given, locations, &columns, held).await?;
        if documents.files.len() != plans.len() {
            return Err(DocumentsError::TryAgain(format!(
                "{}: a file had documents when the job was split, and has none now",
                self.given
            )));
        }
        for (file, (_, plan)) in documents.files.iter_mut().zip(&plans) {
            let file = Arc::make_mut(file);
            file.short_name.clone_from(&plan.short_name);
            file.cut_at(plan.cuts.clone());
        }
        Ok(PlannedDocuments {
            documents,
            opened: plans.iter().map(|(number, _)| *number).collect(),
            first_part: plans.first().map_or(0, |(_, plan)| plan.first_part),
        })
    }
}

impl PlannedDocuments {
    /// The splits that are named `plans`.
    fn splits(&self, plans: &[SplitPlan]) -> Result<Vec<Split>> {
        let split = |plan: &SplitPlan| {
            let number = self.opened.binary_search(&plan.file).ok()?;
            let file = self.documents.files.get(number)?;
            Some(match plan.row_group {
                Some(row_group) => {
                    let cut = plan.cut.clone();
                    let rows = RowRange { row_group, cut };
                    Split::of_rows(plan.file, plan.part_number, file, rows)?
                }
                None => {
                    let part = plan.bytes_of_part.clone();
                    Split::of_part(plan.file, plan.part_number, file, part)
                }
            })
        };
        let splits = plans.iter().map(|plan| {
            split(plan).ok_or_else(|| {
                DocumentsError::Internal(format!("{}: no such split", self.documents.given))
            })
        });
        splits.collect()
    }

    /// As [`Documents::table`], of some splits.
    pub fn table(
        &self,
        context: &SessionContext,
        id_type: IdType,
        rows: Rows,
        plans: &[SplitPlan],
        counters: Option<&Arc<ReadCounters>>,
    ) -> Result<DataFrame> {
        let partitions = context.state().config().target_partitions();
        let splits = self.splits(plans)?;
        self.documents
            .table_of_splits(context, id_type, partitions, rows, splits, counters)
    }

    /// As [`Documents::carried_table`], of some splits; with the types of `fields`.
    pub fn carried_table(
        &self,
        context: &SessionContext,
        plans: &[SplitPlan],
        fields: Vec<arrow::datatypes::Field>,
    ) -> Result<DataFrame> {
        let partitions = context.state().config().target_partitions();
        let mut only = self.clone();
        only.documents.files = self.documents.only_carried();
        let splits = only.splits(plans)?;
        carried_columns_table(context, partitions, splits, fields)
    }

    /// The number of the first part of the only opened file, among the parts of all files of the plan.
    pub fn first_part(&self) -> usize {
        self.first_part
    }
}
