//! The settings of decisions, as text that an archive notes of each day.

use archive::Pin;
use documents::Prefer;
use sha2::{Digest as _, Sha256};
use simhash::Measure;
use storage::hex;

use super::RunSettings;
use crate::decide::OnUpdate;
use crate::profile::{CompareOptions, CompareSettings, VerifyBy};

/// A short digest of pins, which are sorted.
pub(super) fn pins_digest(pins: &[Pin]) -> String {
    let mut digest = Sha256::new();
    for pin in pins {
        let kind = match pin {
            Pin::Same(..) => "same",
            Pin::Distinct(..) => "distinct",
            Pin::Keep(_) => "keep",
            Pin::Forget(..) => "forget",
        };
        let (id, other) = pin.about();
        digest.update(serde_json::json!([kind, id, other]).to_string());
    }
    hex(&digest.finalize()[..8])
}

/// The settings that decide which documents are kept, as text. [`compared_by`] reads it.
pub(super) fn decision_settings(settings: &RunSettings, compare: &CompareSettings) -> String {
    let columns = &settings.columns;
    let mut text = format!("k={}", compare.max_distance);
    if columns.prefer != Prefer::default() {
        text.push_str(&format!(" prefer={}", columns.prefer));
    }
    if settings.drop_empty {
        text.push_str(" drop-empty");
    }
    if settings.on_update != OnUpdate::Both {
        text.push_str(&format!(" on-update={}", settings.on_update));
    }
    if !settings.pins.is_empty() {
        text.push_str(&format!(" pins={}", pins_digest(&settings.pins)));
    }
    if let Some(verify) = &compare.verify {
        if !verify.is_by_sketch() {
            text.push_str(&format!(" verify={}", verify.measure));
            if verify.base_text.is_empty() {
                text.push_str(" without-base-text");
            }
        }
        text.push_str(&format!(" min-similarity={}", verify.min_similarity));
    }
    text
}

/// How documents that were decided by these settings can be compared again without their texts. What the settings leave open, or verified
/// by texts, is left to the archive.
pub fn compared_by(settings: &str) -> CompareOptions {
    let (first, others) = settings.split_once(' ').unwrap_or((settings, ""));
    let max_distance = first.strip_prefix("k=").and_then(|k| k.parse().ok());
    // The last ones; columns of `prefer` may have any names.
    let (others, least) = match others.rsplit_once("min-similarity=") {
        Some((others, least)) => (others.trim_end(), least.parse::<f64>().ok()),
        None => (others, None),
    };
    let last = others.rsplit(' ').find(|word| *word != "without-base-text");
    let is_by_texts = least.is_some() && last.is_some_and(|word| word.starts_with("verify="));
    let (verify, min_similarity) = match least {
        _ if max_distance.is_none() || is_by_texts => (None, None),
        None => (Some(VerifyBy::Nothing), None),
        Some(least) => (Some(VerifyBy::Measure(Measure::Sketch)), Some(least)),
    };
    CompareOptions {
        max_distance,
        verify,
        min_similarity,
        ..CompareOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::Verify;

    #[test]
    fn settings_are_read_as_they_are_written() {
        let settings = RunSettings {
            drop_empty: true,
            on_update: OnUpdate::KeepNew,
            ..RunSettings::default()
        };
        let verify = |measure, least| {
            Some(Verify {
                measure,
                min_similarity: least,
                base_text: Vec::new(),
            })
        };
        let sketch = Some(VerifyBy::Measure(Measure::Sketch));
        for (verified, expected) in [
            (None, (Some(VerifyBy::Nothing), None)),
            (
                verify(Measure::Sketch, 0.1 + 0.2),
                (sketch, Some(0.1 + 0.2)),
            ),
            (verify(Measure::Jaccard, 0.9), (None, None)),
        ] {
            let compare = CompareSettings {
                max_distance: 5,
                may_lower: false,
                verify: verified,
            };
            let text = decision_settings(&settings, &compare);
            let read = compared_by(&text);
            assert_eq!(read.max_distance, Some(5), "{text}");
            assert_eq!((read.verify, read.min_similarity), expected, "{text}");
        }
        assert_eq!(compared_by(""), CompareOptions::default());
        let plain = compared_by("k=3 prefer=a min-similarity=b:desc");
        assert_eq!(plain.verify, Some(VerifyBy::Nothing));
    }
}
