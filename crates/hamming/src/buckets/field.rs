//! Bit fields of fingerprints, and sorting by them.

/// Consecutive bits of a fingerprint, cyclically: its highest bit follows its lowest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// How many bits precede the field, counted from the highest.
    pub(crate) before: u32,
    /// Bits of the field, from 1 to 32.
    pub(crate) bits: u32,
}

impl Field {
    /// The field's value in `fingerprint`.
    #[inline(always)]
    pub(crate) fn extract(self, fingerprint: u64) -> u32 {
        (fingerprint.rotate_left(self.before) >> (64 - self.bits)) as u32
    }
}

/// Sorts `values` stably by `field`: calls `put(place, index)` for each value, and sets `starts[v]` to the place of the
/// first one whose field is `v`. `starts` must be zeroed, and have one element more than the field has values.
pub(crate) fn counting_sort(
    field: Field,
    values: &[u64],
    starts: &mut [u32],
    mut put: impl FnMut(usize, usize),
) {
    for &value in values {
        starts[field.extract(value) as usize] += 1;
    }
    // Prefix sums turn each count into the end of a field value's places. Each value that is placed
    // moves the end back by one, until it is the start.
    let mut end = 0;
    for start in &mut *starts {
        end += *start;
        *start = end;
    }
    for (index, &value) in values.iter().enumerate().rev() {
        let place = &mut starts[field.extract(value) as usize];
        *place -= 1;
        put(*place as usize, index);
    }
}
