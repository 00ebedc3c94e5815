//! Text to 64-bit simhash fingerprints.
//!
//! The way of a text through this crate is the order of its modules: [`normalize`] folds it,
//! [`tokenize`] cuts it into features, [`hash`] maps each feature to 64 bits, [`weigh`] says how much
//! each counts, [`accumulate`] sums the weighted bits and takes their signs (Charikar's simhash, as in
//! Manku, Jain and Das Sarma, WWW 2007, section 2). [`Spec`] names every choice on the way, because
//! fingerprints made under different choices must never be compared; [`Fingerprinter`] runs it.
//!
//! ```
//! use simhash::{Fingerprinter, Spec};
//! let mut fingerprinter = Fingerprinter::new(Spec::default());
//! let a = fingerprinter.fingerprint("The quick brown fox jumps over the lazy dog");
//! let b = fingerprinter.fingerprint("the QUICK brown fox, jumps over the lazy dog!");
//! assert_eq!(a, b);
//! assert_eq!(fingerprinter.fingerprint("404"), None); // too few features
//! ```

pub mod accumulate;
mod fingerprinter;
pub mod hash;
pub mod normalize;
pub mod spec;
pub mod tokenize;
pub mod weigh;

pub use fingerprinter::Fingerprinter;
pub use spec::{Difference, Spec, SpecError};
pub use weigh::Weight;
