//! The entries that matter to a region of a sorted archive.
//!
//! Fingerprints that lie close together share their leading p bits. A pair within k differs in at most k of those,
//! so only V(p, k)/2ᵖ of the batch can be near any of them (for p = 13 and k = 3, one in 22). Their lines are a
//! few hundred kilobytes, where those of the whole batch are megabytes. They are worth making when the archive is so
//! dense that many fingerprints share the bits.

use super::Layout;
use super::lines::Lines;
use crate::cost::ball;
use crate::tables::{Table, push_flips};

/// Making the lines, in nanoseconds for each entry and each kilobyte.
const ENTRY_NS: f64 = 9.0;
const KILOBYTE_NS: f64 = 50.0;
/// Scanning with lines in the second-level cache and beyond it, in nanoseconds for each fingerprint.
const NEAR_NS: f64 = 4.0;
const FAR_NS: f64 = 8.0;
/// Bytes of lines that stay in the second-level cache.
const NEAR_BYTES: usize = 400 << 10;
/// Leading bits that are tried.
const BITS: std::ops::RangeInclusive<u32> = 6..=16;

/// Lines of the trailing halves of the entries of one region.
#[derive(Debug, Default)]
pub(crate) struct Region {
    made: Option<Made>,
}

#[derive(Debug)]
struct Made {
    /// Which tables' entries they are.
    tables: u64,
    bits: u32,
    prefix: u64,
    layout: Layout,
    lines: Lines,
}

/// How many leading bits of the fingerprints in `chunk` make regions that are worth it, if any; `entries` is the
/// size of the batch.
pub(crate) fn worthwhile_bits(chunk: &[u64], entries: usize, max_distance: u32) -> Option<u32> {
    let (first, last) = (*chunk.first()?, *chunk.last()?);
    // Not in order: nothing can be said.
    let span = last.checked_sub(first)?.max(1) as f64;
    let density = chunk.len() as f64 / span;
    let saved = |bits: u32| {
        let fingerprints = density * 2f64.powi(64 - bits.cast_signed());
        let entries = entries as f64 * ball(bits, max_distance) / f64::from(1u32 << bits);
        let bytes = Layout::choose(entries as usize).bytes() / 2;
        let scan = if bytes <= NEAR_BYTES { NEAR_NS } else { FAR_NS };
        let make = ENTRY_NS * entries + KILOBYTE_NS * bytes as f64 / 1024.0;
        FAR_NS - scan - make / fingerprints
    };
    let best = BITS.max_by(|&a, &b| saved(a).total_cmp(&saved(b)))?;
    (saved(best) > 1.0).then_some(best)
}

impl Region {
    /// The lines of the region of `fingerprint`, its `bits` leading bits; `first` is the table of the batch in order.
    pub(crate) fn lines(
        &mut self,
        tables: u64,
        first: &Table,
        bits: u32,
        fingerprint: u64,
        max_distance: u32,
    ) -> &Lines {
        let prefix = fingerprint >> (64 - bits);
        let same = |made: &Made| (made.tables, made.bits, made.prefix) == (tables, bits, prefix);
        let made = match self.made.take() {
            Some(made) if same(&made) => made,
            before => {
                let mut flips = Vec::new();
                push_flips(bits, max_distance, 0, &mut flips);
                let ranges = || {
                    flips
                        .iter()
                        .map(|&flip| first.entries_under(prefix ^ u64::from(flip), bits))
                };
                let entries = ranges().map(|range| range.len()).sum();
                let layout = match Layout::choose(entries) {
                    layout @ Layout::Lines { .. } => layout,
                    Layout::Bitmap => Layout::LARGEST,
                };
                let mut lines = match before {
                    Some(made) if made.layout == layout => made.lines,
                    _ => layout.lines(),
                };
                lines.fill(ranges().flatten().map(|&entry| entry as u32));
                Made {
                    tables,
                    bits,
                    prefix,
                    layout,
                    lines,
                }
            }
        };
        &self.made.insert(made).lines
    }
}
