//! Test data with known answers: a brute-force oracle, generators of a batch and an archive, and a proxy that injects
//! faults.
//!
//! Nothing here uses the join that it checks. A seed fixes all generated data: [`pages`] generates texts with planted
//! near-copies of the kinds that crawls meet; [`codewords`] generates fingerprints without texts, at any scale, whose
//! only pairs are the planted ones.

pub mod codewords;
pub mod oracle;
pub mod pages;
pub mod proxy;
