//! The exact join of two sets of 64-bit fingerprints within a Hamming distance.
//!
//! The new batch is small and held in [`Tables`]; the archive is huge and streamed past them in chunks,
//! the batch query of Manku, Jain and Das Sarma (WWW 2007, section 3.2). A [`Design`] cuts the 64 bits
//! into blocks with radii so that, by the generalised pigeonhole principle, every pair within `k` bits
//! agrees within the radius on at least one block; [`Plan`] chooses the design by a cost model; a
//! [`Kernel`] compares a fingerprint with the candidates of a bucket, by the widest instructions that the
//! machine has.
//!
//! ```
//! use hamming::{Distinct, Kernel, Limits, Plan, Scratch, Tables};
//! let batch = Distinct::new(&[0b0000, 0b1111, 1 << 63]);
//! let plan = Plan::choose(batch.values().len(), 3, &Limits::default()).unwrap();
//! let tables = Tables::of(batch, plan.design);
//! let mut matches = Vec::new();
//! tables.probe(Kernel::detect(), &[0b0001, u64::MAX], &mut Scratch::default(), &mut matches);
//! let found: Vec<_> = matches.iter().map(|m| (m.query, tables.batch().values()[m.entry as usize], m.distance)).collect();
//! assert_eq!(found, [(0, 0, 1), (0, 0b1111, 3), (0, 1 << 63, 2)]);
//! ```

pub mod cost;
pub mod design;
mod distinct;
pub mod kernels;
mod memory;
mod permutation;
mod probe;
mod scan;
mod sketches;
mod tables;

pub use cost::{Limits, Plan, PlanError};
pub use design::{Design, DesignError};
pub use distinct::Distinct;
pub use kernels::Kernel;
pub use probe::{Match, Scratch};
pub use tables::Tables;

/// The largest distance that a join supports.
pub const MAX_DISTANCE: u32 = 16;
