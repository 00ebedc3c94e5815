//! Checksums of the fingerprints of each row group, checked at almost no cost while they are decoded.
//!
//! A delta-encoded value is the sum of all deltas before it, so one flipped bit shifts every later
//! value of the page by the same amount. A plain sum misses a shift of 2²⁰ values by 2⁴⁴, which
//! adds 2⁶⁴. So in each segment of 64 values, the last eight also add the product of their 32-bit
//! halves (the NH hash of UMAC, Black et al. 1999). A shift changes a product by an amount that
//! depends on the value. It lasts until the end of the page, so it reaches the last eight values of
//! the segment in which it begins.

use parquet::file::metadata::KeyValue;

use crate::parquet_properties::ROW_GROUP_ROWS;
use crate::schema::CHECKSUMS_KEY;

/// Keys added to the two halves, so that a half of zeros does not make the product zero.
const LOW_KEY: u32 = 0x9e37_79b9;
const HIGH_KEY: u32 = 0x85eb_ca6b;

/// Rows of a segment. Segments are counted from the start of the row group.
pub(crate) const SEGMENT_ROWS: usize = 64;
/// Rows at the end of each segment that add a product: a multiple of the 64-bit lanes of any
/// processor's vector.
const MULTIPLIED_ROWS: usize = 8;
const _: () = assert!(ROW_GROUP_ROWS.is_multiple_of(SEGMENT_ROWS));

/// The checksum of fingerprints, which must begin where a segment begins: the sum of all values, plus the products of the halves of the
/// last eight values in each whole segment. The checksums of the parts of a row group add up to the row group's.
pub(crate) fn sum_of(fingerprints: &[i64]) -> u64 {
    let plain = fingerprints
        .iter()
        .fold(0u64, |sum, value| sum.wrapping_add(value.cast_unsigned()));
    fingerprints
        .chunks_exact(SEGMENT_ROWS)
        .flat_map(|segment| &segment[SEGMENT_ROWS - MULTIPLIED_ROWS..])
        .fold(plain, |sum, value| sum.wrapping_add(product(*value)))
}

/// The product of a fingerprint's two halves, each plus its key.
fn product(fingerprint: i64) -> u64 {
    let value = fingerprint.cast_unsigned();
    let low = (value as u32).wrapping_add(LOW_KEY);
    let high = ((value >> 32) as u32).wrapping_add(HIGH_KEY);
    u64::from(low) * u64::from(high)
}

/// Computes the checksums of row groups while they are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RowGroupSummer {
    sums: Vec<u64>,
    rows: usize,
}

impl RowGroupSummer {
    /// Adds the next fingerprints, without nulls.
    ///
    /// # Panics
    /// If the number of fingerprints before them is not a multiple of [`SEGMENT_ROWS`].
    pub(crate) fn update(&mut self, fingerprints: &[i64]) {
        assert!(
            self.rows.is_multiple_of(SEGMENT_ROWS),
            "a part of a segment was summed"
        );
        let mut rest = fingerprints;
        while !rest.is_empty() {
            if self.rows.is_multiple_of(ROW_GROUP_ROWS) {
                self.sums.push(0);
            }
            let room = ROW_GROUP_ROWS - self.rows % ROW_GROUP_ROWS;
            let (now, later) = rest.split_at(rest.len().min(room));
            if let Some(sum) = self.sums.last_mut() {
                *sum = sum.wrapping_add(sum_of(now));
            }
            self.rows += now.len();
            rest = later;
        }
    }

    /// The entry for the footer: `rows:sum` of each row group.
    pub(crate) fn to_metadata(&self) -> KeyValue {
        let rows_from = |group: usize| self.rows - group * ROW_GROUP_ROWS;
        let entries: Vec<String> = self
            .sums
            .iter()
            .enumerate()
            .map(|(group, sum)| format!("{}:{sum:016x}", rows_from(group).min(ROW_GROUP_ROWS)))
            .collect();
        KeyValue::new(CHECKSUMS_KEY.to_owned(), entries.join(","))
    }
}

/// The checksum of each row group, in a footer's key-value entries; `None` unless their row counts are those of `row_groups`: other
/// programs copy entries that they do not know into files that they rewrite.
pub(crate) fn sums_in_footer(
    entries: &[KeyValue],
    mut row_groups: impl Iterator<Item = u64>,
) -> Option<Vec<u64>> {
    let entry = entries.iter().find(|entry| entry.key == CHECKSUMS_KEY)?;
    let parts = entry.value.as_deref()?.split(',');
    let sums = parts.map(|part| {
        let (rows, sum) = part.split_once(':')?;
        (rows.parse().ok() == row_groups.next()).then(|| u64::from_str_radix(sum, 16).ok())?
    });
    let sums: Option<Vec<u64>> = sums.collect();
    sums.filter(|_| row_groups.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(key: &str, text: &str, rows: &[u64]) -> Option<Vec<u64>> {
        let entries = [KeyValue::new(key.to_owned(), text.to_owned())];
        sums_in_footer(&entries, rows.iter().copied())
    }

    #[test]
    fn sums_belong_to_row_groups_of_their_own_size() {
        let mut summer = RowGroupSummer::default();
        summer.update(&[3; SEGMENT_ROWS]);
        summer.update(&vec![3; ROW_GROUP_ROWS - SEGMENT_ROWS + 2]);
        let entry = summer.to_metadata();
        let (key, text) = (entry.key.as_str(), entry.value.unwrap());
        let full = ROW_GROUP_ROWS as u64;
        let found = from(key, &text, &[full, 2]).unwrap();
        assert_eq!(found[0], sum_of(&vec![3; ROW_GROUP_ROWS]));
        assert_eq!(found[1], 6);
        for other in [&[full][..], &[full, 1], &[full, 2, 1], &[full + 2], &[]] {
            assert_eq!(from(key, &text, other), None, "{other:?}");
        }
        assert_eq!(from(key, "0003,x", &[1, 1]), None);
    }

    /// A flipped bit in a page of deltas shifts the values to the page's end.
    #[test]
    fn a_shift_to_the_end_changes_the_sum() {
        let values: Vec<i64> = (0..1 << 20).map(|at: i64| at * 0x9e37_79b9_7f4a).collect();
        let plain = |values: &[i64]| {
            let values = values.iter().map(|value| value.cast_unsigned());
            values.fold(0, u64::wrapping_add)
        };
        for shifted in [1 << 20, 1 << 17, 1 << 10, SEGMENT_ROWS, MULTIPLIED_ROWS, 2] {
            for bit in 0..64 {
                let (before, after) = values.split_at(values.len() - shifted);
                let after = after.iter().map(|value| value.wrapping_add(1 << bit));
                let changed: Vec<i64> = before.iter().copied().chain(after).collect();
                assert_ne!(sum_of(&values), sum_of(&changed), "{shifted}, bit {bit}");
                let missed = bit + shifted.ilog2() >= 64;
                assert_eq!(
                    plain(&values) == plain(&changed),
                    missed,
                    "{shifted}, bit {bit}"
                );
            }
        }
    }
}
