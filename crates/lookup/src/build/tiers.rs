//! Chooses the segments to merge: those of one tier, which are of like size.

use std::collections::BTreeMap;

use crate::manifest::SegmentEntry;

/// How many segments of a tier, at least, are merged into one. A tier's segments are up to this many times as large as
/// those of the tier before.
const FAN: usize = 4;
/// The first tier's segments have fewer than `FAN` times as many rows.
const SMALL: u64 = 1 << 16;
/// The most rows of a merged segment. Segments of a quarter of it or more are merged only with `all`.
const MAX_ROWS: u64 = 3 << 30;

/// Names of the segments to merge next; `None` if nothing is to be merged. With `all`, as many as fit into one.
pub(super) fn next_merge(segments: &[SegmentEntry], all: bool) -> Option<Vec<String>> {
    let sizes: Vec<(&str, u64)> = segments
        .iter()
        .map(|entry| (entry.name.as_str(), entry.facts.rows))
        .collect();
    chosen(&sizes, all)
}

fn chosen(sizes: &[(&str, u64)], all: bool) -> Option<Vec<String>> {
    let mut tiers: BTreeMap<u32, Vec<(&str, u64)>> = BTreeMap::new();
    for &(name, rows) in sizes
        .iter()
        .filter(|(_, rows)| *rows < MAX_ROWS / FAN as u64 || all)
    {
        let tier = if all {
            0
        } else {
            (rows.max(SMALL) / SMALL).ilog2() / FAN.ilog2()
        };
        tiers.entry(tier).or_default().push((name, rows));
    }
    let at_least = if all { 2 } else { FAN };
    tiers.into_values().find_map(|mut tier| {
        // The smallest first, so that as many as possible fit.
        tier.sort_by_key(|(name, rows)| (*rows, *name));
        let mut sum = 0;
        let fitting = tier.iter().take_while(|(_, rows)| {
            sum += rows;
            sum <= MAX_ROWS
        });
        let names: Vec<String> = fitting.map(|(name, _)| (*name).to_owned()).collect();
        (names.len() >= at_least).then_some(names)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_segments_stay_however_many_days_there_are() {
        let mut segments: Vec<(String, u64)> = Vec::new();
        let mut written = 0;
        for day in 0..1000 {
            segments.push((format!("day {day}"), 1_000_000));
            while let Some(names) = chosen(
                &segments
                    .iter()
                    .map(|(name, rows)| (name.as_str(), *rows))
                    .collect::<Vec<_>>(),
                false,
            ) {
                let rows = segments
                    .iter()
                    .filter(|(name, _)| names.contains(name))
                    .map(|(_, rows)| rows)
                    .sum();
                written += rows;
                segments.retain(|(name, _)| !names.contains(name));
                segments.push((format!("{day} {rows}"), rows));
            }
            assert!(segments.len() <= 15, "{} after {day} days", segments.len());
        }
        assert_eq!(
            segments.iter().map(|(_, rows)| rows).sum::<u64>(),
            1_000_000_000
        );
        assert!(written < 6_000_000_000, "{written} rows written");
    }

    #[test]
    fn all_become_one_if_they_fit() {
        let sizes = [("a", 5), ("b", 1 << 31), ("c", 1 << 31), ("d", 7)];
        assert_eq!(chosen(&sizes, true).unwrap(), ["a", "d", "b"]);
        assert_eq!(chosen(&sizes[..1], true), None);
        assert_eq!(chosen(&sizes, false), None);
        assert_eq!(chosen(&[("b", 1 << 31), ("c", 1 << 31)], true), None);
    }
}
