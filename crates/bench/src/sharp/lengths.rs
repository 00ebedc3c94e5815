//! Prints from which length on recommended settings find texts again in which one word is replaced.

use simhash::reliable_length::ENOUGH;

use super::measured::Measured;
use super::short::ShortCounts;

/// The settings that docs/choosing-settings.md gives figures for. Each has its purpose, the name of its spec in the
/// other tables, and k.
const SETTINGS: [(&str, &str, u32); 5] = [
    ("default", "words+cjk-grams, sqrt-tf", 3),
    ("default", "words+cjk-grams, sqrt-tf", 6),
    ("default", "words+cjk-grams, sqrt-tf", 8),
    ("--learn", "words+cjk-grams, sqrt-tf·idf^1/2", 8),
    ("short texts", "words+cjk-grams, sqrt-tf·idf^1/4", 14),
];

/// Prints a line for each of [`SETTINGS`] that was measured, for the corpus at place `at`, which is called
/// `corpus`.
pub fn print(rows: &[Measured], at: usize, corpus: &str) {
    let lines: Vec<String> = SETTINGS
        .iter()
        .filter_map(|&(purpose, name, k)| {
            let row = rows.iter().find(|row| row.name == name)?;
            let counts = row.short.get(at)?;
            Some(format!("{purpose:<12} {k:>2} {}", line(counts, k)))
        })
        .collect();
    let Some(first) = rows.iter().find_map(|row| row.short.get(at)) else {
        return;
    };
    if lines.is_empty() {
        return;
    }
    println!(
        "\nRecall by length of texts cut from {corpus} in which one word is replaced; `from` is the number of words from\n\
         which on it is at least {ENOUGH}"
    );
    let lengths = measured(first).map(|counts| format!("{:>6}", counts.words));
    let lengths: Vec<String> = lengths.collect();
    println!(
        "{:<12} {:>2} {} {:>6}",
        "settings",
        "k",
        lengths.join(" "),
        "from"
    );
    for line in lines {
        println!("{line}");
    }
}

/// Formats the recall of each length, and the reliable length.
fn line(counts: &[ShortCounts], k: u32) -> String {
    let recalls = measured(counts).map(|counts| format!("{:>6.3}", counts.recall(k)));
    let recalls: Vec<String> = recalls.collect();
    let from = match reliable(counts, k) {
        Some(words) => words.to_string(),
        None => "-".to_owned(),
    };
    format!("{} {from:>6}", recalls.join(" "))
}

/// Returns the counts of lengths that some texts have.
fn measured(counts: &[ShortCounts]) -> impl DoubleEndedIterator<Item = &ShortCounts> {
    counts.iter().filter(|counts| counts.texts > 0)
}

/// Returns the least number of words from which on recall within `k` bits is enough. The lengths ascend.
fn reliable(counts: &[ShortCounts], k: u32) -> Option<usize> {
    let enough = measured(counts)
        .rev()
        .take_while(|counts| counts.recall(k) >= ENOUGH);
    enough.last().map(|counts| counts.words)
}

#[cfg(test)]
mod tests {
    use engine::tune::one_word::ShortTexts;
    use simhash::{Fingerprinter, Model, Spec};

    use super::*;

    #[test]
    fn longer_texts_are_found_by_fewer_bits() {
        // Each text has words of its own.
        let text = |number: usize| -> String {
            let words = (0..400).map(|word| format!("w{}", number * 400 + word));
            words.collect::<Vec<_>>().join(" ")
        };
        let texts: Vec<String> = (0..100).map(text).collect();
        let model = Model::plain(Spec::default()).expect("no tables");
        let mut fingerprinter = Fingerprinter::new(model);
        let counts: Vec<ShortCounts> = ShortTexts::cut(&texts, &[5, 20, 400, 500], usize::MAX)
            .iter()
            .map(|texts| ShortCounts::new(texts, &mut fingerprinter))
            .collect();
        assert_eq!(reliable(&counts, 12), Some(20));
        assert_eq!(reliable(&counts, 6), Some(400));
        assert_eq!(reliable(&counts, 0), None);
        let line = line(&counts, 6);
        assert_eq!(line.split_whitespace().count(), 4, "{line}");
        assert!(line.ends_with("    400"), "{line}");
    }
}
