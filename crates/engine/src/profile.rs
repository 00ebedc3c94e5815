//! How a run finds and verifies pairs: what its options say, else what its archive records, else what its [`Profile`] does.

use archive::RunDefaults;
use simhash::choice::{Choice, Name};
use simhash::{Measure, ShortTexts, SketchBits, Template};

use crate::error::{EngineError, Result};
use crate::verify::Verify;

/// Settings that go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Finds the near-duplicates that people mean: a large k, and pairs are verified. docs/quality.md has the figures.
    Sharp,
    /// The paper's: pairs of fingerprints within 3 bits, whatever their texts.
    Paper,
}

impl Choice for Profile {
    const PLURAL: &'static str = "profiles";
    const NAMES: &'static [Name<Self>] = &[
        Name::new(
            "sharp",
            Self::Sharp,
            "k = 7; pairs are verified, by sketches that the archive keeps or by the texts",
        ),
        Name::new(
            "paper",
            Self::Paper,
            "k = 3; pairs of fingerprints, whatever their texts; no sketches, no decisions",
        ),
    ];
}

impl Profile {
    /// Fingerprints that differ in at most this many bits are a pair.
    pub const fn max_distance(self) -> u32 {
        match self {
            Self::Sharp => 7,
            Self::Paper => 3,
        }
    }

    /// The sketches of a new archive.
    pub const fn sketch(self) -> SketchBits {
        match self {
            Self::Sharp => SketchBits::Bits256,
            Self::Paper => SketchBits::None,
        }
    }

    /// What becomes of documents with too few features under a new spec.
    pub const fn short_texts(self) -> ShortTexts {
        match self {
            Self::Sharp => ShortTexts::Whole,
            Self::Paper => ShortTexts::Unmarked,
        }
    }

    /// Whether the templates of sources are left out under a new spec.
    pub const fn template(self) -> Template {
        match self {
            Self::Sharp => Template::On,
            Self::Paper => Template::Off,
        }
    }

    /// Whether a new archive has the column `kept`.
    pub const fn has_kept(self) -> bool {
        matches!(self, Self::Sharp)
    }

    /// What a new archive with sketches of `sketch` bits records.
    pub fn run_defaults(self, sketch: SketchBits) -> RunDefaults {
        match self {
            Self::Sharp if !sketch.is_none() => {
                let least = default_similarity(Measure::Sketch);
                RunDefaults::new(self.max_distance(), Some(least))
            }
            // At a larger k, pairs that nothing verifies are of unrelated documents.
            _ => RunDefaults::new(Self::Paper.max_distance(), None),
        }
    }
}

/// The least similarity of a pair by `measure`, if nothing else says it.
pub fn default_similarity(measure: Measure) -> f64 {
    match measure {
        // An estimate errs on both sides: a bound of 0.8 would drop half of the pairs at 0.8. docs/quality.md has
        // the figures.
        Measure::Sketch => 0.755,
        _ => 0.8,
    }
}

/// Whether pairs are verified, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyBy {
    Nothing,
    Measure(Measure),
}

impl Choice for VerifyBy {
    const PLURAL: &'static str = "measures";
    const NAMES: &'static [Name<Self>] = &[
        Name::new(
            "jaccard",
            Self::Measure(Measure::Jaccard),
            "common shingles of three words",
        ),
        Name::new("cosine", Self::Measure(Measure::Cosine), "weighted words"),
        Name::new(
            "edit",
            Self::Measure(Measure::Edit),
            "characters; for short texts",
        ),
        Name::new(
            "sketch",
            Self::Measure(Measure::Sketch),
            "an estimate of jaccard by the sketches that the archive keeps; reads no texts",
        ),
        Name::new("none", Self::Nothing, "not at all"),
    ];
}

/// What the options of a run say about its comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CompareOptions {
    /// The profile that counts instead of what the archive records.
    pub profile: Option<Profile>,
    /// Fingerprints that differ in at most this many bits are a pair.
    pub max_distance: Option<u32>,
    /// How pairs are verified.
    pub verify: Option<VerifyBy>,
    /// Verified pairs with a smaller similarity are dropped.
    pub min_similarity: Option<f64>,
    /// Files, directories or patterns of the archive's documents.
    pub base_text: Vec<String>,
    /// Whether an audit compares texts, too.
    pub audits: bool,
}

/// What a batch is compared with, as far as it decides the settings that options leave open.
#[derive(Debug, Clone, Copy)]
pub enum Against<'a> {
    /// An archive that records these settings.
    Archive(&'a RunDefaults),
    /// Itself; its texts are at hand.
    Texts,
    /// Fingerprints without texts.
    Fingerprints,
}

/// How a run finds and verifies pairs.
#[derive(Debug, Clone)]
pub struct CompareSettings {
    /// Fingerprints that differ in at most this many bits are a pair.
    pub max_distance: u32,
    /// Whether the distance may be lowered for a batch with very many candidates: no option says it, and texts are compared.
    pub may_lower: bool,
    /// How pairs are verified; `None` for not at all.
    pub verify: Option<Verify>,
}

impl CompareOptions {
    /// The settings of a run that compares a batch with `against`.
    ///
    /// # Errors
    /// [`EngineError::Usage`] if an option is only for pairs that are verified in another way.
    pub fn resolve(&self, against: Against<'_>) -> Result<CompareSettings> {
        let recorded = match (self.profile, against) {
            (None, Against::Archive(defaults)) => Some(defaults),
            _ => None,
        };
        let profile = self.profile.unwrap_or(match against {
            Against::Texts => Profile::Sharp,
            Against::Archive(_) | Against::Fingerprints => Profile::Paper,
        });
        let of_profile = match (profile, against) {
            (Profile::Paper, _) => None,
            (Profile::Sharp, Against::Texts) => Some(Measure::Jaccard),
            (Profile::Sharp, _) => Some(Measure::Sketch),
        };
        let by_default = match recorded {
            Some(defaults) => defaults.min_similarity.map(|_| Measure::Sketch),
            None => of_profile,
        };
        let measure = match self.verify {
            Some(VerifyBy::Nothing) => None,
            Some(VerifyBy::Measure(measure)) => Some(measure),
            None => by_default,
        };
        let of_profile = profile.max_distance();
        let of_profile = recorded.map_or(of_profile, |defaults| defaults.max_distance);
        let max_distance = self.max_distance.unwrap_or(of_profile);
        let reads_base_text = !self.base_text.is_empty() && !self.audits;
        let refused = match measure {
            None if self.min_similarity.is_some() => {
                Some("--min-similarity needs --verify MEASURE; see --help")
            }
            None if reads_base_text => {
                Some("--base-text needs --verify MEASURE or --audit N; see --help")
            }
            Some(Measure::Sketch) if reads_base_text => Some(
                "--verify sketch reads no texts: leave out --base-text, or say --verify jaccard or --audit N",
            ),
            _ => None,
        };
        if let Some(reason) = refused {
            return Err(EngineError::Usage(reason.into()));
        }
        let Some(measure) = measure else {
            return Ok(CompareSettings {
                max_distance,
                may_lower: false,
                verify: None,
            });
        };
        let recorded = recorded.and_then(|defaults| defaults.min_similarity);
        let by_default = recorded.filter(|_| measure == Measure::Sketch);
        let by_default = by_default.unwrap_or(default_similarity(measure));
        Ok(CompareSettings {
            max_distance,
            may_lower: self.max_distance.is_none() && matches!(against, Against::Texts),
            verify: Some(Verify {
                measure,
                min_similarity: self.min_similarity.unwrap_or(by_default),
                base_text: self.base_text.clone(),
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(options: &CompareOptions, against: Against<'_>) -> (u32, Option<(Measure, f64)>) {
        let settings = options.resolve(against).expect("options that go together");
        let verify = settings.verify;
        (
            settings.max_distance,
            verify.map(|verify| (verify.measure, verify.min_similarity)),
        )
    }

    #[test]
    fn options_count_before_what_is_recorded_and_that_before_the_profile() {
        let nothing = CompareOptions::default();
        let recorded = RunDefaults::new(5, Some(0.7));
        let archive = Against::Archive(&recorded);
        let sketch = |least| Some((Measure::Sketch, least));
        assert_eq!(resolved(&nothing, archive), (5, sketch(0.7)));
        assert_eq!(
            resolved(&nothing, Against::Texts),
            (7, Some((Measure::Jaccard, 0.8)))
        );
        assert_eq!(resolved(&nothing, Against::Fingerprints), (3, None));

        let with = |change: fn(&mut CompareOptions)| {
            let mut options = CompareOptions::default();
            change(&mut options);
            options
        };
        let paper = with(|options| options.profile = Some(Profile::Paper));
        assert_eq!(resolved(&paper, archive), (3, None));
        let sharp = with(|options| options.profile = Some(Profile::Sharp));
        assert_eq!(resolved(&sharp, archive), (7, sketch(0.755)));
        let nearer = with(|options| options.max_distance = Some(2));
        assert_eq!(resolved(&nearer, archive), (2, sketch(0.7)));
        let none = with(|options| options.verify = Some(VerifyBy::Nothing));
        assert_eq!(resolved(&none, archive), (5, None));
        let edit = with(|options| options.verify = Some(VerifyBy::Measure(Measure::Edit)));
        assert_eq!(resolved(&edit, archive), (5, Some((Measure::Edit, 0.8))));
        let least = with(|options| options.min_similarity = Some(0.9));
        assert_eq!(resolved(&least, archive), (5, sketch(0.9)));
        assert!(least.resolve(Against::Fingerprints).is_err());
    }
}
