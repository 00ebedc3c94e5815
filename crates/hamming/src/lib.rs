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
//! # All pairs of two sets
//!
//! ```
//! use hamming::{Distinct, Kernel, Limits, Plan, Scratch, Tables};
//!
//! let batch = Distinct::new(&[0b0000, 0b1111, 1 << 63]);
//! let plan = Plan::choose(batch.values().len(), 3, &Limits::default())?;
//! let tables = Tables::new(batch, plan.design);
//! let mut matches = Vec::new();
//! tables.probe(Kernel::detect(), &[0b0001, u64::MAX], &mut Scratch::default(), &mut matches);
//! let found: Vec<_> = matches.iter().map(|m| (m.query, tables.batch().values()[m.entry as usize], m.distance)).collect();
//! assert_eq!(found, [(0, 0, 1), (0, 0b1111, 3), (0, 1 << 63, 2)]);
//! # Ok::<(), hamming::PlanError>(())
//! ```
//!
//! # Many chunks, many threads
//!
//! Threads share the tables; each has a [`Scratch`], and probes chunks of [`Tables::chunk_len`] fingerprints. A chunk with
//! a huge number of matches is probed in pieces by [`Tables::probe_piece`], so that the matches between two calls fit into
//! memory:
//!
//! ```
//! use hamming::{Design, Distinct, Kernel, Scratch, Tables};
//!
//! let tables = Tables::new(Distinct::new(&[1, 2, 3, 1 << 40]), Design::named("halves", 3)?);
//! let archive: Vec<u64> = (0..100_000).collect();
//! let (mut scratch, mut matches, mut pairs) = (Scratch::default(), Vec::new(), 0);
//! for chunk in archive.chunks(tables.chunk_len()) {
//!     let mut done = 0;
//!     while done < chunk.len() {
//!         done += tables.probe_piece(Kernel::detect(), chunk, done, &mut scratch, &mut matches);
//!         // Here the matches would go into a file or a channel.
//!         pairs += matches.drain(..).len();
//!     }
//! }
//! let near = |x: &u64| tables.batch().values().iter().filter(|y| (x ^ *y).count_ones() <= 3).count();
//! assert_eq!(pairs, archive.iter().map(near).sum::<usize>());
//! # Ok::<(), hamming::DesignError>(())
//! ```
//!
//! # A set with itself
//!
//! ```
//! use hamming::{Design, Distinct, Kernel, Scratch, Tables};
//!
//! let tables = Tables::new(Distinct::new(&[0b0000, 0b0001, u64::MAX]), Design::named("halves", 3)?);
//! let all = 0..tables.batch().values().len();
//! let (mut scratch, mut matches, mut done) = (Scratch::default(), Vec::new(), 0);
//! while done < all.len() {
//!     done += tables.probe_self(Kernel::detect(), all.clone(), done, &mut scratch, &mut matches);
//! }
//! // Each pair comes twice, and each fingerprint once with itself.
//! let pairs: Vec<_> = matches.iter().filter(|m| m.query < m.entry).map(|m| (m.query, m.entry, m.distance)).collect();
//! assert_eq!(pairs, [(0, 1, 1)]);
//! # Ok::<(), hamming::DesignError>(())
//! ```
//!
//! # Planning the tables
//!
//! [`Plan::alternatives`] predicts memory and time of every design that fits, the cheapest first. If the
//! tables of the whole batch do not fit into the memory, a plan cuts the batch into parts, and the archive is read once for
//! each part:
//!
//! ```
//! use hamming::{Limits, Plan};
//!
//! let limits = Limits { memory: 1 << 30, queries: 1_000_000_000, ..Limits::default() };
//! for plan in Plan::alternatives(1_000_000, 3, &limits)? {
//!     println!("{:<10} {:>4} MiB {:>8.1} ns", plan.design.name(), plan.bytes >> 20, plan.probe_ns);
//! }
//! let million = Plan::choose(1_000_000, 3, &limits)?;
//! assert_eq!((million.design.name().as_str(), million.parts), ("halves", 1));
//! let hundred_million = Plan::choose(100_000_000, 3, &limits)?;
//! assert!(hundred_million.parts > 1 && hundred_million.bytes <= limits.memory);
//! # Ok::<(), hamming::PlanError>(())
//! ```

#![deny(missing_docs)]

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
mod limits;
mod matches;
mod parallel;
mod permutation;
pub mod prefetch;
mod related;
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
pub use limits::Limits;
pub use matches::Match;
pub use plan::{Plan, PlanError};
pub use probe::Scratch;
pub use related::Related;
pub use tables::Tables;

// The examples of the README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
