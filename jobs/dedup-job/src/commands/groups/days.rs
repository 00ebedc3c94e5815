//! Groups over several days: a kept document, and its duplicates on its own day and on later ones.

use std::collections::{HashMap, HashSet};

use engine::output::ReadRow;
use serde_json::{Value, json};

use crate::terminal::date;

/// When the kept document of a group came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Origin {
    /// On this day, in days since 1970.
    Day(i32),
    /// In the batch of this file, which has no day.
    File(usize),
}

/// The kept document of a group: when it came in, and its id.
type Key = (Origin, Box<str>);

/// The decisions of one file.
#[derive(Debug, Default)]
pub(super) struct Day {
    documents: u64,
    /// Ids of the kept documents.
    kept: HashSet<Box<str>>,
    kept_count: u64,
    /// Duplicates in the batch of its own kept documents.
    within: u64,
    /// Duplicates, by the day and the id of the kept document.
    duplicates: HashMap<(Option<i32>, Box<str>), u64>,
}

impl Day {
    pub(super) fn add(&mut self, row: &ReadRow<'_>) {
        self.documents += 1;
        match row.pair {
            None => {
                self.kept_count += 1;
                // The group has this document and its duplicates in the batch.
                let duplicates = row.group_size.map_or(0, |size| size.max(1) - 1);
                self.within += duplicates.cast_unsigned();
                self.kept.insert(row.id.into());
            }
            Some(pair) => {
                let key = (pair.base_day, pair.base_id.into());
                *self.duplicates.entry(key).or_default() += 1;
            }
        }
    }

    /// The day of the batch, as its duplicates of its own kept documents say; `None` if there are none.
    fn day(&self) -> Option<Option<i32>> {
        let mut by_day: HashMap<Option<i32>, u64> = HashMap::new();
        for ((day, _), count) in &self.duplicates {
            *by_day.entry(*day).or_default() += count;
        }
        let own = |(day, count): (Option<i32>, u64)| (count == self.within).then_some(day);
        by_day.into_iter().filter_map(own).max()
    }
}

/// A line of the table of days.
#[derive(Debug)]
pub(super) struct DayCounts {
    pub(super) file: String,
    pub(super) documents: u64,
    pub(super) kept: u64,
    /// Duplicates of documents of earlier days.
    pub(super) of_earlier: u64,
    pub(super) within: u64,
    /// Documents of the largest group so far.
    pub(super) largest: u64,
}

/// The groups of several files.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) days: Vec<DayCounts>,
    /// The duplicates of the groups that have some.
    duplicates: HashMap<Key, u64>,
    /// Days of the files.
    known: HashSet<i32>,
    /// Ids of the kept documents of files whose day is not known.
    unknown: Vec<HashSet<Box<str>>>,
    /// Groups whose kept document is in none of the files.
    pub(super) older: u64,
}

/// A group that is shown.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) id: &'a str,
    pub(super) origin: Origin,
    pub(super) documents: u64,
}

impl Groups {
    pub(super) fn add(&mut self, file: String, day: Day) {
        let number = self.days.len();
        // Without duplicates in the batch, no row says the day of the batch.
        let own = if day.within > 0 { day.day() } else { None };
        for ((of_day, id), count) in day.duplicates {
            let origin = of_day.map_or(Origin::File(number), Origin::Day);
            *self.duplicates.entry((origin, id)).or_default() += count;
        }
        match own {
            Some(Some(day)) => {
                self.known.insert(day);
            }
            Some(None) => {}
            None => self.unknown.push(day.kept),
        }
        let largest = self.duplicates.values().max().map_or(0, |most| 1 + most);
        self.days.push(DayCounts {
            file,
            documents: day.documents,
            kept: day.kept_count,
            of_earlier: (day.documents - day.kept_count).saturating_sub(day.within),
            within: day.within,
            largest: largest.max(day.kept_count.min(1)),
        });
    }

    /// Counts the groups whose kept document is in none of the files.
    pub(super) fn find_older(&mut self) {
        let is_older = |(origin, id): &&Key| match origin {
            Origin::Day(day) if !self.known.contains(day) => {
                !self.unknown.iter().any(|kept| kept.contains(id))
            }
            _ => false,
        };
        self.older = self.duplicates.keys().filter(is_older).count() as u64;
    }

    fn sum(&self, count: impl Fn(&DayCounts) -> u64) -> u64 {
        self.days.iter().map(count).sum()
    }

    pub(super) fn documents(&self) -> u64 {
        self.sum(|day| day.documents)
    }

    pub(super) fn kept(&self) -> u64 {
        self.sum(|day| day.kept)
    }

    pub(super) fn of_earlier(&self) -> u64 {
        self.sum(|day| day.of_earlier)
    }

    pub(super) fn within(&self) -> u64 {
        self.sum(|day| day.within)
    }

    /// Groups, those of single documents too.
    pub(super) fn count(&self) -> u64 {
        self.kept() + self.older
    }

    /// How many groups have 1, 2, 3 to 4, 5 to 8 … documents: the largest size, and the groups.
    pub(super) fn sizes(&self) -> Vec<(u64, u64)> {
        let mut sizes = vec![(1, self.count().saturating_sub(self.duplicates.len() as u64))];
        for duplicates in self.duplicates.values() {
            let bin = (1 + duplicates).next_power_of_two().trailing_zeros() as usize;
            while sizes.len() <= bin {
                sizes.push((1 << sizes.len(), 0));
            }
            sizes[bin].1 += 1;
        }
        sizes
    }

    /// The `most` largest groups, the largest first; of equally large ones, the earlier, then the one with the smaller id.
    pub(super) fn largest(&self, most: usize) -> Vec<Group<'_>> {
        let mut all: Vec<Group<'_>> = self
            .duplicates
            .iter()
            .map(|((origin, id), duplicates)| Group {
                id,
                origin: *origin,
                documents: 1 + duplicates,
            })
            .collect();
        let key = |group: &Group<'_>| (std::cmp::Reverse(group.documents), group.origin);
        let order = |a: &Group<'_>, b: &Group<'_>| key(a).cmp(&key(b)).then_with(|| a.id.cmp(b.id));
        if most < all.len() {
            all.select_nth_unstable_by(most, order);
            all.truncate(most);
        }
        all.sort_unstable_by(order);
        all
    }

    pub(super) fn as_json(&self, most: usize) -> Value {
        let day = |origin| match origin {
            Origin::Day(day) => Some(date(day)),
            Origin::File(_) => None,
        };
        let largest = self.largest(most).into_iter().map(
            |group| json!({"id": group.id, "day": day(group.origin), "documents": group.documents}),
        );
        let days = self.days.iter().map(|day| {
            json!({
                "file": day.file,
                "documents": day.documents,
                "kept": day.kept,
                "duplicates_of_earlier": day.of_earlier,
                "duplicates_within": day.within,
                "largest_group": day.largest,
            })
        });
        let sizes = self.sizes().into_iter();
        let sizes = sizes.map(|(up_to, groups)| json!({"up_to": up_to, "groups": groups}));
        json!({
            "documents": self.documents(),
            "kept": self.kept(),
            "duplicates_of_earlier": self.of_earlier(),
            "duplicates_within": self.within(),
            "groups": self.count(),
            "groups_of_older_documents": self.older,
            "sizes": sizes.collect::<Vec<_>>(),
            "largest": largest.collect::<Vec<_>>(),
            "days": days.collect::<Vec<_>>(),
        })
    }
}
