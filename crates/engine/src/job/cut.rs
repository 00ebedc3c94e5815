//! Cuts the items of a map into parts of about equal cost.

/// Core seconds of a part: a minute of two cores.
pub(super) const PART_SECONDS: f64 = 120.0;
/// The most parts of a map.
const MAX_PARTS: usize = 10_000;

/// Cuts items with their costs, in core seconds, into `parts` parts; into parts of about a minute if that is `None`. Each part
/// has consecutive items, at least one.
pub(super) fn cut<T>(items: Vec<(T, f64)>, parts: Option<u64>) -> Vec<Vec<T>> {
    let total: f64 = items.iter().map(|(_, cost)| cost.max(0.0)).sum();
    let parts = parts_of(total, parts).min(items.len().max(1));
    let count = items.len();
    let mut cut: Vec<Vec<T>> = Vec::with_capacity(parts);
    let mut before = 0.0;
    for (at, (item, cost)) in items.into_iter().enumerate() {
        // A new part begins when the cost so far reaches its share, or when each item left needs a part of its own.
        let wanted = if total > 0.0 {
            (before / total * parts as f64) as usize
        } else {
            at * parts / count
        };
        let needed = parts - (count - at).min(parts);
        let number = wanted.max(needed).min(cut.len()).min(parts - 1);
        if number == cut.len() {
            cut.push(Vec::new());
        }
        let last = cut.len() - 1;
        cut[last].push(item);
        before += cost.max(0.0);
    }
    cut
}

/// The number of parts of a map that takes this many core seconds; `asked` if that is not `None`.
pub(super) fn parts_of(core_seconds: f64, asked: Option<u64>) -> usize {
    let parts = match asked {
        Some(parts) => usize::try_from(parts).unwrap_or(usize::MAX),
        None => (core_seconds / PART_SECONDS).ceil() as usize,
    };
    parts.clamp(1, MAX_PARTS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_item_is_in_one_part(costs in proptest::collection::vec(0.0..9.0_f64, 0..60), parts in 1_u64..20) {
            let items = costs.iter().copied().enumerate().collect();
            let cut = cut(items, Some(parts));
            prop_assert!(cut.iter().all(|part| !part.is_empty()));
            prop_assert_eq!(cut.len(), (parts as usize).min(costs.len()));
            prop_assert_eq!(cut.concat(), (0..costs.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn parts_take_about_a_minute_and_cost_the_same() {
        let items: Vec<(usize, f64)> = (0..1000).map(|at| (at, 6.0)).collect();
        let parts = cut(items, None);
        assert_eq!(parts.len(), 50);
        assert!(parts.iter().all(|part| (19..=21).contains(&part.len())));
        assert_eq!(cut(vec![((), 0.0); 9], Some(3)).len(), 3);
        assert_eq!(cut::<()>(Vec::new(), Some(3)).len(), 0);
    }
}
