//! Groups over several days: a kept document, and its duplicates on its own day and on later ones.

use std::collections::{BTreeMap, HashMap, HashSet};

use engine::output::ReadRow;
use serde_json::{Value, json};

use crate::commands::dropped::Again;
use crate::printing::date;

/// When the kept document of a group came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Origin {
    /// On this day, in days since 1970.
    Day(i32),
    /// In the batch of this file, which has no day.
    File(usize),
}

impl Origin {
    /// That of a kept document of this day, if it has one, or else of the batch of this file.
    fn of(day: Option<i32>, file: usize) -> Self {
        day.map_or(Self::File(file), Self::Day)
    }

    /// Whether it is a day, and none of the `batch_days` is it.
    fn is_other_day(self, batch_days: &[Option<Self>]) -> bool {
        matches!(self, Self::Day(_)) && !batch_days.contains(&Some(self))
    }
}

/// What is known about a group with duplicates.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    duplicates: u64,
    /// Whether one of the files has its kept document.
    has_kept: bool,
}

/// Groups that have duplicates, by the id of the kept document.
type Duplicates = HashMap<Box<str>, Known>;

/// The decisions of one file.
#[derive(Debug, Default)]
pub(super) struct Day {
    documents: u64,
    kept: u64,
    /// Duplicates within the batch.
    within: u64,
    /// Duplicates of nothing that is kept now.
    orphans: u64,
    /// The duplicates, by the day of the kept document; `None` if it has no day.
    duplicates: HashMap<Option<i32>, Duplicates>,
}

impl Day {
    pub(super) fn add(&mut self, row: &ReadRow<'_>) {
        self.documents += 1;
        match row.pair {
            None => {
                self.kept += 1;
                // The group has this document and its duplicates in the batch.
                let duplicates = row.group_size.map_or(0, |size| size.max(1) - 1);
                self.within += duplicates.cast_unsigned();
            }
            Some(pair) => {
                let of_day = self.duplicates.entry(pair.base_day).or_default();
                match of_day.get_mut(pair.base_id) {
                    Some(group) => group.duplicates += 1,
                    None => of_day.entry(pair.base_id.into()).or_default().duplicates = 1,
                }
            }
        }
    }

    /// Adds a document that an archive dropped.
    pub(super) fn add_dropped(&mut self, again: &Again) {
        self.documents += 1;
        let Some((id, day)) = &again.of else {
            self.orphans += 1;
            return;
        };
        self.within += u64::from(*day == again.day);
        let of_day = self.duplicates.entry(*day).or_default();
        of_day.entry(id.as_str().into()).or_default().duplicates += 1;
    }

    /// Infers when the batch of the file `number` came in: on the one day whose kept documents have, in these rows, as many
    /// duplicates as there are within the batch. `None` if there is no such day, or several.
    fn batch_day(&self, number: usize) -> Option<Origin> {
        let is_own = |duplicates: &Duplicates| {
            let each = duplicates.values().map(|group| group.duplicates);
            each.sum::<u64>() == self.within
        };
        let mut own = self
            .duplicates
            .iter()
            .filter(|(_, duplicates)| is_own(duplicates));
        match (own.next(), own.next()) {
            (Some((day, _)), None) if self.within > 0 => Some(Origin::of(*day, number)),
            _ => None,
        }
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
    /// Whether they are those of an archive.
    pub(super) is_archive: bool,
    /// Duplicates of nothing that the archive keeps now.
    pub(super) orphans: u64,
    pub(super) days: Vec<DayCounts>,
    /// The groups that have duplicates.
    duplicates: BTreeMap<Origin, Duplicates>,
    /// When the batch of each file came in; `None` if its rows do not say it.
    batch_days: Vec<Option<Origin>>,
    /// Kept documents without duplicates.
    singles: u64,
    /// Ids of kept documents from days that none of the files has; computed when a file first
    /// needs them.
    of_other_days: Option<HashSet<Box<str>>>,
}

/// A group that is shown.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) id: &'a str,
    pub(super) origin: Origin,
    pub(super) documents: u64,
}

impl Groups {
    /// The groups of an archive: its days, in days since 1970, with their documents; and what it dropped, by day.
    pub(super) fn of_archive(
        days: impl Iterator<Item = (i32, u64)>,
        mut dropped: HashMap<Option<i32>, Day>,
    ) -> Self {
        let mut groups = Self {
            is_archive: true,
            ..Self::default()
        };
        for (day, documents) in days {
            let of_day = dropped.remove(&Some(day)).unwrap_or_default();
            let kept = documents.saturating_sub(of_day.documents);
            let of_day = Day {
                documents,
                kept,
                ..of_day
            };
            groups.add(date(day), of_day);
        }
        let known = groups.duplicates.values_mut().flat_map(HashMap::values_mut);
        known.for_each(|group| group.has_kept = true);
        let several = groups.of_several().count() as u64;
        groups.singles = groups.sum(|day| day.kept).saturating_sub(several);
        groups
    }

    pub(super) fn add(&mut self, file: String, day: Day) {
        let number = self.days.len();
        self.batch_days.push(day.batch_day(number));
        self.orphans += day.orphans;
        let before = self.days.last().map_or(0, |last| last.largest);
        let mut largest = before.max(day.kept.min(1));
        for (of_day, duplicates) in day.duplicates {
            let origin = Origin::of(of_day, number);
            let known = self.duplicates.entry(origin).or_default();
            for (id, group) in duplicates {
                let sum = known.entry(id).or_default();
                sum.duplicates += group.duplicates;
                largest = largest.max(1 + sum.duplicates);
            }
        }
        self.days.push(DayCounts {
            file,
            documents: day.documents,
            kept: day.kept,
            of_earlier: (day.documents - day.kept).saturating_sub(day.within + day.orphans),
            within: day.within,
            largest,
        });
    }

    /// The second pass over the rows, when the groups of all files are known. Marks the groups
    /// whose kept document is in one of the files, and counts kept documents without duplicates.
    pub(super) fn add_again(&mut self, file: usize, row: &ReadRow<'_>) {
        if row.pair.is_some() {
            return;
        }
        let own = self.batch_days[file];
        let mut has_group = false;
        if own.is_none() && !self.of_other_days().contains(row.id) {
            self.singles += 1;
            return;
        }
        for (origin, groups) in &mut self.duplicates {
            // If the file's day is unknown, it may be any day that no other file has.
            let is_own = match own {
                Some(own) => *origin == own,
                None => origin.is_other_day(&self.batch_days),
            };
            // Of several kept documents with the id, one has the duplicates.
            if is_own
                && let Some(group) = groups.get_mut(row.id)
                && !group.has_kept
            {
                group.has_kept = true;
                has_group = true;
            }
        }
        self.singles += u64::from(!has_group);
    }

    /// The ids of kept documents from days that none of the files has.
    fn of_other_days(&mut self) -> &HashSet<Box<str>> {
        let (duplicates, batch_days) = (&self.duplicates, &self.batch_days);
        self.of_other_days.get_or_insert_with(|| {
            let others = duplicates.iter();
            others
                .filter(|(origin, _)| origin.is_other_day(batch_days))
                .flat_map(|(_, groups)| groups.keys().cloned())
                .collect()
        })
    }

    /// The number of groups whose kept document is in none of the files: it came in before them or,
    /// in an archive without decisions, was itself dropped.
    pub(super) fn without_kept(&self) -> u64 {
        let groups = self.duplicates.values().flat_map(HashMap::values);
        groups.filter(|group| !group.has_kept).count() as u64
    }

    /// Groups that have duplicates: when the kept document came in, its id, and the duplicates.
    fn of_several(&self) -> impl Iterator<Item = (Origin, &str, u64)> {
        self.duplicates.iter().flat_map(|(origin, groups)| {
            groups
                .iter()
                .map(|(id, group)| (*origin, &**id, group.duplicates))
        })
    }

    /// A count of all days together.
    pub(super) fn sum(&self, count: impl Fn(&DayCounts) -> u64) -> u64 {
        self.days.iter().map(count).sum()
    }

    /// The number of groups, including those of a single document.
    pub(super) fn count(&self) -> u64 {
        self.singles + self.of_several().count() as u64
    }

    /// How many groups have 1, 2, 3 to 4, 5 to 8 … documents: the largest size of each bin, and its
    /// groups.
    pub(super) fn sizes(&self) -> Vec<(u64, u64)> {
        let mut sizes = vec![(1, self.singles)];
        for (_, _, duplicates) in self.of_several() {
            let bin = (1 + duplicates).next_power_of_two().trailing_zeros() as usize;
            while sizes.len() <= bin {
                sizes.push((1 << sizes.len(), 0));
            }
            sizes[bin].1 += 1;
        }
        sizes
    }

    /// The `most` largest groups, the largest first; of equally large ones, the earlier, then the
    /// one with the smaller id.
    pub(super) fn largest(&self, most: usize) -> Vec<Group<'_>> {
        let mut all: Vec<Group<'_>> = self
            .of_several()
            .map(|(origin, id, duplicates)| Group {
                id,
                origin,
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
        let mut value = json!({
            "documents": self.sum(|day| day.documents),
            "kept": self.sum(|day| day.kept),
            "duplicates_of_earlier": self.sum(|day| day.of_earlier),
            "duplicates_within": self.sum(|day| day.within),
            "groups": self.count(),
            "groups_without_kept": self.without_kept(),
            "sizes": sizes.collect::<Vec<_>>(),
            "largest": largest.collect::<Vec<_>>(),
            "days": days.collect::<Vec<_>>(),
        });
        if self.is_archive {
            value["duplicates_of_nothing_kept"] = self.orphans.into();
        }
        value
    }
}
