//! The specs that `bench sharp` measures, and the document frequencies that some of them need.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use simhash::choice::UnknownName;
use simhash::{
    Choice as _, DocumentFrequencies, Fingerprinter, Idf, IdfPower, Model, SketchBits, Spec,
    Tokenizer, Weight,
};

use super::corpora::Corpora;
use crate::learn_frequencies;

/// The power of idf that multiplies weights; `None` leaves idf out.
#[derive(Debug, Clone, Copy)]
pub struct Power(pub Option<IdfPower>);

/// The name of a [`Power`] without idf.
const NONE: &str = "none";

impl Power {
    /// None, and every power.
    pub fn all() -> Vec<Self> {
        let powers = IdfPower::examples().into_iter().map(Some);
        std::iter::once(None).chain(powers).map(Self).collect()
    }
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str(NONE),
            Some(power) => write!(f, "{power}"),
        }
    }
}

impl FromStr for Power {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        match text {
            NONE => Ok(Self(None)),
            _ => text.parse::<IdfPower>().map(|power| Self(Some(power))),
        }
    }
}

/// The fields of a spec that vary; all others have their defaults.
#[derive(Debug, Clone, Copy)]
pub struct Choices {
    pub tokenizer: Tokenizer,
    pub weight: Weight,
    pub power: Power,
}

impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.tokenizer, self.weight)?;
        match self.power.0 {
            None => Ok(()),
            Some(IdfPower::One) => f.write_str("·idf"),
            Some(power) => write!(f, "·idf^{power}"),
        }
    }
}

impl Choices {
    /// Returns the model with these choices and sketches of this size. Every [`Power`] except none needs `idf`.
    pub fn model(self, idf: Option<Arc<Idf>>, sketch: SketchBits) -> Model {
        let spec = Spec {
            weight: self.weight,
            idf: idf.as_deref().map(|idf| idf.digest().to_owned()),
            sketch,
            ..spec(self.tokenizer, self.power)
        };
        Model::new(spec, idf, None).expect("a spec and its table")
    }

    pub fn json(self) -> Value {
        json!({
            "tokenizer": self.tokenizer,
            "weight": self.weight,
            "idf_power": self.power.0,
        })
    }
}

/// Returns the spec with the default weight, and without the digest of a table.
fn spec(tokenizer: Tokenizer, power: Power) -> Spec {
    Spec {
        tokenizer,
        idf_power: power.0.unwrap_or(IdfPower::One),
        ..Spec::default()
    }
}

/// The document frequencies of the features of a tokenizer.
pub struct Learned {
    tokenizer: Tokenizer,
    /// One table for all corpora, or one for each.
    tables: Vec<DocumentFrequencies>,
}

impl Learned {
    /// Counts document frequencies in `sample`; if it is empty, in each corpus separately.
    pub fn count(tokenizer: Tokenizer, sample: &[String], corpora: &Corpora) -> Self {
        let table = |texts: &[String]| {
            let mut counts = learn_frequencies::count(texts, &spec(tokenizer, Power(None)));
            // Drops features that only one text contains: they are the majority, and unlisted
            // features weigh the same.
            counts.retain(|_, count| *count > learn_frequencies::REST);
            learn_frequencies::table(texts.len(), counts)
        };
        let tables = match sample {
            [] => corpora
                .all
                .iter()
                .map(|corpus| table(&corpus.texts))
                .collect(),
            _ => vec![table(sample)],
        };
        Self { tokenizer, tables }
    }

    /// Returns the tables with weights of the given power, one for each of `corpora` corpora.
    pub fn idfs(&self, power: Power, corpora: usize) -> Vec<Arc<Idf>> {
        let spec = spec(self.tokenizer, power);
        let idfs = self.tables.iter().map(|table| {
            let idf = Idf::new(&spec, table).expect("features in order of frequency");
            Arc::new(idf)
        });
        let idfs: Vec<_> = idfs.collect();
        (0..corpora)
            .map(|corpus| Arc::clone(&idfs[corpus.min(idfs.len() - 1)]))
            .collect()
    }
}

/// Fingerprints texts on one core, several times; returns the fingerprints, and the seconds of the fastest run.
pub fn fingerprint(
    fingerprinter: &mut Fingerprinter,
    texts: &[String],
    runs: usize,
) -> (Vec<Option<u64>>, f64) {
    let mut fingerprints = Vec::new();
    let mut best = f64::INFINITY;
    for _ in 0..runs.max(1) {
        fingerprints.clear();
        let begin = Instant::now();
        fingerprints.extend(texts.iter().map(|text| fingerprinter.fingerprint(text)));
        best = best.min(begin.elapsed().as_secs_f64());
    }
    (fingerprints, best)
}
