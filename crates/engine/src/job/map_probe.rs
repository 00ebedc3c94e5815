//! The probe in parts: each part plans and builds the tables for itself, so they fit its memory. The pairs do not depend on them.

use std::sync::Arc;

use datafusion::dataframe::DataFrame;
use datafusion::prelude::SessionContext;
use hamming::Limits;
use serde::{Deserialize, Serialize};

use super::plan::{Item, Planning};
use super::{Job, Map, SharedFile};
use crate::error::{EngineError, Result};
use crate::probe::{Answer, Probe};
use crate::reduce::reduce;
use crate::resources::Resources;
use crate::work_items::{self, WorkItem};
use streams::free_bytes;

/// Fingerprints to pairs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ProbeMap {
    /// The request; each part finds its own path, design and number of parts of the batch.
    pub(super) probe: Probe,
    pub(super) batch: SharedFile,
    /// Distinct fingerprints of the batch.
    pub(super) distinct: usize,
    /// The design that the options ask for.
    design: Option<String>,
    /// How many of the archive's fingerprints follow in ascending order, on average.
    sorted_run: u64,
}

impl ProbeMap {
    /// Plans the probe of `items`, which cost `seconds(fingerprints)` of one core.
    pub(crate) async fn plan(
        job: &Job,
        probe: Probe,
        distinct: usize,
        design: Option<String>,
        sorted_run: u64,
        items: Vec<WorkItem>,
        seconds: impl Fn(u64) -> f64,
    ) -> Result<Planning> {
        let batch = job.share(&probe.batch.path).await?;
        let absolute = |mut item: WorkItem| {
            if let WorkItem::RowGroup { file, .. } = &mut item {
                *file = job.stores.locate(file)?.absolute_name();
            }
            Ok(item)
        };
        let items: Vec<WorkItem> = items.into_iter().map(absolute).collect::<Result<_>>()?;
        let bytes = items.iter().map(WorkItem::bytes).sum();
        let items = items.into_iter();
        let items = items.map(|item| {
            let cost = seconds(item.fingerprints());
            (Item::Probe(item), cost)
        });
        Ok(Planning {
            items: items.collect(),
            bytes,
            map: Map::Probe(Box::new(Self {
                probe,
                batch,
                distinct,
                design,
                sorted_run,
            })),
        })
    }

    /// The request of all parts that this process does, `queries` fingerprints in all: with the tables that are cheapest here.
    pub(super) async fn request(
        &self,
        job: &Job,
        context: &SessionContext,
        queries: u64,
    ) -> Result<Probe> {
        let resources = Resources::from_session(context)?;
        let mut probe = self.probe.clone();
        probe.batch.path = job.copy_of(&self.batch).await?;
        let pool = Arc::clone(&context.runtime_env().memory_pool);
        // To check its bytes takes as long as to decode them. What the check says counts first: damaged bytes stop the reader, too.
        let checked = job.check_copy(&self.batch, &probe.batch.path);
        let (checked, batch) = tokio::join!(checked, resources.batch(&probe.batch, &pool));
        checked?;
        let batch = batch?;
        let free = free_bytes(&pool);
        let limits = Limits {
            memory: free,
            queries,
            sorted_run: self.sorted_run.min(queries),
            threads: context.state().config().target_partitions(),
            ..Limits::default()
        };
        let plan = batch.plan(probe.max_distance, self.design.as_deref(), limits);
        let plan = plan.map_err(|error| EngineError::plan(error, pool.reserved()))?;
        probe.design = plan.design.name();
        probe.parts = plan.parts as u32;
        Ok(probe)
    }
}

/// The pairs of a part's items; those of documents without repetitions, and sorted.
pub(super) fn pairs(
    probe: &Probe,
    context: &SessionContext,
    items: &[WorkItem],
) -> Result<DataFrame> {
    let failed = || EngineError::query("planning the probe");
    let items = work_items::for_parts(items, probe.parts);
    let found = probe.clone().table(context, items).map_err(failed())?;
    match probe.answer {
        Answer::Pairs | Answer::PairsByClass => reduce(found).map_err(failed()),
        Answer::ClassPairs(_) => Ok(found),
    }
}
