//! Decides which documents of the batch are kept, and names for each duplicate the kept document that it repeats.
//!
//! The archive records which of its documents are kept. The documents of the batch are decided one
//! after the other, in a fixed order: a document is kept unless it forms a pair with a kept
//! document before it. So every duplicate forms a pair with its kept document, and no two kept
//! documents form a pair. Connected components would chain: if A and B are a pair, and B and C are
//! one, they make C a duplicate of A, though A and C may have little in common.
//!
//! ```text
//! keys of the documents ──▶ order of their classes ─┐
//!                                                   ▼
//! pairs of classes (probe) ──▶ (later, earlier), sorted by later ──▶ greedy ──▶ decisions, kept documents
//! ```
//!
//! Memory grows with the classes of documents, not with their pairs: pairs that do not fit are
//! sorted on the disk.

mod byte_sort;
mod captures;
mod carried;
mod collected;
pub mod greedy;
mod id_order;
mod keys;
mod losses;
mod order;
mod output_rows;
mod pins;
pub mod sorter;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use archive::{CaptureName, Pin, Ruling};
use arrow::array::{Array as _, AsArray as _, BooleanBufferBuilder};
use arrow::buffer::BooleanBuffer;
use datafusion::common::runtime::SpawnedTask;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;
use serde::Serialize;

use crate::batch::{Batch, Classes};
use crate::error::{EngineError, Result};
use crate::memory::reserve;
use crate::output::OutputTarget;
use crate::probe::Neighbour;
use crate::progress::Stage;
use crate::resources::Resources;
use captures::{Capture, Captures, RowCapture};
use collected::{Collected, Superseded};
use documents::{DocumentId, KeptPlace, Prefer, RowSet, SOURCE, positions_and_bytes};
use greedy::{Decision, Greedy};
use id_order::{IdOrder, Sorting, id_of};
use losses::{Sample, Sources};
use order::Order;
use pins::PinnedClasses;
use sorter::PairSorter;
use streams::{blocking, ended};

pub(crate) use captures::History;
pub use captures::OnUpdate;
pub use keys::Keys;
pub(crate) use losses::SHOWN;
pub use losses::{Dropped, SourceLoss};
pub use output_rows::{
    DUPLICATE_DAY, DUPLICATE_OF, GROUP_SIZE, KEPT, LAYOUT, UPDATE_DAY, UPDATE_OF,
};
pub use pins::read_pins;
pub(crate) use pins::typed_pins;

/// Bytes of memory for each pin.
const PIN_BYTES: usize = 512;

/// What is to be decided, and where the decisions go.
#[derive(Debug, Clone, Default)]
pub struct Decide {
    /// The output of decisions, one row for each document.
    pub decisions: Option<OutputTarget>,
    /// Where the kept documents are copied to.
    pub kept: Option<KeptPlace>,
}

/// What was decided, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DecisionCounts {
    /// Documents that are kept.
    pub kept: u64,
    /// Duplicates of documents of the archive.
    pub duplicates_of_archive: u64,
    /// Duplicates of other documents of the batch.
    pub duplicates_within: u64,
    /// Documents of the largest group: a kept document and its duplicates in the batch.
    pub largest_group: u64,
    /// Empty documents that are dropped.
    pub empty: u64,
    /// Documents whose capture in the archive has another content.
    pub updates: u64,
    /// Those that are dropped because the older content is kept.
    pub dropped_updates: u64,
    /// Documents whose capture in the archive has the same content.
    pub unchanged: u64,
    /// Pins that name a document of the batch.
    pub pins: u64,
    /// Bytes of the texts of all duplicates.
    pub duplicate_bytes: u64,
    /// The day of the archive with the most originals of duplicates, in days since 1970, and the number of those duplicates.
    #[serde(skip)]
    pub most_repeated: Option<(i32, u64)>,
}

impl DecisionCounts {
    /// Documents that are dropped.
    pub fn dropped(&self) -> u64 {
        self.duplicates_of_archive + self.duplicates_within + self.empty + self.dropped_updates
    }

    pub fn documents(&self) -> u64 {
        self.kept + self.dropped()
    }
}

/// The inputs of the decisions about a batch.
pub(crate) struct Deciding {
    pub(crate) context: SessionContext,
    pub(crate) batch: Arc<Batch>,
    pub(crate) classes: Arc<Classes>,
    pub(crate) keys: Keys,
    /// Marks the rows of the batch's file that have the sketch or the text by which the run
    /// compares pairs; of texts, only those of documents whose fingerprint repeats. `None` if the
    /// run compares fingerprints alone.
    pub(crate) have_content: Option<BooleanBuffer>,
    /// Whether the run verifies pairs. Then no document is a duplicate by a pair whose similarity is not known.
    pub(crate) verified: bool,
    /// Which of several near-duplicates is preferred.
    pub(crate) prefer: Prefer,
    /// Whether documents without a fingerprint, which are empty, are dropped.
    pub(crate) drop_empty: bool,
    /// Whether documents of the batch are duplicates of others of the batch.
    pub(crate) within: bool,
    /// Whether the run ends if its memory is too small to count what each source loses.
    pub(crate) sources_must_fit: bool,
    /// Where earlier captures of the documents are; `None` if there is no archive.
    pub(crate) history: Option<History>,
    /// Whether all documents are looked for there, to find updates.
    pub(crate) finds_updates: bool,
    /// What people say, and how many of these the run was given; what the archive remembers comes after them.
    pub(crate) pins: (Arc<[Pin]>, usize),
    /// How many duplicates are drawn at random.
    pub(crate) draws: usize,
    /// Day of the batch, in days since 1970.
    pub(crate) day: Option<i32>,
}

/// The decisions about a batch.
pub(crate) struct Decided {
    pub(crate) batch: Arc<Batch>,
    classes: Arc<PinnedClasses>,
    have_content: Option<BooleanBuffer>,
    verified: bool,
    drop_empty: bool,
    within: bool,
    by_id: Arc<IdOrder>,
    /// `None` if the documents were not looked for.
    captures: Option<Captures>,
    on_update: OnUpdate,
    /// The rows of updates that are not kept.
    not_kept: HashSet<u32>,
    order: Order,
    greedy: Greedy,
    /// The document of the archive that each class is a duplicate of, by rank.
    of_archive: HashMap<u32, Neighbour>,
    /// The sizes of groups whose kept document is in the archive, by its day and id.
    archive_group_sizes: HashMap<(Option<i32>, DocumentId), u64>,
    day: Option<i32>,
    pub(crate) counts: DecisionCounts,
    /// The sources that lose most documents.
    pub(crate) sources: Vec<SourceLoss>,
    /// The source that loses the greatest share of its documents, of those with enough of them.
    pub(crate) worst_source: Option<SourceLoss>,
    /// Duplicates drawn at random, as rows of the batch's file.
    drawn: Vec<u32>,
    /// The positions of the kept documents in the inputs.
    pub(crate) kept_positions: Arc<RowSet>,
    /// Whether each row of the batch's file is kept.
    pub(crate) kept_in_batch: BooleanBuffer,
    /// The captures that kept updates supersede.
    superseded: Vec<RowCapture>,
    /// Kept updates that equal a superseded capture of their day.
    current: Vec<RowCapture>,
    /// The superseded captures of the archive; `None` if there are none.
    superseded_before: Option<Superseded>,
    _memory: [MemoryReservation; 2],
}

impl Decide {
    /// Whether decisions or kept documents are written.
    pub(crate) fn has_output(&self) -> bool {
        self.decisions.is_some() || self.kept.is_some()
    }
}

impl Deciding {
    /// Decides about all documents, in a task of its own; `pairs` are the pairs of classes that the probe finds, in any order.
    pub(crate) async fn decide(self, pairs: SendableRecordBatchStream) -> Result<Decided> {
        // A sort occupies its task for a long time; the caller's task must be able to stop the run
        // meanwhile.
        ended(SpawnedTask::spawn(self.decide_here(pairs))).await
    }

    async fn decide_here(self, mut pairs: SendableRecordBatchStream) -> Result<Decided> {
        let count = self.classes.count();
        let similarities = self.have_content.is_some();
        let runtime = self.context.runtime_env();
        let pool = &runtime.memory_pool;
        let memory = MemoryConsumer::new("decisions").register(pool);
        let bytes = IdOrder::bytes_for(self.keys.rows)
            + Order::bytes_for(count)
            + Greedy::bytes_for(count, similarities);
        reserve(&memory, bytes, || {
            format!("decisions about {count} distinct documents take {bytes} bytes")
        })?;
        // A document that a pin names is in several sets.
        let pins = self.pins.0.len();
        let bytes = PIN_BYTES.saturating_mul(pins);
        reserve(&memory, bytes, || format!("{pins} pins take {bytes} bytes"))?;
        let (batch, keys) = (Arc::clone(&self.batch), self.keys.clone());
        let (pins, given) = self.pins;
        let (classes, sorting) = (Arc::clone(&self.classes), Sorting::new(&self.context)?);
        let (by_id, classes, sorting) = blocking(move || {
            let by_id = IdOrder::new(&batch, &keys, &sorting)?;
            let classes = PinnedClasses::new(classes, (&pins, given), &batch, &by_id)?;
            Ok::<_, EngineError>((Arc::new(by_id), Arc::new(classes), sorting))
        })
        .await?;
        let history = self.history.as_ref();
        let on_update = history.map(|history| history.on_update).unwrap_or_default();
        let rulings = history.map(|history| Arc::clone(&history.rulings));
        let rulings = rulings.filter(|rulings| rulings.has_superseded());
        let captures = match self.history {
            Some(history) => {
                let threads = self.context.state().config().target_partitions();
                let asked = classes.same_of.keys().cloned().collect();
                let of_batch = (Arc::clone(&self.batch), Arc::clone(&by_id));
                let finds = self.finds_updates;
                let captures = history.captures(of_batch, finds, asked, (pool, threads));
                captures.await?
            }
            None => Captures::default(),
        };
        let not_kept: HashSet<u32> = match on_update {
            OnUpdate::KeepOld => {
                let never_dropped = |class| classes.is_never_dropped(class);
                let may_drop = |row: &u32| !classes.of_row(*row).is_some_and(never_dropped);
                captures.updates().filter(may_drop).collect()
            }
            OnUpdate::Both | OnUpdate::KeepNew => HashSet::new(),
        };
        let (prefer, keys) = (self.prefer, self.keys.clone());
        let (of_order, ids, last) = (Arc::clone(&classes), Arc::clone(&by_id), not_kept.clone());
        let order =
            blocking(move || Order::new(&prefer, &ids, &keys, &of_order, &last, &sorting)).await?;
        let count = classes.count();
        let mut collected = Collected {
            verified: self.verified,
            classes: Arc::clone(&classes),
            superseded: rulings.map(|rulings| Superseded {
                rulings,
                fingerprints: self.batch.fingerprints_by_row(),
                batch: Arc::clone(&self.batch),
            }),
            order,
            sorter: PairSorter::new(&self.context, count, similarities)?,
            of_archive: HashMap::new(),
            reserved: MemoryConsumer::new("duplicates of the archive").register(pool),
        };
        let have_content = self.have_content.as_ref();
        collected.add_pins(&self.batch, &captures, self.within, have_content)?;
        while let Some(batch) = pairs.next().await {
            let batch = batch.map_err(EngineError::query("finding pairs to decide about"))?;
            // Adding pairs may write to the disk.
            collected = blocking(move || {
                collected.add(&batch)?;
                Ok::<_, EngineError>(collected)
            })
            .await?;
        }
        let resources = Resources::from_session(&self.context)?;
        resources.progress.begin(Stage::Decide, 0);
        let order = &collected.order;
        let mut greedy = Greedy::new(count, similarities);
        for row in not_kept.iter() {
            // A class of nothing else is not kept.
            if let Some(class) = classes.of_row(*row)
                && order.row(order.rank(class)) == *row
            {
                greedy.bar(order.rank(class));
            }
        }
        for rank in collected.of_archive.keys() {
            greedy.add_duplicate_of_archive(*rank);
        }
        let sorter = collected.sorter;
        let greedy = blocking(move || {
            sorter.decide(&mut greedy)?;
            Ok::<_, EngineError>(greedy)
        })
        .await?;
        let mut decided = Decided {
            batch: self.batch,
            counts: DecisionCounts {
                pins: classes.named,
                ..DecisionCounts::default()
            },
            classes,
            have_content: self.have_content,
            verified: self.verified,
            drop_empty: self.drop_empty,
            within: self.within,
            by_id,
            captures: self.finds_updates.then_some(captures),
            on_update,
            not_kept,
            order: collected.order,
            greedy,
            of_archive: collected.of_archive,
            archive_group_sizes: HashMap::new(),
            day: self.day,
            superseded: Vec::new(),
            current: Vec::new(),
            superseded_before: collected.superseded,
            sources: Vec::new(),
            worst_source: None,
            drawn: Vec::new(),
            kept_positions: Arc::default(),
            kept_in_batch: BooleanBuffer::new_unset(0),
            _memory: [memory, collected.reserved],
        };
        let keys = self.keys;
        let sources = Sources::new(pool, self.sources_must_fit);
        let sample = Sample::new(self.draws);
        blocking(move || {
            decided.count(&keys, sources, sample)?;
            Ok(decided)
        })
        .await
    }
}

/// What is decided about one document.
enum Fate {
    /// It is kept. The rank of its class, if it stands for its class.
    Kept(Option<u32>),
    /// It is empty, and dropped.
    Empty,
    /// The archive has an older content of it, which is kept instead.
    Update,
    /// It is a duplicate of the preferred document of the class with the rank `kept`.
    Within {
        kept: u32,
        distance: u8,
        similarity: Option<f64>,
    },
    /// It is a duplicate of a document of the archive. The rank of its class.
    OfArchive(u32),
}

/// The document that a duplicate repeats.
struct Original<'a> {
    document: Document<'a>,
    day: Option<i32>,
    distance: i32,
    similarity: Option<f64>,
}

#[derive(Clone, Copy)]
enum Document<'a> {
    /// A row of the batch's file.
    Row(u32),
    Archived(&'a DocumentId),
}

impl Decided {
    /// What is decided about the document at a row of the batch's file.
    fn fate(&self, row: u32) -> Fate {
        match self.fate_by_pairs(row) {
            Fate::Kept(_) if self.not_kept.contains(&row) => Fate::Update,
            fate => fate,
        }
    }

    fn fate_by_pairs(&self, row: u32) -> Fate {
        let Some(class) = self.classes.of_row(row) else {
            return if self.drop_empty && !self.classes.never_dropped_rows.contains(&row) {
                Fate::Empty
            } else {
                Fate::Kept(None)
            };
        };
        let rank = self.order.rank(class);
        match self.greedy.decision(rank) {
            Decision::Kept if self.order.row(rank) == row => Fate::Kept(Some(rank)),
            Decision::Kept if !self.within => Fate::Kept(None),
            Decision::Kept => {
                // The sketches or texts of a class are equal, if they are known.
                let known = self.have_content.as_ref();
                let is_known = known.is_some_and(|known| known.value(row as usize));
                if self.verified && !is_known {
                    Fate::Kept(None)
                } else {
                    Fate::Within {
                        kept: rank,
                        distance: 0,
                        similarity: is_known.then_some(1.0),
                    }
                }
            }
            Decision::Of {
                kept,
                distance,
                similarity,
            } => Fate::Within {
                kept,
                distance,
                similarity,
            },
            Decision::OfArchive => Fate::OfArchive(rank),
            Decision::Barred => Fate::Update,
        }
    }

    /// The document that is repeated by a duplicate of this fate; `None` for other documents.
    fn original(&self, fate: &Fate) -> Option<Original<'_>> {
        match *fate {
            Fate::Within {
                kept,
                distance,
                similarity,
            } => Some(Original {
                document: Document::Row(self.order.row(kept)),
                day: self.day,
                distance: i32::from(distance),
                similarity,
            }),
            Fate::OfArchive(rank) => {
                let near = self.of_archive.get(&rank)?;
                Some(Original {
                    document: Document::Archived(&near.id),
                    day: near.day,
                    distance: near.distance.cast_signed(),
                    similarity: near.similarity,
                })
            }
            Fate::Kept(_) | Fate::Empty | Fate::Update => None,
        }
    }

    /// The capture in the archive that the document at `row` is an update of.
    fn update_of(&self, row: u32, fate: &Fate) -> Option<Capture> {
        let capture = self.captures.as_ref()?.of_row(row)?;
        // Texts may say what sketches do not.
        let is_duplicate = match fate {
            // The original may be in another batch of the capture's day.
            Fate::OfArchive(rank) => self.of_archive.get(rank).is_some_and(|of| {
                (of.day, of.distance) == (capture.day, capture.distance)
                    && of.id == id_of(&self.batch, row)
            }),
            _ => false,
        };
        (!capture.is_pair && !is_duplicate).then_some(capture)
    }

    /// Counts whether the archive has a capture of the document.
    fn count_capture(&mut self, row: u32, fate: &Fate) {
        let is_there = |captures: &Captures| captures.of_row(row).is_some();
        if !self.captures.as_ref().is_some_and(is_there) {
            return;
        }
        if self.update_of(row, fate).is_none() {
            self.counts.unchanged += 1;
            return;
        }
        self.counts.updates += 1;
        if let (OnUpdate::KeepNew, Fate::Kept(_), Some(captures)) =
            (self.on_update, fate, &self.captures)
        {
            let before = self.superseded_before.as_ref();
            if let Some(capture) = before.and_then(|before| before.capture(row, self.day)) {
                self.current.push(capture);
            }
            let is_older = |capture: &RowCapture| capture.day <= self.day;
            self.superseded
                .extend(captures.kept_of(row).filter(is_older));
        }
    }

    /// What later days must know of these decisions, with the pins that they followed.
    pub(crate) fn rulings(&self, pins: &[Pin]) -> Vec<Ruling> {
        let pins = pins.iter().cloned().map(Ruling::Pin);
        let name = |capture: &RowCapture| CaptureName {
            id: id_of(&self.batch, capture.row).to_string(),
            day: capture.day,
            fingerprint: capture.fingerprint,
        };
        let superseded = self.superseded.iter().map(name).map(Ruling::Superseded);
        let current = self.current.iter().map(name).map(Ruling::Current);
        pins.chain(superseded).chain(current).collect()
    }

    /// Counts the documents of each group and of each fate, and marks those that are kept.
    fn count(&mut self, keys: &Keys, mut sources: Sources, mut sample: Sample) -> Result<()> {
        let mut kept_positions = RowSet::default();
        let mut kept_in_batch = BooleanBufferBuilder::new(0);
        kept_in_batch.append_n(keys.rows as usize, false);
        let mut rows = 0..;
        let whole = Arc::clone(&self.batch);
        let ids = whole.id_column();
        let mut by_day: HashMap<i32, u64> = HashMap::new();
        for batch in keys.read()? {
            let batch = batch?;
            let (positions, bytes) = positions_and_bytes(&batch)?;
            let source = batch.column_by_name(SOURCE);
            let source = source.and_then(|column| column.as_string_opt::<i32>());
            for (at, row) in rows.by_ref().take(batch.num_rows()).enumerate() {
                let fate = self.fate(row);
                self.count_capture(row, &fate);
                if let Some(source) = source.filter(|source| source.is_valid(at)) {
                    sources.add(source.value(at), !matches!(fate, Fate::Kept(_)))?;
                }
                let duplicates = match fate {
                    Fate::Kept(rank) => {
                        if let Some(rank) = rank {
                            self.greedy.count_in_group(rank);
                        }
                        kept_positions.add(positions.value(at));
                        kept_in_batch.set_bit(row as usize, true);
                        self.counts.kept += 1;
                        continue;
                    }
                    Fate::Empty => {
                        self.counts.empty += 1;
                        continue;
                    }
                    Fate::Update => {
                        self.counts.dropped_updates += 1;
                        continue;
                    }
                    Fate::Within { kept, .. } => {
                        self.greedy.count_in_group(kept);
                        &mut self.counts.duplicates_within
                    }
                    Fate::OfArchive(rank) => {
                        if let Some(Neighbour { day, id, .. }) = self.of_archive.get(&rank) {
                            let group = self.archive_group_sizes.entry((*day, id.clone()));
                            // Count the document of the archive, too.
                            *group.or_insert(1) += 1;
                            if let Some(day) = day {
                                *by_day.entry(*day).or_default() += 1;
                            }
                        }
                        &mut self.counts.duplicates_of_archive
                    }
                };
                *duplicates += 1;
                sample.add(&ids, row);
                if bytes.is_valid(at) {
                    self.counts.duplicate_bytes += bytes.value(at).max(0).cast_unsigned();
                }
            }
        }
        self.counts.most_repeated = by_day.into_iter().max_by_key(|(day, part)| (*part, *day));
        (self.sources, self.worst_source) = sources.losses();
        self.drawn = sample.rows();
        self.kept_positions = Arc::new(kept_positions);
        self.kept_in_batch = kept_in_batch.finish();
        let within = Some(u64::from(self.greedy.largest_group()));
        let of_archive = self.archive_group_sizes.values().copied().max();
        self.counts.largest_group = within
            .max(of_archive)
            .unwrap_or(0)
            .max(u64::from(self.counts.kept > 0));
        Ok(())
    }
}
