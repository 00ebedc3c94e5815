//! Known answers: the brute-force oracle, and generated days and archives with the hits they must give.
//!
//! Nothing here uses the join it is there to check. Two kinds of data are generated, both fixed by a seed:
//! [`pages`], texts with planted near-copies of the kinds that crawls meet, and [`codewords`], bare
//! fingerprints at any scale whose only near pairs are the planted ones.

pub mod codewords;
pub mod oracle;
pub mod pages;
pub mod proxy;
