//! Chooses the best of the settings that `tune` compared.

use engine::Profile;
use engine::tune::{AtDistance, AtSketch, Tuned};
use serde_json::{Value, json};
use simhash::Spec;

/// A distance is large enough if its recall is at least this, where texts decide.
const ENOUGH: f64 = 0.97;
/// Fewer groups of near-duplicates show nothing.
const TOO_FEW: usize = 30;
/// Settings are better than others only if their F1 is greater by more than this: measured on other documents, they may be worse. Of
/// settings whose F1 is the greatest but for this, the cheapest are the best.
pub(super) const ABOUT: f64 = 0.005;
/// Settings may take this many times as long as the profile `sharp`.
const MOST_TIMES: f64 = 10.0;
/// A new document may meet this many times as many unrelated ones, which all have to be verified: estimates are no more precise.
const ABOUT_UNRELATED: f64 = 2.0;
/// Below this number, unrelated documents cost nothing.
const FEW: f64 = 1_000.0;

/// Settings of an archive and of its runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings<'a> {
    pub(super) tuned: &'a Tuned,
    pub(super) at: &'a AtDistance,
    /// The sketches by which pairs are verified; `None` if texts decide.
    pub(super) sketch: Option<&'a AtSketch>,
}

/// What `tune` recommends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Advice<'a> {
    /// The profile `sharp`; the settings that find more, if there are any.
    Sharp(Option<Settings<'a>>),
    Settings(Settings<'a>),
    /// The sample has no pair that should be found.
    Nothing,
}

impl Settings<'_> {
    pub(super) fn f1(&self) -> f64 {
        self.at.f1(self.sketch)
    }

    pub(super) fn recall(&self) -> f64 {
        self.sketch.map_or(self.at.recall, |sketch| sketch.recall)
    }

    pub(super) fn precision(&self) -> f64 {
        self.sketch.map_or(1.0, |sketch| sketch.precision)
    }

    /// How far the spec is from the default: the fewest choices to make, and to remember.
    fn choices(&self) -> usize {
        let (spec, default) = (&self.tuned.spec, Spec::default());
        usize::from(spec.tokenizer != default.tokenizer)
            + usize::from(spec.weight != default.weight)
            + usize::from(self.tuned.learnt)
    }
}

/// What to take of the specs that were `compared`, the default first: the sharp profile, unless others have a greater F1. `bits` is
/// the size of the sketches, if it is fixed.
pub(super) fn advice(compared: &[Tuned], bits: Option<u32>) -> Advice<'_> {
    let Some(default) = compared.first().filter(|tuned| tuned.documents_wanted > 0) else {
        return Advice::Nothing;
    };
    let of_sharp = Profile::Sharp.sketch().bits();
    let sharp = default.sharp.as_ref();
    let sharp = sharp.filter(|_| bits.is_none_or(|bits| bits == of_sharp));
    let all = compared.iter().flat_map(|tuned| of_spec(tuned, bits));
    let Some(best) = choose(compared, all) else {
        return match sharp {
            Some(_) => Advice::Sharp(None),
            None => by_texts(default).map_or(Advice::Nothing, Advice::Settings),
        };
    };
    match sharp {
        Some(_) if default.groups_wanted < TOO_FEW => Advice::Sharp(Some(best)),
        Some(sharp) if best.f1() <= sharp.f1 + ABOUT => Advice::Sharp(Some(best)),
        _ => Advice::Settings(best),
    }
}

/// The best settings by sketches with the spec of `tuned`, which is one of `compared`.
pub(super) fn best_of_spec<'a>(compared: &'a [Tuned], tuned: &'a Tuned) -> Option<Settings<'a>> {
    choose(compared, of_spec(tuned, None))
}

/// Of those of `all` that cost little more than the profile `sharp`, the best.
fn choose<'a>(compared: &[Tuned], all: impl Iterator<Item = Settings<'a>>) -> Option<Settings<'a>> {
    let is_cheap = is_cheap(compared.first()?)?;
    let all: Vec<Settings<'_>> = all.filter(is_cheap).collect();
    let most = all.iter().map(Settings::f1).max_by(f64::total_cmp)?;
    let good = all.into_iter().filter(|one| one.f1() >= most - ABOUT);
    let size = |one: &Settings<'_>| one.sketch.map_or(0, |sketch| sketch.bits);
    good.min_by(|a, b| {
        let by_choices = a.choices().cmp(&b.choices());
        let by_time = a.at.core_seconds.total_cmp(&b.at.core_seconds);
        // A larger sketch errs less on other documents, too.
        let by_size = size(b).cmp(&size(a));
        by_choices
            .then(by_time)
            .then(by_size)
            .then(b.f1().total_cmp(&a.f1()))
    })
}

/// The settings by sketches with the spec of `tuned`. A distance below that of the sharp profile loses near-duplicates.
fn of_spec(tuned: &Tuned, bits: Option<u32>) -> impl Iterator<Item = Settings<'_>> {
    let least = Profile::Sharp.max_distance();
    let distances = tuned
        .distances
        .iter()
        .filter(move |at| at.max_distance >= least);
    distances.flat_map(move |at| {
        let sketches = at
            .sketches
            .iter()
            .filter(move |sketch| bits.is_none_or(|bits| bits == sketch.bits));
        sketches.map(move |sketch| Settings {
            tuned,
            at,
            sketch: Some(sketch),
        })
    })
}

/// The smallest distance that finds enough pairs for texts to decide about, or else the one that finds most; of those that are cheap.
fn by_texts(tuned: &Tuned) -> Option<Settings<'_>> {
    let is_cheap = is_cheap(tuned)?;
    let all = tuned.distances.iter().map(|at| Settings {
        tuned,
        at,
        sketch: None,
    });
    let all: Vec<Settings<'_>> = all.filter(is_cheap).collect();
    let most = all.iter().map(Settings::recall).max_by(f64::total_cmp)?;
    all.into_iter().find(|one| one.recall() >= most.min(ENOUGH))
}

/// Whether settings cost little more than the profile `sharp`, which `default` is the spec of.
fn is_cheap(default: &Tuned) -> Option<impl Fn(&Settings<'_>) -> bool + use<>> {
    let k = Profile::Sharp.max_distance();
    let sharp = default.distances.iter().find(|at| at.max_distance == k)?;
    let seconds = MOST_TIMES * sharp.core_seconds;
    let unrelated = (ABOUT_UNRELATED * sharp.unrelated).max(FEW);
    Some(move |one: &Settings<'_>| one.at.core_seconds <= seconds && one.at.unrelated <= unrelated)
}

impl<'a> Advice<'a> {
    /// The best of the settings that were compared, whether or not they are recommended.
    pub(super) fn best(&self) -> Option<&Settings<'a>> {
        match self {
            Self::Settings(settings) | Self::Sharp(Some(settings)) => Some(settings),
            Self::Sharp(None) | Self::Nothing => None,
        }
    }

    /// The spec of what is recommended, and its largest distance.
    pub(super) fn spec(&self, compared: &'a [Tuned]) -> Option<(&'a Tuned, u32)> {
        match self {
            Self::Settings(settings) => Some((settings.tuned, settings.at.max_distance)),
            Self::Sharp(_) | Self::Nothing => {
                Some((compared.first()?, Profile::Sharp.max_distance()))
            }
        }
    }
}

/// Settings in the `--json` output.
pub(super) fn json(settings: &Settings<'_>) -> Value {
    let mut value = json!(settings.at);
    let (recall, precision) = (settings.recall(), settings.precision());
    value["verified"] = json!({
        "by": if settings.sketch.is_some() { "sketch" } else { "jaccard" },
        "bits": settings.sketch.map(|sketch| sketch.bits),
        "min_similarity": settings.sketch.map(|sketch| sketch.min_similarity),
        "recall": recall,
        "precision": precision,
        "f1": settings.f1(),
    });
    value
}

/// The entry of one compared spec in the `--json` output.
pub(super) fn summary(compared: &[Tuned], tuned: &Tuned) -> Value {
    json!({
        "spec": tuned.spec,
        "learnt": tuned.learnt,
        "without_fingerprint": tuned.without_fingerprint,
        "best": best_of_spec(compared, tuned).as_ref().map(json),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use engine::tune::{Estimate, Share};
    use simhash::Weight;

    use super::*;

    /// A spec whose settings have the F1 `f1` from distance `k` on, with sketches of 256 bits, and less below; `seconds` is the
    /// time at each distance.
    pub(in super::super) fn tuned(
        weight: Weight,
        k: u32,
        f1: f64,
        seconds: impl Fn(u32) -> f64,
    ) -> Tuned {
        let sketch = |k_of: u32| AtSketch {
            bits: 256,
            min_similarity: 0.78,
            pairs: 90,
            recall: f1,
            precision: f1,
            f1: if k_of < k { f1 - 0.1 } else { f1 },
        };
        let at = |max_distance| AtDistance {
            max_distance,
            pairs: 100,
            by_similarity: [0; 5],
            recall: if max_distance < k { 0.5 } else { 0.98 },
            precision: 0.9,
            unrelated: 4.0,
            estimate: Estimate::Counted,
            design: "halves".into(),
            table_bytes: 0,
            core_seconds: seconds(max_distance),
            sketches: vec![sketch(max_distance)],
        };
        Tuned {
            spec: Spec {
                weight,
                ..Spec::default()
            },
            learnt: false,
            documents: 100,
            sampled: 100,
            copies: 0,
            without_fingerprint: 0,
            alike: [0; 4],
            wanted: 40,
            documents_wanted: 60,
            groups_wanted: 60,
            differ_in_a_name: Share::default(),
            alike_sources: Vec::new(),
            sharp: Some(sketch(7)),
            distances: (0..=16).map(at).collect(),
            lengths: Vec::new(),
        }
    }

    fn same(_: u32) -> f64 {
        70.0
    }

    fn advised(compared: &[Tuned], bits: Option<u32>) -> Settings<'_> {
        match advice(compared, bits) {
            Advice::Settings(found) => found,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn others_are_advised_only_if_they_are_better_than_sharp() {
        let sharp = tuned(Weight::SqrtTf, 7, 0.95, same);
        let better = tuned(Weight::LogTf, 8, 0.98, same);
        let compared = [sharp.clone(), better];
        let found = advised(&compared, None);
        assert_eq!(
            (found.tuned.spec.weight, found.at.max_distance),
            (Weight::LogTf, 8)
        );
        let compared = [sharp.clone(), tuned(Weight::LogTf, 8, 0.954, same)];
        assert!(matches!(advice(&compared, None), Advice::Sharp(Some(_))));
        // The spec of an archive is fixed, and so are its sketches: settings of runs remain.
        let compared = [tuned(Weight::LogTf, 9, 0.9, same)];
        assert_eq!(advised(&compared, Some(256)).at.max_distance, 9);
        // Without sketches, texts decide; then a distance must find enough.
        let found = advised(&compared, Some(0));
        assert!(found.sketch.is_none() && found.at.max_distance == 9);
        let mut none = sharp;
        none.documents_wanted = 0;
        assert!(matches!(advice(&[none], None), Advice::Nothing));
    }

    #[test]
    fn of_about_equal_settings_the_cheapest_and_simplest_are_best() {
        // Little more for ten times the time is not worth it, and no k is below that of the sharp profile.
        let slow = |k: u32| if k < 10 { 70.0 } else { 400.0 };
        let compared = [
            tuned(Weight::SqrtTf, 17, 0.8, slow),
            tuned(Weight::LogTf, 10, 0.984, slow),
            tuned(Weight::Tf, 5, 0.98, slow),
        ];
        let found = advised(&compared, None);
        assert_eq!(
            (found.tuned.spec.weight, found.at.max_distance),
            (Weight::Tf, 7)
        );
        // Ten times the time of sharp is too much, whatever is found.
        let slow = |k: u32| if k < 10 { 70.0 } else { 4_000.0 };
        let compared = [
            tuned(Weight::SqrtTf, 7, 0.8, slow),
            tuned(Weight::LogTf, 10, 0.98, slow),
        ];
        assert!(advised(&compared, None).at.max_distance < 10);
    }
}
