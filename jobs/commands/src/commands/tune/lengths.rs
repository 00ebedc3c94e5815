//! What `tune` says about short texts: from which length on texts are found again in which one word
//! was replaced, and how many documents are shorter.

use engine::Profile;
use engine::tune::Tuned;
use engine::tune::one_word::{AtLength, reliable};
use serde_json::{Value, json};
use simhash::reliable_length::ENOUGH;

use crate::printing::count;

/// Settings whose recall is printed.
struct Settings<'a> {
    name: &'static str,
    tuned: &'a Tuned,
    k: u32,
}

/// Writes the recall of each length, under the sharp profile (if it was compared) and the recommended settings, `tuned` and `k`, and
/// the length from which on it is enough.
pub(super) fn write(text: &mut String, compared: &[Tuned], (tuned, k): (&Tuned, u32)) {
    if !tuned.lengths.iter().any(AtLength::has_enough_texts) {
        return;
    }
    let columns = columns(compared, (tuned, k));
    *text += "texts cut from the sample in which one word is replaced: the share that is found, by length\n";
    *text += &format!("  {:>5} {:>7}", "words", "texts");
    for Settings { name, k, .. } in &columns {
        let heading = format!("{name}, -k {k}");
        *text += &format!(" {heading:>17}");
    }
    *text += &format!(" {:>17}\n", "shorter documents");
    for (row, at) in tuned.lengths.iter().enumerate() {
        *text += &format!("  {:>5} {:>7}", at.words, count(at.texts as u64));
        for Settings { tuned, k, .. } in &columns {
            *text += &format!(" {:>17.3}", tuned.lengths[row].recall_within(*k));
        }
        *text += &format!(" {:>17}\n", count(at.shorter_documents));
    }
    for settings in &columns {
        *text += &format!("{}\n", reliable_length(settings));
    }
}

/// The sharp profile, and the recommended settings if these are others.
fn columns<'a>(compared: &'a [Tuned], (tuned, k): (&'a Tuned, u32)) -> Vec<Settings<'a>> {
    let of_sharp = Profile::Sharp.max_distance();
    let mut columns = Vec::new();
    if let Some(default) = compared.first() {
        columns.push(Settings {
            name: "sharp",
            tuned: default,
            k: of_sharp,
        });
        if std::ptr::eq(default, tuned) && k == of_sharp {
            return columns;
        }
    }
    columns.push(Settings {
        name: "recommended",
        tuned,
        k,
    });
    columns
}

/// Says from which length on the settings find enough texts, and how many documents are shorter.
fn reliable_length(settings: &Settings<'_>) -> String {
    let Settings { name, tuned, k } = settings;
    let percent = 100.0 * ENOUGH;
    match reliable(&tuned.lengths, *k) {
        Some(at) => format!(
            "{name}: -k {k} finds {percent:.0} % of them from {} words on; {} of {} documents are shorter",
            at.words,
            count(at.shorter_documents),
            count(tuned.documents)
        ),
        None => format!(
            "{name}: -k {k} finds less than {percent:.0} % of them, even of the longest: take a larger k, and drop wrong pairs by --verify edit"
        ),
    }
}

/// The reliable length within `k` bits in the `--json` output; null if all lengths are too short.
pub(super) fn summary(tuned: &Tuned, k: u32) -> Value {
    match reliable(&tuned.lengths, k) {
        Some(at) => json!({
            "max_distance": k,
            "words": at.words,
            "shorter_documents": at.shorter_documents,
        }),
        None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use simhash::Weight;

    use super::*;

    /// Settings that find all texts of `words` words or more.
    fn tuned(words: usize) -> Tuned {
        let at = |length: usize| AtLength {
            words: length,
            texts: 1000,
            recall: vec![if length < words { 0.5 } else { 1.0 }; 17],
            shorter_documents: 7 * length as u64,
        };
        Tuned {
            documents: 9000,
            lengths: [20, 50, 100].map(at).into(),
            ..crate::commands::tune::best::tests::tuned(Weight::SqrtTf, 7, 0.9, |_| 70.0)
        }
    }

    #[test]
    fn the_length_of_the_sharp_and_of_the_recommended_settings_is_said() {
        let written = |compared: &[Tuned], best: usize, k: u32| {
            let mut text = String::new();
            write(&mut text, compared, (&compared[best], k));
            text
        };
        let compared = [tuned(100), tuned(50)];
        let text = written(&compared, 1, 9);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 7, "{text}");
        assert_eq!(
            lines[3],
            "     50   1,000             0.500             1.000               350"
        );
        assert_eq!(
            lines[5..],
            [
                "sharp: -k 7 finds 95 % of them from 100 words on; 700 of 9,000 documents are shorter",
                "recommended: -k 9 finds 95 % of them from 50 words on; 350 of 9,000 documents are shorter"
            ]
        );
        // The sharp profile is recommended.
        let text = written(&compared, 0, 7);
        assert_eq!(text.lines().count(), 6);
        assert!(!text.contains("recommended"), "{text}");
        let text = written(&[tuned(200)], 0, 7);
        assert!(text.contains("less than 95 %"), "{text}");
        assert!(summary(&tuned(200), 3).is_null());
        assert_eq!(summary(&tuned(20), 3)["shorter_documents"], 140);
        let mut few = tuned(20);
        for at in &mut few.lengths {
            at.texts = 99;
        }
        assert_eq!(written(&[few], 0, 7), "");
    }
}
