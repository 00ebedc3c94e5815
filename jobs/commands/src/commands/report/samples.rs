//! Chooses the pairs that a report shows: some of each distance and similarity, some near the
//! threshold, and some of the largest groups.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

use engine::output::ReadRow;
use simhash::hash::murmur3_low64;

use crate::commands::pairs::{Pair, Smallest};

/// Samples of each stratum: a distance and a range of similarity.
const OF_STRATUM: usize = 2;
/// Samples next to the threshold, on each side of it.
const BORDERLINE: usize = 4;
/// Number of largest groups, and of duplicates shown of each.
const GROUPS: usize = 8;
const OF_GROUP: usize = 2;
/// Bounds between the ranges of similarity.
const RANGES: [f64; 5] = [0.5, 0.7, 0.8, 0.9, 0.95];

/// Why a sample is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Why {
    /// It belongs to one of the largest groups, which has this many documents.
    LargeGroup(u64),
    /// Its similarity is one of the nearest to the threshold, and not below it.
    Above,
    /// Its similarity is one of the nearest below the threshold.
    Below,
    /// It represents its distance and range of similarity.
    Stratum,
}

/// A pair that is shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) why: Why,
    pub(super) pair: Pair,
}

impl Sample {
    fn read(row: &ReadRow<'_>, why: Why) -> Option<Self> {
        Some(Self {
            why,
            pair: Pair::read(row)?,
        })
    }
}

/// A hash of a pair's ids, by which samples are chosen: so the choice does not depend on the order
/// of rows.
type Hash = u64;

/// A group's sort key on the page, the largest group first: size, then day and id of the kept
/// document.
type GroupKey = (Reverse<i64>, Option<i32>, Box<str>);

/// The first pass over the rows: chooses samples, and finds the largest groups for the second pass.
#[derive(Debug)]
pub(super) struct Samples {
    threshold: f64,
    strata: BTreeMap<(i32, usize), Smallest<Hash, Sample>>,
    above: Smallest<(u64, Hash), Sample>,
    below: Smallest<(u64, Hash), Sample>,
    /// The largest groups: their size, and the day and id of the kept document.
    groups: BinaryHeap<Reverse<Group>>,
    known: HashSet<(Option<i32>, Box<str>)>,
}

/// A group: its size, then the id and the day of its kept document.
type Group = (i64, Reverse<Box<str>>, Option<i32>);

impl Samples {
    pub(super) fn new(threshold: f64) -> Self {
        Self {
            threshold,
            strata: BTreeMap::new(),
            above: Smallest::new(BORDERLINE),
            below: Smallest::new(BORDERLINE),
            groups: BinaryHeap::new(),
            known: HashSet::new(),
        }
    }

    pub(super) fn add(&mut self, row: &ReadRow<'_>) {
        let Some(pair) = row.pair else { return };
        if let Some(size) = row.group_size.filter(|size| *size > 2) {
            self.add_group(size, pair.base_id, pair.base_day);
        }
        let hash = hash(row.id, pair.base_id);
        let range = match pair.similarity {
            Some(similarity) => 1 + RANGES.iter().filter(|bound| similarity >= **bound).count(),
            None => 0,
        };
        self.strata
            .entry((pair.distance, range))
            .or_insert_with(|| Smallest::new(OF_STRATUM))
            .offer(hash, || Sample::read(row, Why::Stratum));
        if let Some(similarity) = pair.similarity {
            // Non-negative floats and their bits have the same order.
            let away = (similarity - self.threshold).abs().to_bits();
            let (side, why) = if similarity >= self.threshold {
                (&mut self.above, Why::Above)
            } else {
                (&mut self.below, Why::Below)
            };
            side.offer((away, hash), || Sample::read(row, why));
        }
    }

    fn add_group(&mut self, size: i64, id: &str, day: Option<i32>) {
        let least = self.groups.peek().filter(|_| self.groups.len() == GROUPS);
        if least.is_some_and(|Reverse((least, ..))| size < *least) {
            return;
        }
        let key = (day, Box::from(id));
        if self.known.contains(&key) {
            return;
        }
        self.groups.push(Reverse((size, Reverse(id.into()), day)));
        self.known.insert(key);
        if self.groups.len() > GROUPS
            && let Some(Reverse((_, Reverse(id), day))) = self.groups.pop()
        {
            self.known.remove(&(day, id));
        }
    }

    /// Ends the first pass, and begins the one that samples the largest groups.
    pub(super) fn into_second_pass(self) -> SecondPass {
        let groups = self.groups.into_iter();
        let of_groups = groups.map(|Reverse((size, Reverse(id), day))| {
            ((Reverse(size), day, id), Smallest::new(OF_GROUP))
        });
        let mut others = self.above.into_items();
        others.extend(self.below.into_items());
        for stratum in self.strata.into_values() {
            others.extend(stratum.into_items());
        }
        SecondPass {
            of_groups: of_groups.collect(),
            others,
        }
    }
}

/// The second pass over the rows: samples the largest groups. It also holds the samples of the
/// first pass.
#[derive(Debug)]
pub(super) struct SecondPass {
    /// The farthest duplicates of each of the largest groups.
    of_groups: BTreeMap<GroupKey, Smallest<(Reverse<i32>, Hash), Sample>>,
    others: Vec<Sample>,
}

impl SecondPass {
    /// Whether the rows must be read again.
    pub(super) fn is_needed(&self) -> bool {
        !self.of_groups.is_empty()
    }

    pub(super) fn add(&mut self, row: &ReadRow<'_>) {
        let (Some(pair), Some(size)) = (row.pair, row.group_size) else {
            return;
        };
        // A linear search is fast enough: there are at most GROUPS groups.
        for ((Reverse(of), day, id), samples) in &mut self.of_groups {
            if *of == size && *day == pair.base_day && **id == *pair.base_id {
                // The farthest duplicates tell most about the group.
                let key = (Reverse(pair.distance), hash(row.id, pair.base_id));
                samples.offer(key, || {
                    Sample::read(row, Why::LargeGroup(size.cast_unsigned()))
                });
            }
        }
    }

    /// All samples, each pair once: those of the largest groups first, then the borderline, then
    /// the others by distance.
    pub(super) fn into_samples(self) -> Vec<Sample> {
        let of_groups = self.of_groups.into_values().flat_map(Smallest::into_items);
        let mut seen = HashSet::new();
        of_groups
            .chain(self.others)
            .filter(|sample| {
                let [new, base] = sample.pair.ids().map(str::to_owned);
                seen.insert((new, base, sample.pair.base_day))
            })
            .collect()
    }
}

fn hash(new_id: &str, base_id: &str) -> Hash {
    murmur3_low64(
        base_id.as_bytes(),
        murmur3_low64(new_id.as_bytes(), 0) as u32,
    )
}

#[cfg(test)]
mod tests {
    use engine::output::ReadPair;

    use super::*;

    fn row<'a>(
        id: &'a str,
        base: &'a str,
        distance: i32,
        similarity: f64,
        size: i64,
    ) -> ReadRow<'a> {
        ReadRow {
            id,
            pair: Some(ReadPair {
                base_id: base,
                distance,
                base_day: None,
                similarity: Some(similarity),
            }),
            group_size: Some(size),
            site: None,
        }
    }

    #[test]
    fn samples_do_not_depend_on_the_order_of_rows() {
        let ids: Vec<String> = (0..500).map(|number| format!("{number:03}")).collect();
        let rows: Vec<ReadRow<'_>> = (0..500)
            .map(|at: usize| {
                let base = &ids[at % 7];
                row(
                    &ids[at],
                    base,
                    (at % 5) as i32,
                    (at % 97) as f64 / 97.0,
                    70 + (at % 7) as i64,
                )
            })
            .collect();
        let chosen = |rows: Vec<&ReadRow<'_>>| {
            let mut samples = Samples::new(0.8);
            rows.iter().for_each(|row| samples.add(row));
            let mut second = samples.into_second_pass();
            rows.iter().for_each(|row| second.add(row));
            second.into_samples()
        };
        let forward = chosen(rows.iter().collect());
        assert_eq!(forward, chosen(rows.iter().rev().collect()));
        // The largest group first, by its farthest duplicates.
        assert_eq!(forward[0].why, Why::LargeGroup(76));
        assert_eq!(
            (forward[0].pair.base_id.as_str(), forward[0].pair.distance),
            ("006", 4)
        );
        let count = |why: Why| forward.iter().filter(|sample| sample.why == why).count();
        assert_eq!(
            (count(Why::Above), count(Why::Below)),
            (BORDERLINE, BORDERLINE)
        );
        // Every distance and range of similarity occurs.
        assert!(
            count(Why::Stratum) >= 5 * (RANGES.len() + 1) - 2 * BORDERLINE,
            "{}",
            forward.len()
        );
    }
}
