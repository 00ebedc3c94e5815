//! Text to 64-bit simhash fingerprints.
//!
//! Texts with nearly the same words have fingerprints that differ in few bits. The number of these bits is the distance
//! of the two texts:
//!
//! ```
//! use simhash::{Fingerprinter, Model, Spec};
//!
//! let mut fingerprinter = Fingerprinter::new(Model::plain(Spec::default())?);
//! let a = fingerprinter.fingerprint("The quick brown fox jumps over the lazy dog");
//! let b = fingerprinter.fingerprint("the QUICK brown fox, jumps over the lazy dog!");
//! assert_eq!(a, b);
//! let c = fingerprinter.fingerprint("Peel the tomatoes, and cook them with garlic and olive oil");
//! if let (Some(a), Some(c)) = (a, c) {
//!     let distance = (a ^ c).count_ones();
//!     assert!(distance > 3);
//! }
//! // Too few features for a fingerprint.
//! assert_eq!(fingerprinter.fingerprint("404"), None);
//! # Ok::<(), simhash::ModelError>(())
//! ```
//!
//! # The way of a text
//!
//! A text goes through these modules in order: [`normalize`] folds it, [`tokenize`] cuts it into features, [`hash`] maps
//! each feature to 64 bits, [`weight`] and [`Idf`] say how much each feature counts, and [`accumulate`] sums the weighted
//! bits and takes the signs of the sums (Charikar's simhash, as in Manku, Jain and Das Sarma, WWW 2007, section 2).
//!
//! A [`Fingerprinter`] does all of that under one [`Model`], with buffers that it uses again. It is cheap to create, and
//! each thread needs its own.
//!
//! # Specs
//!
//! [`Spec`] names every choice on the way, because only fingerprints made under equal specs may be compared. Store it
//! beside the fingerprints:
//!
//! ```
//! use simhash::{Spec, Weight};
//!
//! let stored = Spec::default().to_json();
//! let spec = Spec::from_json(&stored)?;
//! assert_eq!(spec, Spec::default());
//! let other = Spec { weight: Weight::Tf, ..spec.clone() };
//! assert_eq!(spec.differences(&other)[0].to_string(), r#"weight: "sqrt-tf" against "tf""#);
//! # Ok::<(), simhash::SpecError>(())
//! ```
//!
//! A [`Model`] is a spec with the tables that it names. With document frequencies, rare features count more:
//!
//! ```
//! use std::sync::Arc;
//!
//! use simhash::{DocumentFrequencies, Fingerprinter, Idf, IdfPower, Model, Spec};
//!
//! // Of 1,000 documents, 990 contain "the", 12 contain "harbour", and about 2 any word that is not listed.
//! let frequencies = DocumentFrequencies {
//!     documents: 1000,
//!     rest: 2,
//!     features: vec![("the".to_owned(), 990), ("harbour".to_owned(), 12)],
//! };
//! let features = Spec { idf_power: IdfPower::Half, ..Spec::default() };
//! let idf = Arc::new(Idf::new(&features, &frequencies)?);
//! let spec = Spec { idf: Some(idf.digest().to_owned()), ..features };
//! let mut fingerprinter = Fingerprinter::new(Model::new(spec, Some(idf), None)?);
//!
//! let features = fingerprinter.features("The harbour is open all the year");
//! let [the, harbour] = [&features[0], &features[1]];
//! assert_eq!((the.occurrences, harbour.occurrences), (2, 1));
//! assert!(harbour.weight > the.weight);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Choosing a distance
//!
//! How large k (the largest distance of a pair) may be depends on the number of documents: [`unrelated_rates`] says how
//! many unrelated documents a new document meets within k bits, and [`reliable_length`] from which length on texts are
//! found again after a small edit.
//!
//! ```
//! use simhash::reliable_length::reliable_length;
//! use simhash::unrelated_rates::unrelated_documents;
//! use simhash::Spec;
//!
//! let spec = Spec::default();
//! // Among a billion documents, less than one within 3 bits, and more than a hundred within 8.
//! assert!(unrelated_documents(&spec, 3, 1_000_000_000).is_some_and(|documents| documents < 1.0));
//! assert!(unrelated_documents(&spec, 8, 1_000_000_000).is_some_and(|documents| documents > 100.0));
//! // The fewest words of a text that a run at k = 3, 6 or 8 finds after one word was replaced, in 95 % of cases.
//! assert_eq!([3, 6, 8].map(|k| reliable_length(&spec, k)), [Some(400), Some(100), Some(50)]);
//! ```
//!
//! # Verifying pairs
//!
//! [`Similarity`] compares two texts exactly; [`sketch`] estimates their similarity without the texts, and [`bitmap`] bounds it.
//!
//! ```
//! use simhash::{Measure, Model, Similarity, Spec};
//!
//! let mut similarity = Similarity::new(Measure::Jaccard, Model::plain(Spec::default())?);
//! let [a, b] = ["one two three four five", "one two three four six"].map(|text| similarity.prepare(text));
//! // Two of four shingles of three words.
//! assert_eq!(Similarity::between(&a, &b, 0.0), 0.5);
//! # Ok::<(), simhash::ModelError>(())
//! ```

#![deny(missing_docs)]

pub mod accumulate;
pub mod bitmap;
pub mod choice;
mod count;
mod feature_hashes;
mod features;
mod fingerprinter;
pub mod hash;
mod idf;
mod isa;
mod model;
pub mod normalize;
mod plain;
pub mod reliable_length;
mod short_texts;
pub mod similarity;
pub mod sketch;
pub mod spec;
mod stop_words;
mod sum;
mod template;
pub mod text;
pub mod tokenize;
pub mod unrelated_rates;
pub mod weight;

pub use choice::Choice;
pub use fingerprinter::{Fingerprinter, WeightedFeature, is_garbled};
pub use idf::{DocumentFrequencies, Idf, IdfError};
pub use isa::Kernel;
pub use model::{Model, ModelError};
pub use normalize::{Fold, Markup, Normalize};
pub use short_texts::ShortTexts;
pub use similarity::{Measure, Similarity};
pub use sketch::{SketchBits, Sketcher};
pub use spec::{Difference, Spec, SpecError};
pub use stop_words::StopWords;
pub use template::Template;
pub use tokenize::Tokenizer;
pub use weight::{IdfPower, Weight};

// The examples of the README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
