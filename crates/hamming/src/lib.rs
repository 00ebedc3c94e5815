//! The exact join of two sets of 64-bit fingerprints within a Hamming distance.
//!
//! The batch is small and held in [`Tables`]; the archive is huge and streams past them in chunks, as in the batch
//! query of Manku, Jain and Das Sarma (WWW 2007, section 3.2).
//!
//! 1. A [`Design`] cuts the 64 bits into blocks with radii so that, by the generalised pigeonhole principle, every pair
//!    within `k` bits agrees within the radius on at least one block.
//! 2. A [`Plan`] predicts the cost of each design for the batch, and chooses the cheapest.
//! 3. [`Tables`] index the batch by the design's blocks.
//! 4. [`Tables::probe`] looks up a chunk of the archive and reports each pair as a [`Match`]. A [`Kernel`] compares
//!    fingerprints with the widest instructions that the machine has.
//!
//! A *query* is a fingerprint of the chunk, an *entry* a distinct fingerprint of the batch. Both are identified by
//! their index.
//!
//! ```
//! use hamming::{Distinct, Kernel, Limits, Plan, Scratch, Tables};
//! let batch = Distinct::new(&[0b0000, 0b1111, 1 << 63]);
//! let plan = Plan::choose(batch.values().len(), 3, &Limits::default()).unwrap();
//! let tables = Tables::new(batch, plan.design);
//! let mut matches = Vec::new();
//! tables.probe(Kernel::detect(), &[0b0001, u64::MAX], &mut Scratch::default(), &mut matches);
//! let found: Vec<_> = matches.iter().map(|m| (m.query, tables.batch().values()[m.entry as usize], m.distance)).collect();
//! assert_eq!(found, [(0, 0, 1), (0, 0b1111, 3), (0, 1 << 63, 2)]);
//! ```

// Terms of this crate:
//
// block    the bits of a fingerprint that one table indexes; a design has several blocks
// key      the leading bits of a block; each value of the key has a bucket of entries
// tag      16 or 32 bits of an entry beside its key, kept in the bucket: compared before the entry itself
// strip    the cache lines of a bucket that are compared before the first branch
// survivor a candidate whose tag passes
// run      consecutive fingerprints with the same leading bits
// tile     the 32 fingerprints of a chunk that are prefetched and tested together
// region   the part of a table whose keys share their upper bits; filled at once while in the cache

// What the mechanisms build on.
mod ball;
mod cost;
mod design;
mod distinct;
mod huge_array;
mod matches;
mod parallel;
mod permutation;
pub mod prefetch;
mod unchecked;

mod isa;
mod mechanism;

// The mechanisms, and `buckets`, which `halves` and `variants` share.
mod buckets;
mod halves;
mod permuted;
mod variants;

// The planner, the tables and their probe; `any_tables` calls the mechanism of a design for them.
mod any_tables;
mod plan;
mod probe;
mod tables;

pub use design::{Block, Design, DesignError, MAX_DISTANCE};
pub use distinct::{Distinct, EntriesByRow};
pub use huge_array::HugeArray;
pub use isa::Kernel;
pub use matches::Match;
pub use plan::{Limits, Plan, PlanError};
pub use probe::Scratch;
pub use tables::Tables;
