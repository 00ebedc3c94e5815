//! Coalesces the fingerprints of several work items: a probe of many at once reads large tables in
//! order, which is faster.

use std::collections::VecDeque;

use archive::DecodedStep;
use hamming::Match;

use super::channel::{MATCHES, Sink};

/// Fingerprints of several items that are probed together.
#[derive(Debug, Default)]
pub(super) struct CoalescedItems {
    values: Vec<u64>,
    /// The row of each in its row group.
    rows: Vec<u32>,
    /// Each item's index of its first value, and its channel; in the order of the values.
    items: VecDeque<(usize, Sink)>,
}

impl CoalescedItems {
    /// Starts an item.
    pub(super) fn begin(&mut self, sink: Sink) {
        self.items.push_back((self.values.len(), sink));
    }

    /// Adds a decoded step of the item that was started last.
    pub(super) fn add(&mut self, step: &DecodedStep) {
        let rows = (0..step.values().len()).map(|index| step.row(index));
        self.extend(step.values(), rows);
    }

    fn extend(&mut self, values: &[u64], rows: impl Iterator<Item = u32>) {
        self.values.extend_from_slice(values);
        self.rows.extend(rows);
    }

    pub(super) fn values(&self) -> usize {
        self.values.len()
    }

    pub(super) fn items(&self) -> usize {
        self.items.len()
    }

    /// Probes the values, and sends each item its matches; false when a receiver is gone.
    ///
    /// `probe(values, from, found)` probes some values from index `from` on, adds their matches to
    /// `found` in the order of the values, and returns how many values it probed. Afterwards no
    /// values are left. The last item stays, so that more values can be added to it.
    pub(super) fn probe(
        &mut self,
        mut probe: impl FnMut(&[u64], usize, &mut Vec<Match>) -> usize,
    ) -> bool {
        let (mut matches, mut found) = (Vec::new(), Vec::new());
        let mut done = 0;
        while done < self.values.len() {
            done += probe(&self.values, done, &mut found);
            for next_match in found.drain(..) {
                // End the items before this match's item now: the emitters wait for them in order.
                let is_next = |items: &VecDeque<(usize, Sink)>| {
                    items
                        .get(1)
                        .is_some_and(|next| next.0 <= next_match.query as usize)
                };
                while is_next(&self.items) {
                    if !self.end_first(&mut matches) {
                        return false;
                    }
                }
                let query = self.rows[next_match.query as usize];
                matches.push(Match {
                    query,
                    ..next_match
                });
            }
            if !self.send(&mut matches, MATCHES) {
                return false;
            }
        }
        while self.items.len() > 1 {
            if !self.end_first(&mut matches) {
                return false;
            }
        }
        self.values.clear();
        self.rows.clear();
        if let Some(last) = self.items.front_mut() {
            last.0 = 0;
        }
        self.send(&mut matches, 1)
    }

    /// Sends `matches` of the first item if there are at least `least`. False when its receiver is gone.
    fn send(&self, matches: &mut Vec<Match>, least: usize) -> bool {
        let first = self.items.front();
        first.is_none_or(|(_, sink)| sink.send(matches, least))
    }

    /// Sends the last matches of the first item, and ends it. False when its receiver is gone.
    fn end_first(&mut self, matches: &mut Vec<Match>) -> bool {
        let is_received = self.send(matches, 1);
        if let Some((_, sink)) = self.items.pop_front()
            && is_received
        {
            sink.done();
        }
        is_received
    }

    /// Marks all items as done; all their values must have been probed.
    pub(super) fn mark_done(&mut self) {
        debug_assert!(self.values.is_empty());
        for (_, sink) in self.items.drain(..) {
            sink.done();
        }
    }

    /// Gives up all items; their channels then say that they were not probed to their end.
    pub(super) fn give_up(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::super::channel::item_channel;
    use super::*;

    /// A probe of at most `most` values, in which every odd value matches the entry of its own number.
    fn odd(most: usize) -> impl FnMut(&[u64], usize, &mut Vec<Match>) -> usize {
        move |values, from, found| {
            let some = values.len().min(from + most);
            found.extend(
                (from..some)
                    .filter(|&at| values[at] % 2 == 1)
                    .map(|at| Match {
                        query: at as u32,
                        entry: values[at] as u32,
                        distance: 0,
                    }),
            );
            some - from
        }
    }

    /// Coalesces at most `together` items or `chunk` values, and checks that each item gets its matches in order, and its end.
    fn coalesce(items: &[Vec<u64>], together: usize, chunk: usize, most: usize) {
        let mut coalesced = CoalescedItems::default();
        let mut receivers = Vec::new();
        for values in items {
            let (sink, matches, done) = item_channel();
            receivers.push(std::thread::spawn(move || {
                let (mut matches, mut all) = (matches, Vec::new());
                while let Some(some) = matches.blocking_recv() {
                    all.extend(some.iter().map(|found| (found.query, found.entry)));
                }
                (all, done)
            }));
            coalesced.begin(sink);
            for (row, value) in values.iter().enumerate() {
                coalesced.extend(&[*value], std::iter::once(row as u32));
                if coalesced.values() >= chunk {
                    assert!(coalesced.probe(odd(most)));
                    assert!(coalesced.values() == 0 && coalesced.items() == 1);
                }
            }
            if coalesced.items() >= together {
                assert!(coalesced.probe(odd(most)));
            }
            if coalesced.values() == 0 {
                coalesced.mark_done();
            }
        }
        assert!(coalesced.probe(odd(most)));
        coalesced.mark_done();
        for (receiver, values) in receivers.into_iter().zip(items) {
            let (found, done) = receiver.join().unwrap();
            let rows = values.iter().enumerate();
            let expected: Vec<(u32, u32)> = rows
                .filter(|(_, value)| *value % 2 == 1)
                .map(|(row, &value)| (row as u32, value as u32))
                .collect();
            assert_eq!(found, expected, "{together} {chunk} {most}");
            futures::executor::block_on(done.check()).unwrap();
        }
    }

    #[test]
    fn every_match_goes_to_its_item() {
        let items: Vec<Vec<u64>> = [5, 0, 0, 7, 1, 16, 3, 0, 8]
            .iter()
            .scan(0, |next, &length| {
                let values = (*next..*next + length).collect();
                *next += length;
                Some(values)
            })
            .collect();
        // Items with few matches or none.
        let items = [items, vec![vec![2, 4], vec![6, 8, 9], vec![10]]].concat();
        for together in [1, 2, 4] {
            for chunk in [1, 4, 8, 1000] {
                for most in [1, 3, 1000] {
                    coalesce(&items, together, chunk, most);
                }
            }
        }
    }

    #[test]
    fn items_without_a_receiver_or_given_up_are_not_done() {
        let mut coalesced = CoalescedItems::default();
        let (sink, matches, done) = item_channel();
        coalesced.begin(sink);
        coalesced.extend(&[1, 3], 0..2);
        drop(matches);
        assert!(!coalesced.probe(odd(1)));
        coalesced.give_up();
        assert!(futures::executor::block_on(done.check()).is_err());
        let (sink, _matches, done) = item_channel();
        coalesced.begin(sink);
        coalesced.extend(&[1, 3], 0..2);
        coalesced.give_up();
        assert!(futures::executor::block_on(done.check()).is_err());
    }
}
