//! The memory pool of a session.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;

use datafusion::common::resources_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, human_readable_size,
};
use datafusion::execution::runtime_env::RuntimeEnv;

use crate::error::EngineError;
use streams::locked;

/// DataFusion gives this name, with the number of the partition in brackets, to each memory consumer that sorts rows.
const SORT: &str = "ExternalSorter[";
/// DataFusion gives this name, with the same number behind it, to each memory consumer that merges sorted runs. Such a consumer
/// reserves as much as the pool gives it. If the pool gives it nothing, the merge fails.
const MERGE: &str = "ExternalSorterMerge";
/// Consumers that can spill share this many eighths of the memory that others leave.
const SPILLABLE_EIGHTHS: usize = 2;
/// Merges share this many eighths of it. One eighth remains for the operators that read the merges.
const MERGE_EIGHTHS: usize = 5;
/// The most bytes of a record batch that is sorted.
const MOST_SORTED_BYTES: usize = 4 << 20;
/// The share of a partition in the memory, divided by the bytes of a record batch that is sorted, if it is not larger anyway.
const SORTED_PART: usize = 256;
/// The share of a partition in the memory, divided by the bytes of all runs that are merged at once.
const MERGED_PART: usize = 16;
/// DataFusion reserves this many times the largest record batch of a run that it merges.
const MERGED_COPIES: usize = 4;

/// The most bytes of a record batch that is sorted in `partitions` partitions within `bytes` bytes: so few that the share of a
/// sort holds several of them, and so does the share of its merge.
pub(crate) fn sorted_bytes(bytes: usize, partitions: usize) -> usize {
    (bytes / SORTED_PART / partitions.max(1)).min(MOST_SORTED_BYTES)
}

/// How many sorted runs an aggregate merges at once. Without this limit, its merge takes its whole share, and no memory is left
/// for the merged groups.
pub(crate) fn merged_runs(bytes: usize, partitions: usize) -> usize {
    let run = MERGED_COPIES * sorted_bytes(bytes, partitions).max(1);
    (bytes / MERGED_PART / partitions.max(1) / run).max(2)
}

/// Lets DataFusion's sorts merge as many runs at once as [`SortPool`] gives memory for.
pub(crate) fn merge_without_limit(runtime: &RuntimeEnv) {
    runtime.disk_manager.set_max_spill_merge_fan_in(0);
}

/// Lets `memory` grow by `bytes`; without room for them, the error says `what` takes them.
pub(crate) fn reserve(
    memory: &MemoryReservation,
    bytes: usize,
    what: impl FnOnce() -> String,
) -> Result<(), EngineError> {
    let grown = memory.try_grow(bytes);
    grown.map_err(|_| EngineError::OutOfMemory { what: what() })
}

/// A pool that shares memory fairly among sorts, and leaves enough for their merges.
///
/// DataFusion's own fair pool lets sorts take all memory. Their merges then find none, or the first merge takes what the
/// others need. Here, of the bytes that no other consumer has,
///
/// - one quarter is shared by the consumers that can spill;
/// - five eighths are shared by the merges: before a sort writes its rows to the disk, it merges sorted copies of them; the
///   copies and their keys take two to three times the bytes of the rows;
/// - one eighth stays free for others, such as the merge of all partitions.
///
/// Without merges, the consumers that can spill also share the part of the merges. One that has nothing yet may take it, too,
/// for its first record batch. Other consumers, such as the tables of the batch, get what is free.
///
/// The partitions of a plan start one after the other. A sort that starts before others may hold more than its share of later. So
/// its merge gets as much as these rows need, and the other sorts get less meanwhile.
#[derive(Debug)]
pub(crate) struct SortPool {
    bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    spillable: Sharers,
    merges: Sharers,
    /// Bytes of all other consumers.
    others: usize,
}

/// Consumers that share a part of the pool.
#[derive(Debug, Default)]
struct Sharers {
    /// By id.
    consumers: HashMap<usize, Sharer>,
    bytes: usize,
}

#[derive(Debug)]
struct Sharer {
    name: String,
    bytes: usize,
    /// The largest share that a merge had while it had memory; 0 for a sort.
    share: usize,
}

impl Sharer {
    fn new(consumer: &MemoryConsumer) -> Self {
        Self {
            name: consumer.name().to_owned(),
            bytes: 0,
            share: 0,
        }
    }
}

impl State {
    /// The consumers with which `consumer` shares a part of the pool; `None` if it takes what is free.
    fn sharers(&mut self, consumer: &MemoryConsumer) -> Option<&mut Sharers> {
        if consumer.can_spill() {
            Some(&mut self.spillable)
        } else if consumer.name().starts_with(MERGE) {
            Some(&mut self.merges)
        } else {
            None
        }
    }

    fn reserved(&self) -> usize {
        self.spillable.bytes + self.merges.bytes + self.others
    }

    /// The bytes by which `consumer` may grow in a pool of `bytes` bytes.
    fn available(&mut self, consumer: &MemoryConsumer, bytes: usize) -> usize {
        let free = bytes.saturating_sub(self.reserved());
        let eighth = bytes.saturating_sub(self.others) / 8;
        let Some(sharers) = self.sharers(consumer) else {
            return free;
        };
        let own = sharers.consumers.get(&consumer.id());
        let own = own.map_or(0, |own| own.bytes);
        let most = if consumer.can_spill() {
            self.most_of_sort(own, eighth)
        } else {
            self.share_of_merge(consumer, eighth)
        };
        free.min(most.saturating_sub(own))
    }

    /// The share of each merge, where an eighth of the memory has `eighth` bytes and all have the same.
    fn equal_share_of_merges(&self, eighth: usize) -> usize {
        MERGE_EIGHTHS * eighth / self.merges.consumers.len().max(1)
    }

    /// The most bytes of a consumer that can spill and has `own` bytes.
    fn most_of_sort(&self, own: usize, eighth: usize) -> usize {
        let merges = self.merges.consumers.len();
        // When other sorts have ended, their merges may still run. The share of a sort must not outgrow that of its merge.
        let count = self.spillable.consumers.len().max(merges).max(1);
        if merges == 0 || own == 0 {
            return (SPILLABLE_EIGHTHS + MERGE_EIGHTHS) * eighth / count;
        }
        // Memory is also short if merges have more than their shares.
        let equal = self.equal_share_of_merges(eighth);
        let merges = self.merges.consumers.values();
        let more: usize = merges.map(|merge| merge.bytes.saturating_sub(equal)).sum();
        let part = SPILLABLE_EIGHTHS * eighth;
        let taken = self.spillable.bytes + more * SPILLABLE_EIGHTHS / MERGE_EIGHTHS;
        let share = part / count;
        share.min((own + part.saturating_sub(taken)).max(share / 2))
    }

    /// The share of the merge `consumer`: at least what the rows of its sort need. It does not shrink while the merge has memory.
    fn share_of_merge(&mut self, consumer: &MemoryConsumer, eighth: usize) -> usize {
        // The number behind both names is the only link between a sort and its merge.
        let number = consumer.name().strip_prefix(MERGE);
        let number = number.and_then(|number| number.strip_prefix('['));
        let is_its_sort =
            |sort: &&Sharer| number.is_some() && sort.name.strip_prefix(SORT) == number;
        let sorts = self.spillable.consumers.values().filter(is_its_sort);
        let sorted = sorts.map(|sort| sort.bytes).max().unwrap_or(0);
        let needed = sorted * MERGE_EIGHTHS / SPILLABLE_EIGHTHS;
        let share = self.equal_share_of_merges(eighth).max(needed);
        let Some(own) = self.merges.consumers.get_mut(&consumer.id()) else {
            return share;
        };
        let before = if own.bytes == 0 { 0 } else { own.share };
        own.share = share.max(before);
        own.share
    }

    fn grow(&mut self, consumer: &MemoryConsumer, additional: usize) {
        match self.sharers(consumer) {
            Some(sharers) => {
                let own = sharers.consumers.entry(consumer.id());
                own.or_insert_with(|| Sharer::new(consumer)).bytes += additional;
                sharers.bytes += additional;
            }
            None => self.others += additional,
        }
    }

    fn shrink(&mut self, consumer: &MemoryConsumer, less: usize) {
        match self.sharers(consumer) {
            Some(sharers) => {
                if let Some(own) = sharers.consumers.get_mut(&consumer.id()) {
                    own.bytes = own.bytes.saturating_sub(less);
                }
                sharers.bytes = sharers.bytes.saturating_sub(less);
            }
            None => self.others = self.others.saturating_sub(less),
        }
    }
}

impl SortPool {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            bytes,
            state: Mutex::default(),
        }
    }
}

impl fmt::Display for SortPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = human_readable_size(self.bytes);
        write!(f, "{}(pool_size: {bytes})", self.name())
    }
}

impl MemoryPool for SortPool {
    fn name(&self) -> &str {
        "sort"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if let Some(sharers) = locked(&self.state).sharers(consumer) {
            sharers
                .consumers
                .insert(consumer.id(), Sharer::new(consumer));
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if let Some(sharers) = locked(&self.state).sharers(consumer) {
            sharers.consumers.remove(&consumer.id());
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        locked(&self.state).grow(reservation.consumer(), additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, less: usize) {
        locked(&self.state).shrink(reservation.consumer(), less);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let consumer = reservation.consumer();
        let mut state = locked(&self.state);
        let available = state.available(consumer, self.bytes);
        if additional > available {
            let [additional, available, pool] =
                [additional, available, self.bytes].map(human_readable_size);
            let name = consumer.name();
            return Err(resources_datafusion_err!(
                "{name} asked for {additional} more; its share allows {available} (of {pool} in all)"
            ));
        }
        state.grow(consumer, additional);
        Ok(())
    }

    fn reserved(&self) -> usize {
        locked(&self.state).reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use streams::free_bytes;

    use super::*;

    #[test]
    fn merges_find_memory_that_no_sort_takes() {
        let pool: Arc<dyn MemoryPool> = Arc::new(SortPool::new(8000));
        let sorts = ["a", "b"].map(|name| {
            let consumer = MemoryConsumer::new(name).with_can_spill(true);
            consumer.register(&pool)
        });
        let merges = [0, 1].map(|number| {
            let consumer = MemoryConsumer::new(format!("{MERGE}[{number}]"));
            consumer.register(&pool)
        });
        for sort in &sorts {
            sort.try_grow(500).unwrap();
            sort.try_grow(501).unwrap_err();
            sort.try_grow(500).unwrap();
        }
        for merge in &merges {
            merge.try_grow(2500).unwrap();
            merge.try_grow(1).unwrap_err();
        }
        let other = MemoryConsumer::new("other").register(&pool);
        other.try_grow(1000).unwrap();
        other.try_grow(1).unwrap_err();
        assert_eq!((pool.reserved(), free_bytes(&pool)), (8000, 0));
        // What one merge frees is for other consumers, not for the other merge.
        merges[0].free();
        merges[1].try_grow(1).unwrap_err();
        other.try_grow(2500).unwrap();
        drop((sorts, merges, other));
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn a_sort_that_started_before_others_can_be_merged() {
        let pool: Arc<dyn MemoryPool> = Arc::new(SortPool::new(8000));
        let start = |partition: usize| {
            let sort = MemoryConsumer::new(format!("ExternalSorter[{partition}]"));
            let merge = MemoryConsumer::new(format!("{MERGE}[{partition}]"));
            (
                sort.with_can_spill(true).register(&pool),
                merge.register(&pool),
            )
        };
        let (first, merge) = start(0);
        first.try_grow(1800).unwrap();
        let others = [1, 2, 3].map(start);
        for (sort, _) in &others {
            // The first record batch may be larger than the share; then a sort gets half of it, whatever others have.
            sort.try_grow(100).unwrap();
            sort.try_grow(151).unwrap_err();
            sort.try_grow(150).unwrap();
        }
        merge.try_grow(4501).unwrap_err();
        merge.try_grow(4500).unwrap();
        // Its share stays when its sort gives its rows away. The others get no more until it is smaller.
        first.free();
        merge.shrink(100);
        merge.try_grow(100).unwrap();
        for (sort, _) in &others {
            sort.try_grow(1).unwrap_err();
        }
        for (_, merge) in &others {
            merge.try_grow(900).unwrap();
        }
        merge.free();
        // Four merges have equal shares.
        merge.try_grow(1251).unwrap_err();
        merge.try_grow(1250).unwrap();
        for (sort, other) in &others {
            sort.try_grow(250).unwrap();
            other.try_grow(350).unwrap();
        }
    }

    #[test]
    fn a_consumer_has_one_share_however_many_reservations_it_has() {
        let pool: Arc<dyn MemoryPool> = Arc::new(SortPool::new(8000));
        let consumer = MemoryConsumer::new("sort").with_can_spill(true);
        let first = consumer.register(&pool);
        first.try_grow(5000).unwrap();
        let second = first.new_empty();
        second.try_grow(2001).unwrap_err();
        second.try_grow(2000).unwrap();
        drop(first);
        second.try_grow(5000).unwrap();
    }

    #[test]
    fn a_first_record_batch_may_be_as_large_as_both_shares() {
        let pool: Arc<dyn MemoryPool> = Arc::new(SortPool::new(8000));
        let consumer = MemoryConsumer::new("sort").with_can_spill(true);
        let sort = consumer.register(&pool);
        let merge = MemoryConsumer::new(MERGE).register(&pool);
        sort.try_grow(7001).unwrap_err();
        sort.try_grow(7000).unwrap();
        sort.try_grow(1).unwrap_err();
        sort.free();
        sort.try_grow(1).unwrap();
        sort.try_grow(2000).unwrap_err();
        merge.try_grow(5000).unwrap();
    }

    #[test]
    fn others_take_what_is_free_and_sorts_share_the_rest() {
        let pool: Arc<dyn MemoryPool> = Arc::new(SortPool::new(8000));
        let table = MemoryConsumer::new("tables").register(&pool);
        table.try_grow(6000).unwrap();
        let sort = MemoryConsumer::new("sort").with_can_spill(true);
        let sort = sort.register(&pool);
        let _merge = MemoryConsumer::new(MERGE).register(&pool);
        sort.try_grow(400).unwrap();
        sort.try_grow(101).unwrap_err();
        sort.try_grow(100).unwrap();
        table.try_grow(1501).unwrap_err();
        table.try_grow(1500).unwrap();
        let error = sort.try_grow(1).unwrap_err().to_string();
        assert!(error.contains("sort asked for 1.0 B more"), "{error}");
    }
}
