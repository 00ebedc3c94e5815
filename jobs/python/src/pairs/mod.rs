//! The exact join of fingerprints in memory, by the crate `hamming`.

mod found;
mod side;

use std::ops::Range;
use std::sync::Arc;

use hamming::{Distinct, Kernel, Limits, Match, Plan, Related, Scratch, Tables};
use pyo3::prelude::*;

use self::found::{Pair, Pairs};
use self::side::Side;
use crate::error::Failed;
use crate::export::Array;
use crate::interrupt::{for_each, on_thread, thread_count};
use crate::progress::Progress;
use crate::table::Table;

/// The most fingerprints that a thread compares between two looks at the signals.
const PIECE: usize = 1 << 16;
/// The most nanoseconds that this may take, as planned. Beyond k = 8 it takes up to four times as long.
const PIECE_NS: f64 = 2e8;

/// The stage in which tables are built.
const BUILDING: &str = "building tables";
/// The stage in which fingerprints are compared with them.
const PROBING: &str = "probing";

/// What a call asks for.
#[derive(FromPyObject)]
pub(crate) struct Options {
    #[pyo3(item)]
    max_distance: u32,
    #[pyo3(item)]
    threads: Option<usize>,
    /// Bytes that the tables may take.
    #[pyo3(item)]
    memory: usize,
    #[pyo3(item)]
    max_pairs: u64,
    /// See [`Progress`].
    #[pyo3(item)]
    progress: Option<Py<PyAny>>,
}

/// What a join may use, and how it reports.
struct Join<'py> {
    py: Python<'py>,
    max_distance: u32,
    threads: usize,
    /// Bytes for the tables.
    memory: usize,
    pairs: Pairs,
    progress: Progress,
}

/// Find all pairs of fingerprints within max_distance bits in one array. Return a table of new_id, base_id and distance:
/// ids are row numbers, and base_id is the smaller.
#[pyfunction]
pub(crate) fn pairs_within(
    py: Python<'_>,
    fingerprints: &Bound<'_, Array>,
    options: Options,
) -> PyResult<Table> {
    let side = Side::new(fingerprints.get())?;
    let join = Join::new(py, options);
    join.within(&side)?;
    join.table()
}

/// Find all pairs of a fingerprint in new and one in base within max_distance bits. Return a table as pairs_within does.
#[pyfunction]
pub(crate) fn pairs_between(
    py: Python<'_>,
    new: &Bound<'_, Array>,
    base: &Bound<'_, Array>,
    options: Options,
) -> PyResult<Table> {
    let (new, base) = (Side::new(new.get())?, Side::new(base.get())?);
    let join = Join::new(py, options);
    // The tables are built of the smaller side, and the larger one streams past them.
    if new.values().len() <= base.values().len() {
        join.between(&new, &base, |new, base| (new, base))?
    } else {
        join.between(&base, &new, |base, new| (new, base))?
    }
    join.table()
}

impl<'py> Join<'py> {
    fn new(py: Python<'py>, options: Options) -> Self {
        Self {
            py,
            max_distance: options.max_distance,
            threads: thread_count(options.threads),
            memory: options.memory,
            pairs: Pairs::new(options.max_pairs),
            progress: Progress::new(options.progress, PROBING, 0),
        }
    }

    fn within(&self, side: &Side) -> PyResult<()> {
        if side.values().is_empty() {
            return Ok(());
        }
        let (batch, all, progress) = (self.distinct(side)?, &self.pairs, &self.progress);
        self.probe(&batch, None, |query, found, pairs| {
            // Each two values are found twice, and each value finds itself.
            if found.entry <= query {
                let count = pairs_of(&batch, query, found.entry);
                all.count(count, progress)?;
                add_rows(side, &batch, (query, found), pairs);
            }
            Ok(())
        })
    }

    /// Builds tables of `small`, streams `large` past them, and adds the pairs. `order` turns a row of `small` and a row of
    /// `large` into (new, base).
    fn between(
        &self,
        small: &Side,
        large: &Side,
        order: impl Fn(u32, u32) -> (u32, u32) + Sync,
    ) -> PyResult<()> {
        if small.values().is_empty() {
            return Ok(());
        }
        let (batch, all, progress) = (self.distinct(small)?, &self.pairs, &self.progress);
        self.probe(&batch, Some(large.values()), |query, found, pairs| {
            let other = large.row(query);
            let rows = batch.rows(found.entry);
            all.count(rows.len() as u64, progress)?;
            let distance = found.distance;
            pairs.extend(rows.map(|row| {
                let (new, base) = order(small.row(row), other);
                Pair {
                    new,
                    distance,
                    base,
                }
            }));
            Ok(())
        })
    }

    /// Compares `values`, or the fingerprints of the batch themselves, with the tables of each part of a batch. `add` takes the
    /// number of a fingerprint and a match of it.
    fn probe(
        &self,
        batch: &Arc<Distinct>,
        values: Option<&[u64]>,
        add: impl Fn(u32, Match, &mut Vec<Pair>) -> Result<(), Failed> + Sync,
    ) -> PyResult<()> {
        let (all, progress) = (&self.pairs, &self.progress);
        let count = values.unwrap_or(batch.values()).len();
        let limits = Limits {
            memory: self.memory,
            queries: count as u64,
            sorted_run: 1,
            threads: self.threads,
            related: Related::of(batch.values()),
        };
        let plan = Plan::choose(batch.values().len(), self.max_distance, &limits);
        let plan = plan.map_err(Failed::from)?;
        for part in 0..plan.parts {
            let tables = self.tables(batch, &plan, part)?;
            let most = match values {
                Some(_) => {
                    let share = count.div_ceil(self.threads).max(1);
                    tables.chunk_len().max(PIECE).min(share)
                }
                None => PIECE,
            };
            let pieces = pieces(count, most.min(most_at_once(&plan))).into_iter();
            progress.enter(PROBING, part * count, Some(plan.parts * count));
            for_each(
                self.py,
                progress,
                pieces,
                true,
                self.threads,
                Scratch::default,
                |scratch, piece, stop| {
                    let kernel = Kernel::detect();
                    let (mut from, mut found, mut pairs) = (0, Vec::new(), Vec::new());
                    while from < piece.len() && !stop.is_set() {
                        let range = piece.clone();
                        let probed = match values {
                            Some(values) => {
                                let chunk = &values[range];
                                tables.probe_piece(kernel, chunk, from, scratch, &mut found)
                            }
                            None => tables.probe_self(kernel, range, from, scratch, &mut found),
                        };
                        from += probed;
                        progress.advance(probed);
                        for found in found.drain(..) {
                            add(piece.start as u32 + found.query, found, &mut pairs)?;
                        }
                    }
                    all.add(pairs);
                    Ok(())
                },
            )?;
        }
        Ok(())
    }

    /// The distinct fingerprints of a side.
    fn distinct(&self, side: &Side) -> PyResult<Arc<Distinct>> {
        let values = side.values.values().clone();
        self.progress.enter(BUILDING, values.len(), None);
        on_thread(self.py, &self.progress, move || {
            Arc::new(Distinct::new(&values))
        })
    }

    /// Builds the tables of a part of the batch.
    fn tables(&self, batch: &Arc<Distinct>, plan: &Plan, part: usize) -> PyResult<Tables> {
        let range = Plan::part_range(plan.parts, part, batch.values().len());
        self.progress.enter(BUILDING, range.len(), None);
        let (batch, design, threads) = (Arc::clone(batch), plan.design.clone(), self.threads);
        on_thread(self.py, &self.progress, move || {
            Tables::build(batch, range, design, threads)
        })
    }

    /// The pairs in order, as a table. Reports that the join is done.
    fn table(self) -> PyResult<Table> {
        let Self {
            py,
            pairs,
            progress,
            ..
        } = self;
        progress.report(py)?;
        progress.enter("sorting pairs", progress.pairs() as usize, None);
        let (schema, batch) = on_thread(py, &progress, move || pairs.into_batch())??;
        Ok(Table::new(schema, vec![batch]))
    }
}

/// The most fingerprints to probe at once, so that Ctrl-C stops the join soon.
fn most_at_once(plan: &Plan) -> usize {
    ((PIECE_NS / plan.probe_ns.max(1.0)) as usize).max(256)
}

/// The number of pairs of the rows of two distinct fingerprints, or of the rows of one.
fn pairs_of(batch: &Distinct, query: u32, entry: u32) -> u64 {
    let rows = |entry: u32| batch.rows(entry).len() as u64;
    if query == entry {
        rows(query) * (rows(query) - 1) / 2
    } else {
        rows(query) * rows(entry)
    }
}

/// Appends the pairs of the rows of two distinct fingerprints, or of the rows of one.
fn add_rows(side: &Side, batch: &Distinct, (query, found): (u32, Match), pairs: &mut Vec<Pair>) {
    for row in batch.rows(query) {
        for other in batch.rows(found.entry) {
            let (row, other) = (side.row(row), side.row(other));
            if query != found.entry || other < row {
                pairs.push(Pair {
                    new: row.max(other),
                    distance: found.distance,
                    base: row.min(other),
                });
            }
        }
    }
}

/// Cuts `0..count` into ranges of `most` at most.
fn pieces(count: usize, most: usize) -> Vec<Range<usize>> {
    let starts = (0..count).step_by(most.max(1));
    starts.map(|start| start..count.min(start + most)).collect()
}
