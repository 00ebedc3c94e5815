//! Chooses the segments to merge: those of one tier, which are of like size.

use std::collections::BTreeMap;

use crate::manifest::SegmentEntry;

/// How many segments of a tier, at least, are merged into one. A tier's segments are up to this many times as large as
/// those of the tier before.
const FAN: usize = 4;
/// The first tier's segments have fewer than `FAN` times as many rows.
const SMALL: u64 = 1 << 16;
/// The most parts of a segment: a row has the number of its part in two bytes.
const MAX_PARTS: usize = u16::MAX as usize;
/// The most rows of a merged segment. Segments of a quarter of it or more are merged only with `all`.
const MAX_ROWS: u64 = 3 << 30;

/// Names of the segments to merge next; `None` if nothing is to be merged. With `all`, as many as fit into one.
pub(super) fn next_merge(segments: &[SegmentEntry], all: bool) -> Option<Vec<String>> {
    let sizes: Vec<Size<'_>> = segments
        .iter()
        .map(|entry| {
            let name = entry.name.as_str();
            (name, entry.facts.rows, entry.facts.parts.len())
        })
        .collect();
    chosen(&sizes, all)
}

/// A segment's name, rows and number of parts.
type Size<'a> = (&'a str, u64, usize);

fn chosen(sizes: &[Size<'_>], all: bool) -> Option<Vec<String>> {
    let mut tiers: BTreeMap<u32, Vec<Size<'_>>> = BTreeMap::new();
    for &(name, rows, parts) in sizes
        .iter()
        .filter(|(_, rows, _)| *rows < MAX_ROWS / FAN as u64 || all)
    {
        let tier = if all {
            0
        } else {
            (rows.max(SMALL) / SMALL).ilog2() / FAN.ilog2()
        };
        tiers.entry(tier).or_default().push((name, rows, parts));
    }
    let at_least = if all { 2 } else { FAN };
    tiers.into_values().find_map(|mut tier| {
        // The smallest first, so that as many as possible fit.
        tier.sort_by_key(|(name, rows, _)| (*rows, *name));
        let (mut all_rows, mut all_parts) = (0, 0);
        let fitting = tier.iter().take_while(|(_, rows, parts)| {
            all_rows += rows;
            all_parts += parts;
            all_rows <= MAX_ROWS && all_parts <= MAX_PARTS
        });
        let names: Vec<String> = fitting.map(|(name, ..)| (*name).to_owned()).collect();
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
                    .map(|(name, rows)| (name.as_str(), *rows, 1))
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
        let sizes = [
            ("a", 5, 1),
            ("b", 1 << 31, 1),
            ("c", 1 << 31, 1),
            ("d", 7, 1),
        ];
        assert_eq!(chosen(&sizes, true).unwrap(), ["a", "d", "b"]);
        assert_eq!(chosen(&sizes[..1], true), None);
        assert_eq!(chosen(&sizes, false), None);
        assert_eq!(chosen(&[("b", 1 << 31, 1), ("c", 1 << 31, 1)], true), None);
        let parts = [("a", 5, 40_000), ("b", 6, 25_000), ("c", 7, 600)];
        assert_eq!(chosen(&parts, true).unwrap(), ["a", "b"]);
    }
}
