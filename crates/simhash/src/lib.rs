//! Text to 64-bit simhash fingerprints.
//!
//! A text goes through these modules in order: [`normalize`] folds it, [`tokenize`] cuts it into features, [`hash`] maps
//! each feature to 64 bits, [`weight`] and [`Idf`] say how much each feature counts, and [`accumulate`] sums the weighted
//! bits and takes the signs of the sums (Charikar's simhash, as in Manku, Jain and Das Sarma, WWW 2007, section 2).
//!
//! [`Spec`] names every choice on the way, because only fingerprints made under equal specs may be
//! compared. A [`Model`] is a spec with the tables that it names; a [`Fingerprinter`] makes
//! fingerprints under a model. [`Similarity`] compares two texts exactly; [`sketch`] estimates
//! their similarity without the texts. [`unrelated_rates`] says how many unrelated documents a new document
//! meets within k bits, and [`reliable_length`] from which length on texts are found again after a small edit.
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
pub mod choice;
mod count;
mod fingerprinter;
pub mod hash;
mod idf;
mod isa;
mod model;
pub mod normalize;
pub mod reliable_length;
pub mod similarity;
pub mod sketch;
pub mod spec;
mod stop_words;
pub mod text;
pub mod tokenize;
pub mod unrelated_rates;
pub mod weight;

pub use choice::Choice;
pub use fingerprinter::{Fingerprinter, WeightedFeature};
pub use idf::{DocumentFrequencies, Idf, IdfError};
pub use isa::Kernel;
pub use model::{Model, ModelError};
pub use normalize::{Markup, Normalize};
pub use similarity::{Measure, Similarity};
pub use sketch::{SketchBits, Sketcher};
pub use spec::{Difference, Spec, SpecError};
pub use stop_words::StopWords;
pub use tokenize::Tokenizer;
pub use weight::{IdfPower, Weight};
