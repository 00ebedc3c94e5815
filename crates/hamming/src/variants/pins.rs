//! Pins: the entries sorted by the leading bits of their sketches, to find the entries that a survivor's sketch can be of.

use crate::buckets::{Field, counting_sort};
use crate::memory::Array;

/// Most leading bits by which entries are sorted.
const MAX_PIN_BITS: u32 = 20;

/// The leading bits by which `entries` entries are sorted: as many values as entries, or up to twice as many, if allowed.
fn pin_bits(entries: usize) -> u32 {
    (usize::BITS - entries.leading_zeros()).clamp(1, MAX_PIN_BITS)
}

/// The entries, sorted by the leading bits of their sketches.
#[derive(Debug)]
pub(super) struct Pins {
    /// The leading bits.
    pub(super) field: Field,
    /// Entries with bits `b` are from `starts[b]` to `starts[b + 1]`.
    pub(super) starts: Array<u32>,
    /// The entries.
    pub(super) values: Array<u64>,
    /// The index of each in the part of the batch.
    pub(super) indexes: Array<u32>,
}

impl Pins {
    /// Sorts `values` by the leading bits of `sketch`, the field of their sketches.
    pub(super) fn build(values: &[u64], sketch: Field) -> Self {
        let field = Field {
            bits: pin_bits(values.len()).min(sketch.bits),
            ..sketch
        };
        let mut pins = Self {
            field,
            starts: Array::zeroed((1 << field.bits) + 1),
            values: Array::zeroed(values.len()),
            indexes: Array::zeroed(values.len()),
        };
        let (pinned, indexes): (&mut [u64], &mut [u32]) = (&mut pins.values, &mut pins.indexes);
        counting_sort(field, values, &mut pins.starts, |place, index| {
            pinned[place] = values[index];
            indexes[place] = index as u32;
        });
        pins
    }

    /// Bytes for `entries` entries.
    pub(super) fn bytes_for(entries: usize) -> usize {
        12 * entries + 4 * ((1 << pin_bits(entries)) + 1)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.starts.bytes() + self.values.bytes() + self.indexes.bytes()
    }
}
