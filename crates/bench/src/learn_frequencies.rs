//! Learns document frequencies from texts, for the specs with idf that the benchmarks measure.

use std::collections::HashMap;

use simhash::{DocumentFrequencies, Fingerprinter, Model, Spec};

/// The document frequency that features have if the table does not list them.
pub const REST: u64 = 1;

/// Counts, for each feature under `spec`, the texts that contain it.
pub fn count(texts: &[String], spec: &Spec) -> HashMap<String, u64> {
    let model = Model::plain(spec.clone()).expect("a spec without tables");
    let mut fingerprinter = Fingerprinter::new(model);
    let mut counts = HashMap::<String, u64>::new();
    for text in texts {
        for feature in fingerprinter.features(text) {
            *counts.entry(feature.feature).or_default() += 1;
        }
    }
    counts
}

/// Returns the table of `counts` in `documents` texts, as `dedup-job idf` makes it, in the order that [`simhash::Idf`] requires.
pub fn table(documents: usize, counts: HashMap<String, u64>) -> DocumentFrequencies {
    let mut features: Vec<_> = counts.into_iter().collect();
    features.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    DocumentFrequencies::of_sample(documents as u64, REST, features)
}
