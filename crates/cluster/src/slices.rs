//! Dealing out work: items to slices, of about the same weight.

/// Slices for each slot, so that the slots end together and losing a slice costs little.
const SLICES_PER_SLOT: u64 = 6;
/// Weight of a slice at least: what a slot does in a tenth of a second, beside which handing it out is little.
const LEAST: u64 = 16 << 20;
/// And at most: seconds of work.
const MOST: u64 = 256 << 20;

/// The weight of a slice, of work that weighs `total`.
pub(crate) fn wanted(total: u64, slots: usize) -> u64 {
    let slots = slots.max(1) as u64;
    let wanted = (total / (slots * SLICES_PER_SLOT)).clamp(LEAST, MOST);
    // Where there is little, all slots get some of it.
    wanted.min(total.div_ceil(slots)).max(1)
}

/// Cuts items, in their order, into slices for so many slots. Items whose `group` differs are never in one slice.
pub(crate) fn cut<T, G: PartialEq>(
    items: Vec<T>,
    slots: usize,
    weight: impl Fn(&T) -> u64,
    group: impl Fn(&T) -> G,
) -> Vec<Vec<T>> {
    let wanted = wanted(items.iter().map(&weight).sum(), slots);
    let mut slices: Vec<Vec<T>> = Vec::new();
    let mut room = 0;
    for item in items {
        let fits = weight(&item).max(1) <= room;
        match slices.last_mut() {
            Some(slice) if fits && slice.last().is_some_and(|last| group(last) == group(&item)) => {
                room -= weight(&item).max(1);
                slice.push(item);
            }
            _ => {
                room = wanted.saturating_sub(weight(&item).max(1));
                slices.push(vec![item]);
            }
        }
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
                assert!(slices.iter().all(|slice| !slice.is_empty()));
                assert!(
                    slices
                        .iter()
                        .all(|slice| slice.len() == 1 || slice.iter().sum::<u64>() <= MOST)
                );
            }
        }
    }

    #[test]
    fn slots_share_evenly() {
        let items = vec![5 << 20; 8000];
        let slices = weights(&items, 50);
        assert!(slices.len() >= 50 * 6, "{}", slices.len());
        let items = vec![1 << 20; 4];
        assert_eq!(weights(&items, 2).len(), 2);
        // One of them is larger than all the others together.
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
