//! Text to 64-bit simhash fingerprints.
//!
//! The way of a text through this crate is the order of its modules: [`normalize`] folds it,
//! [`tokenize`] cuts it into features, [`hash`] maps each feature to 64 bits, [`weigh`] and [`Idf`] say how much
//! each counts, [`accumulate`] sums the weighted bits and takes their signs (Charikar's simhash, as in
//! Manku, Jain and Das Sarma, WWW 2007, section 2). [`Spec`] names every choice on the way, because
//! fingerprints made under different choices must never be compared; a [`Model`] is a spec with the tables that it
//! names, and a [`Fingerprinter`] runs it.
//!
//! ```
//! use simhash::{Fingerprinter, Model, Spec};
//! let mut fingerprinter = Fingerprinter::new(Model::plain(Spec::default())?);
//! let a = fingerprinter.fingerprint("The quick brown fox jumps over the lazy dog");
//! let b = fingerprinter.fingerprint("the QUICK brown fox, jumps over the lazy dog!");
//! assert_eq!(a, b);
//! assert_eq!(fingerprinter.fingerprint("404"), None); // too few features
//! # Ok::<(), simhash::ModelError>(())
//! ```

pub mod accumulate;
mod count;
mod fingerprinter;
pub mod hash;
mod idf;
pub mod kernels;
mod model;
pub mod normalize;
pub mod similarity;
pub mod spec;
mod stop_words;
pub mod text;
pub mod tokenize;
pub mod weigh;

pub use fingerprinter::{Fingerprinter, WeightedFeature};
pub use idf::{DocumentFrequencies, Idf, IdfError};
pub use kernels::Kernel;
pub use model::{Model, ModelError};
pub use normalize::{Markup, Normalize};
pub use similarity::{Measure, Similarity};
pub use spec::{Difference, Spec, SpecError};
pub use stop_words::StopWords;
pub use tokenize::Tokenizer;
pub use weigh::Weight;
