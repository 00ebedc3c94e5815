//! [`Limits`]: what a plan is chosen for.

use crate::related::Related;

/// What a plan is chosen for: the memory of its tables, and the number of fingerprints to probe.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes that the tables may take.
    pub memory: usize,
    /// How many fingerprints will be probed: the more there are, the larger are the tables worth building.
    pub queries: u64,
    /// How many of them follow in ascending order, on average, as in a sorted file; 1 if nothing is known.
    pub sorted_run: u64,
    /// How many threads will probe the tables at a time.
    pub threads: usize,
    /// A sample of the batch. Without one, its fingerprints are taken for random.
    pub related: Related,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: usize::MAX,
            queries: u64::MAX,
            sorted_run: 1,
            threads: 1,
            related: Related::default(),
        }
    }
}
