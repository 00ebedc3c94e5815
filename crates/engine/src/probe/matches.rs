//! Matches of work items on their way from the probe to those who look up their ids.

use std::collections::VecDeque;

use archive::Step;
use datafusion::common::internal_err;
use datafusion::error::Result;
use hamming::Match;
use tokio::sync::{mpsc, oneshot};

/// Matches that are handed on before the item is done: many have equal fingerprints on either side.
const MATCHES: usize = 1 << 18;

/// Where the matches of one item go.
#[derive(Debug)]
pub(super) struct Sink {
    matches: mpsc::Sender<Vec<Match>>,
    done: oneshot::Sender<()>,
}

/// Tells whether an item has been probed to its end.
#[derive(Debug)]
pub(super) struct Done(oneshot::Receiver<()>);

/// A way for the matches of one item.
pub(super) fn way() -> (Sink, mpsc::Receiver<Vec<Match>>, Done) {
    let (matches, receiver) = mpsc::channel(1);
    let (done, is_done) = oneshot::channel();
    (Sink { matches, done }, receiver, Done(is_done))
}

impl Sink {
    /// Says that there are no more.
    pub(super) fn done(self) {
        // Nobody may be there to hear it.
        let _ = self.done.send(());
    }

    /// Sends `matches` if there are at least so many; false when nobody wants them any more.
    fn hand_on(&self, matches: &mut Vec<Match>, least: usize) -> bool {
        if matches.len() < least {
            return !self.matches.is_closed();
        }
        let sent = self.matches.blocking_send(std::mem::take(matches));
        sent.is_ok()
    }
}

impl Done {
    /// To be asked when no more matches come.
    ///
    /// # Errors
    /// When the item was given up before its end: it must not count as answered.
    pub(super) async fn check(self) -> Result<()> {
        match self.0.await {
            Ok(()) => Ok(()),
            Err(_) => internal_err!("a work item was not probed to its end"),
        }
    }
}

/// Sends what `probe` finds of so many fingerprints, each with the row that `row` tells of its index; `probe` adds the matches
/// of some from an index on, and gives how many these were. False when nobody wants them any more.
pub(super) fn send_all(
    sink: &Sink,
    found: &mut Vec<Match>,
    fingerprints: usize,
    mut probe: impl FnMut(usize, &mut Vec<Match>) -> usize,
    row: impl Fn(u32) -> u32,
) -> bool {
    let mut done = 0;
    while done < fingerprints {
        let before = found.len();
        done += probe(done, found);
        for found in &mut found[before..] {
            found.query = row(found.query);
        }
        if !sink.hand_on(found, MATCHES) {
            return false;
        }
    }
    true
}

/// Sends the rest, and says that it is all.
pub(super) fn finish(sink: Sink, mut found: Vec<Match>) {
    if sink.hand_on(&mut found, 1) {
        sink.done();
    }
}

/// Fingerprints gathered from several items, for tables that are better probed with many at once.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    values: Vec<u64>,
    /// The row of each in its row group.
    rows: Vec<u32>,
    /// Of each item the index of its first value, and where its matches go; in the order of the values.
    items: VecDeque<(usize, Sink)>,
}

impl Gathered {
    /// Begins an item.
    pub(super) fn begin(&mut self, sink: Sink) {
        self.items.push_back((self.values.len(), sink));
    }

    /// Adds a step of the item that was begun last.
    pub(super) fn add(&mut self, step: &Step) {
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

    /// Sends what `probe` finds: it adds the matches of some of the values from an index on, in their order, and gives how many
    /// these were. Then there are no values, and of the items only the last. False when nobody wants the matches any more.
    pub(super) fn probe(
        &mut self,
        mut probe: impl FnMut(&[u64], usize, &mut Vec<Match>) -> usize,
    ) -> bool {
        let (mut matches, mut found) = (Vec::new(), Vec::new());
        let mut done = 0;
        while done < self.values.len() {
            done += probe(&self.values, done, &mut found);
            for hit in found.drain(..) {
                // Those before are at their end. Nobody may wait for his turn for the sake of a sink that is not used any more.
                let begun = |items: &VecDeque<(usize, Sink)>| {
                    items
                        .get(1)
                        .is_some_and(|next| next.0 <= hit.query as usize)
                };
                while begun(&self.items) {
                    if !self.end_first(&mut matches) {
                        return false;
                    }
                }
                let query = self.rows[hit.query as usize];
                matches.push(Match { query, ..hit });
            }
            if !self.hand_on(&mut matches, MATCHES) {
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
        self.hand_on(&mut matches, 1)
    }

    fn hand_on(&self, matches: &mut Vec<Match>, least: usize) -> bool {
        let first = self.items.front();
        first.is_none_or(|(_, sink)| sink.hand_on(matches, least))
    }

    /// Sends the rest of the first item's matches.
    fn end_first(&mut self, matches: &mut Vec<Match>) -> bool {
        let wanted = self.hand_on(matches, 1);
        if let Some((_, sink)) = self.items.pop_front()
            && wanted
        {
            sink.done();
        }
        wanted
    }

    /// Ends all items, of which there are no values that have not been probed.
    pub(super) fn end(&mut self) {
        debug_assert!(self.values.is_empty());
        for (_, sink) in self.items.drain(..) {
            sink.done();
        }
    }

    /// Gives up whatever there is.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value that is odd matches the entry of its own number.
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

    /// Gathers these items, `together` at most and so many values; each matches what it should, in order, and is done.
    fn gather(items: &[Vec<u64>], together: usize, chunk: usize, most: usize) {
        let mut gathered = Gathered::default();
        let mut receivers = Vec::new();
        for values in items {
            let (sink, matches, done) = way();
            receivers.push(std::thread::spawn(move || {
                let (mut matches, mut all) = (matches, Vec::new());
                while let Some(some) = matches.blocking_recv() {
                    all.extend(some.iter().map(|found| (found.query, found.entry)));
                }
                (all, done)
            }));
            gathered.begin(sink);
            for (row, value) in values.iter().enumerate() {
                gathered.extend(&[*value], std::iter::once(row as u32));
                if gathered.values() >= chunk {
                    assert!(gathered.probe(odd(most)));
                    assert!(gathered.values() == 0 && gathered.items() == 1);
                }
            }
            if gathered.items() >= together {
                assert!(gathered.probe(odd(most)));
            }
            if gathered.values() == 0 {
                gathered.end();
            }
        }
        assert!(gathered.probe(odd(most)));
        gathered.end();
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
        // Some without hits.
        let items = [items, vec![vec![2, 4], vec![6, 8, 9], vec![10]]].concat();
        for together in [1, 2, 4] {
            for chunk in [1, 4, 8, 1000] {
                for most in [1, 3, 1000] {
                    gather(&items, together, chunk, most);
                }
            }
        }
    }

    #[test]
    fn what_nobody_wants_or_was_given_up_is_not_done() {
        let mut gathered = Gathered::default();
        let (sink, matches, done) = way();
        gathered.begin(sink);
        gathered.extend(&[1, 3], 0..2);
        drop(matches);
        assert!(!gathered.probe(odd(1)));
        gathered.clear();
        assert!(futures::executor::block_on(done.check()).is_err());
        let (sink, _matches, done) = way();
        gathered.begin(sink);
        gathered.extend(&[1, 3], 0..2);
        gathered.clear();
        assert!(futures::executor::block_on(done.check()).is_err());
    }
}
