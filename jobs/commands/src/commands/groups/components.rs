//! Connected components of pairs: documents that a chain of pairs connects, however much the ends
//! of the chain differ.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayBuilder as _, ArrayRef, Int64Builder, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use engine::EngineError;
use engine::output::{COMPONENT_COLUMNS, ReadRow};
use serde::Serialize;

/// Rows of a record batch of the output.
const BATCH_ROWS: usize = 8192;
/// Bytes of ids after which a record batch ends; a single id may have 1 MB.
const BATCH_BYTES: usize = 16 << 20;
/// A component is suspicious if it has at least SUSPICIOUS_DOCUMENTS documents, and at least
/// SUSPICIOUS_TIMES as many as its largest group.
const SUSPICIOUS_TIMES: u64 = 10;
const SUSPICIOUS_DOCUMENTS: u64 = 20;

pub(super) static COLUMNS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let [id, component, size] = COMPONENT_COLUMNS;
    Arc::new(Schema::new(vec![
        Field::new(id, DataType::Utf8, false),
        Field::new(component, DataType::Utf8, false),
        Field::new(size, DataType::Int64, false),
    ]))
});

/// The components, as disjoint sets of numbered ids (union-find). Documents with the same id are
/// one element.
#[derive(Debug, Default)]
pub(super) struct Components {
    numbers: HashMap<Arc<str>, u32>,
    ids: Vec<Arc<str>>,
    /// The parent of each id. The root of a set, its smallest id, is its own parent.
    parents: Vec<u32>,
    /// What the decisions say of each component, by its root.
    counts: HashMap<u32, Counts>,
    /// The rows of each group, by the root of its component and the number of its kept document's
    /// id.
    groups: HashMap<(u32, u32), GroupRows>,
}

/// Counts of the rows of a group.
#[derive(Debug, Default, Clone, Copy)]
struct GroupRows {
    /// Rows of its kept document: none if that came in on an earlier day, and has no row in these
    /// files.
    kept: u64,
    duplicates: u64,
}

/// What the decisions say of a component.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub(super) struct Counts {
    pub(super) documents: u64,
    pub(super) groups: u64,
    /// Documents of the largest group.
    pub(super) largest_group: u64,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    pub(super) components: u64,
    /// Components with documents of several groups: they chain pairs.
    pub(super) chained: u64,
    /// Components that are much larger than their largest group.
    pub(super) suspicious: u64,
    pub(super) largest: Option<Largest>,
}

/// The component with most documents.
#[derive(Debug, Serialize)]
pub(super) struct Largest {
    /// Its name: the smallest id.
    pub(super) component: String,
    #[serde(flatten)]
    pub(super) counts: Counts,
}

impl Components {
    pub(super) fn add_pair(&mut self, row: &ReadRow<'_>) {
        let Some(pair) = row.pair else { return };
        let (a, b) = (self.number(row.id), self.number(pair.base_id));
        let (a, b) = (self.root(a), self.root(b));
        // The smallest id is the root.
        if self.ids[a as usize] <= self.ids[b as usize] {
            self.parents[b as usize] = a
        } else {
            self.parents[a as usize] = b
        }
    }

    fn number(&mut self, id: &str) -> u32 {
        if let Some(&number) = self.numbers.get(id) {
            return number;
        }
        let number = self.ids.len() as u32;
        let id: Arc<str> = id.into();
        self.ids.push(Arc::clone(&id));
        self.numbers.insert(id, number);
        self.parents.push(number);
        number
    }

    fn root(&mut self, mut number: u32) -> u32 {
        while self.parents[number as usize] != number {
            // Halves the path.
            let above = self.parents[self.parents[number as usize] as usize];
            self.parents[number as usize] = above;
            number = above;
        }
        number
    }

    /// Counts a document of the decisions.
    pub(super) fn count(&mut self, row: &ReadRow<'_>) {
        let number = self.number(row.id);
        let root = self.root(number);
        let kept = row.pair.map_or(row.id, |pair| pair.base_id);
        let kept = self.number(kept);
        self.counts.entry(root).or_default().documents += 1;
        let group = self.groups.entry((root, kept)).or_default();
        match row.pair {
            Some(_) => group.duplicates += 1,
            None => group.kept += 1,
        }
    }

    /// Ends the counting, and begins the pass that makes the rows of the output.
    pub(super) fn rows(mut self) -> Rows {
        for ((root, _), group) in std::mem::take(&mut self.groups) {
            let counts = self.counts.entry(root).or_default();
            counts.groups += 1;
            // The kept document counts even if it has no row.
            let documents = group.kept.max(1) + group.duplicates;
            counts.largest_group = counts.largest_group.max(documents);
        }
        Rows {
            components: self,
            ..Rows::default()
        }
    }

    fn summary(&self) -> Summary {
        let mut summary = Summary {
            components: self.counts.len() as u64,
            ..Summary::default()
        };
        let mut all: Vec<_> = self.counts.iter().collect();
        all.sort_unstable_by_key(|(root, counts)| {
            (
                std::cmp::Reverse(counts.documents),
                &self.ids[**root as usize],
            )
        });
        for (_, counts) in &all {
            summary.chained += u64::from(counts.groups > 1);
            let least = (SUSPICIOUS_TIMES * counts.largest_group).max(SUSPICIOUS_DOCUMENTS);
            summary.suspicious += u64::from(counts.documents >= least);
        }
        summary.largest = all.first().map(|(root, counts)| Largest {
            component: self.ids[**root as usize].to_string(),
            counts: **counts,
        });
        summary
    }
}

/// The rows of the output: id, component and its size, in the order of the decisions.
#[derive(Default)]
pub(super) struct Rows {
    components: Components,
    /// The columns of each record batch.
    batches: Vec<Vec<ArrayRef>>,
    ids: StringBuilder,
    names: StringBuilder,
    sizes: Int64Builder,
    /// Bytes of the ids in the record batch under construction.
    bytes: usize,
}

impl Rows {
    pub(super) fn add(&mut self, row: &ReadRow<'_>) {
        let number = self.components.number(row.id);
        let root = self.components.root(number);
        let counts = self.components.counts.get(&root);
        self.bytes += row.id.len() + self.components.ids[root as usize].len();
        self.ids.append_value(row.id);
        self.names.append_value(&self.components.ids[root as usize]);
        self.sizes
            .append_value(counts.map_or(1, |counts| counts.documents.cast_signed()));
        if self.sizes.len() == BATCH_ROWS || self.bytes > BATCH_BYTES {
            self.end_batch();
        }
    }

    fn end_batch(&mut self) {
        self.bytes = 0;
        self.batches.push(vec![
            Arc::new(self.ids.finish()),
            Arc::new(self.names.finish()),
            Arc::new(self.sizes.finish()),
        ]);
    }

    /// All rows, and the counts of the components.
    pub(super) fn finish(mut self) -> Result<(Vec<RecordBatch>, Summary), EngineError> {
        self.end_batch();
        let batch = |columns| RecordBatch::try_new(Arc::clone(&COLUMNS), columns);
        let batches: Result<_, ArrowError> = self.batches.into_iter().map(batch).collect();
        let batches = batches.map_err(|error| EngineError::Internal(error.to_string()))?;
        Ok((batches, self.components.summary()))
    }
}
