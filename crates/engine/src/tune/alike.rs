//! All pairs of sets with a large Jaccard similarity, exactly (Bayardo, Ma and Srikant, "Scaling Up All Pairs Similarity
//! Search", WWW 2007).
//!
//! A set of n elements whose similarity to another is at least t shares at least ⌈tn⌉ elements with it. So if both are
//! sorted by one order, their prefixes of n − ⌈tn⌉ + 1 elements share an element. Only prefixes are indexed; the rarest
//! elements come first, to keep the lists of the index short.

use std::collections::HashMap;

use simhash::similarity::jaccard;

/// Calls `each(a, b, similarity)` for all sets a < b whose similarity is at least `least`, which must be above 0. The
/// elements of a set must be ascending and distinct. Empty sets are similar to nothing.
pub(super) fn pairs(sets: &[Vec<u64>], least: f64, mut each: impl FnMut(u32, u32, f64)) {
    // Copies of a set need not be compared.
    let mut first = HashMap::<&[u64], u32>::new();
    let copy_of = (0..).zip(sets);
    let copy_of = copy_of.map(|(at, set)| *first.entry(set).or_insert(at));
    let copy_of: Vec<u32> = copy_of.collect();
    let mut frequencies = HashMap::<u64, u32>::new();
    for element in sets.iter().flatten() {
        *frequencies.entry(*element).or_default() += 1;
    }
    // For each element, the earlier sets that have it in their prefix.
    let mut index = HashMap::<u64, Vec<u32>>::new();
    let mut seen = vec![u32::MAX; sets.len()];
    let mut rarest = Vec::new();
    for (a, set) in sets.iter().enumerate() {
        // Rounding must not make the prefix shorter.
        let shared = (least * set.len() as f64 - 1e-9).ceil() as usize;
        let prefix = (set.len() - shared.min(set.len()) + 1).min(set.len());
        rarest.clear();
        rarest.extend(set.iter().map(|element| (frequencies[element], *element)));
        rarest.sort_unstable();
        for &(frequency, element) in &rarest[..prefix] {
            if frequency == 1 {
                continue;
            }
            let others = index.entry(element).or_default();
            for &b in others.iter() {
                if std::mem::replace(&mut seen[b as usize], a as u32) == a as u32 {
                    continue;
                }
                let similarity = if copy_of[a] == copy_of[b as usize] {
                    1.0
                } else {
                    jaccard(set, &sets[b as usize], least)
                };
                if similarity >= least {
                    each(b, a as u32, similarity);
                }
            }
            others.push(a as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pairs_equal_brute_force(
            sets in proptest::collection::vec(proptest::collection::btree_set(0u64..12, 0..9), 0..25),
            least in prop_oneof![Just(0.5), Just(0.8), Just(1.0), 0.05f64..1.0],
        ) {
            let mut expected = Vec::new();
            for (b, y) in sets.iter().enumerate() {
                for (a, x) in sets[..b].iter().enumerate() {
                    let union = x.union(y).count();
                    let similarity = x.intersection(y).count() as f64 / union.max(1) as f64;
                    if similarity >= least {
                        expected.push((a as u32, b as u32, similarity));
                    }
                }
            }
            let lists: Vec<Vec<u64>> = sets.iter().map(|set: &BTreeSet<u64>| set.iter().copied().collect()).collect();
            let mut found = Vec::new();
            pairs(&lists, least, |a, b, similarity| found.push((a, b, similarity)));
            found.sort_by_key(|&(a, b, _)| (b, a));
            prop_assert_eq!(found, expected);
        }
    }
}
