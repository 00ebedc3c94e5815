//! Cuts work items into slices of decreasing size (guided self-scheduling, Polychronopoulos and Kuck, 1987): the slices
//! are few, and still all slots finish at about the same time.
//!
//! Ballista does not cut work: it hands out the partitions that a plan has, whatever their sizes.

/// A slice gets `1 / (slots * SLICES_PER_SLOT)` of the remaining weight.
const SLICES_PER_SLOT: u64 = 3;
/// No weight is less than the first divided by this, except the last, which is the remainder.
const SHRINK: u64 = 3;
/// Smallest weight of a slice, in bytes: some tens of milliseconds of work, so that handing it out costs little.
const MIN_WEIGHT: u64 = 4 << 20;
/// Largest weight of a slice, in bytes: seconds of work.
const MAX_WEIGHT: u64 = 256 << 20;

/// Iterator over the weights of slices, for work that can be cut anywhere.
pub(crate) struct Weights {
    left: u64,
    min_weight: u64,
    slots: u64,
}

impl Weights {
    /// Creates the weights of slices for work of weight `total` on `slots` slots.
    pub(crate) fn new(total: u64, slots: usize) -> Self {
        let slots = slots.max(1) as u64;
        let share = total / (slots * SLICES_PER_SLOT);
        // Little work is still divided among all slots.
        let min_weight = (share.min(MAX_WEIGHT) / SHRINK)
            .max(MIN_WEIGHT)
            .min(total.div_ceil(slots));
        Self {
            left: total,
            min_weight: min_weight.max(1),
            slots,
        }
    }

    /// Returns the weight of the next slice when `left` remains.
    fn next_weight(&self, left: u64) -> u64 {
        (left / (self.slots * SLICES_PER_SLOT))
            .min(MAX_WEIGHT)
            .max(self.min_weight)
    }
}

impl Iterator for Weights {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let next = self.next_weight(self.left).min(self.left);
        self.left -= next;
        (next > 0).then_some(next)
    }
}

/// Cuts items, in their order, into slices for `slots` slots. Items of different groups are never in one slice.
pub(crate) fn cut<T, G: PartialEq>(
    items: Vec<T>,
    slots: usize,
    weight: impl Fn(&T) -> u64,
    group: impl Fn(&T) -> G,
) -> Vec<Vec<T>> {
    let weight = |item: &T| weight(item).max(1);
    let mut left = items.iter().map(weight).sum();
    let weights = Weights::new(left, slots);
    let mut slices: Vec<Vec<T>> = Vec::new();
    let mut room = 0;
    for item in items {
        let item_weight = weight(&item);
        match slices.last_mut() {
            Some(slice)
                if item_weight <= room
                    && slice.last().is_some_and(|last| group(last) == group(&item)) =>
            {
                room -= item_weight;
                slice.push(item);
            }
            _ => {
                room = weights.next_weight(left).saturating_sub(item_weight);
                slices.push(vec![item]);
            }
        }
        left -= item_weight;
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(items: &[u64], slots: usize) -> Vec<Vec<u64>> {
        cut(items.to_vec(), slots, |item| *item, |_| ())
    }

    #[test]
    fn every_item_is_in_one_slice() {
        let mib = 1 << 20;
        for (count, weight) in [
            (0, 1),
            (1, 5 * mib),
            (100, 5 * mib),
            (8000, 5 * mib),
            (10_000, 0),
        ] {
            for slots in [1, 2, 50, 5000] {
                let items: Vec<u64> = vec![weight; count];
                let slices = weights(&items, slots);
                assert_eq!(slices.concat(), items);
                assert_eq!(
                    Weights::new(count as u64 * weight, slots).sum::<u64>(),
                    count as u64 * weight
                );
                assert!(slices.iter().all(|slice| !slice.is_empty()));
                assert!(
                    slices
                        .iter()
                        .all(|slice| slice.len() == 1 || slice.iter().sum::<u64>() <= MAX_WEIGHT)
                );
            }
        }
    }

    #[test]
    fn slots_share_evenly() {
        let items = vec![5 << 20; 8000];
        let slices = weights(&items, 50);
        let sums: Vec<u64> = slices.iter().map(|slice| slice.iter().sum()).collect();
        let share = (5 << 20) * 8000 / 50;
        assert!(sums[0] <= share / 3 && sums[0] > share / 4, "{}", sums[0]);
        assert!(sums.is_sorted_by(|one, next| one >= next));
        // The last slices are small, so no slot waits long for another.
        assert!(sums[sums.len() - 50] <= share / 9, "{sums:?}");
        assert!(sums.len() < 50 * 12, "{}", sums.len());
        let items = vec![1 << 20; 4];
        assert_eq!(weights(&items, 2).len(), 2);
        // One item outweighs all the others together.
        let slices = weights(&[1 << 30, 1 << 20, 1 << 20], 2);
        assert_eq!(slices[0].len(), 1);
    }

    #[test]
    fn groups_stay_apart() {
        let items: Vec<(u32, u64)> = (0..10).map(|at| (at / 5, 1)).collect();
        let slices = cut(items, 1, |item| item.1, |item| item.0);
        assert_eq!(slices.len(), 2);
    }
}
