//! Folding and words against the files that Unicode publishes, in the directory that `DEDUP_JOB_TEST_UNICODE` names or where
//! Debian's package `unicode-data` has them. They may be of an older version than the libraries: only characters that they know
//! are compared.

use std::collections::HashMap;
use std::path::PathBuf;

use icu_normalizer::ComposingNormalizerBorrowed;
use simhash::{Fingerprinter, Measure, Model, Normalize, Similarity, Spec, Tokenizer};

/// The lines of a file without comments; `None` without the files, except where the checks before a change run.
fn lines(name: &str) -> Option<Vec<String>> {
    let given = std::env::var_os("DEDUP_JOB_TEST_UNICODE");
    let directory = given.map_or("/usr/share/unicode".into(), PathBuf::from);
    let path = directory.join(name);
    let Ok(text) = std::fs::read_to_string(&path) else {
        assert!(
            std::env::var_os("CI").is_none(),
            "no file {}: install the package unicode-data",
            path.display()
        );
        return None;
    };
    let without_comment = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
    let lines = text.lines().map(without_comment);
    Some(lines.filter(|line| !line.is_empty()).collect())
}

/// The characters of a line's first field: `0041` or `0041..005A`.
fn characters(field: &str) -> impl Iterator<Item = char> {
    let (first, last) = field.trim().split_once("..").unwrap_or((field, field));
    let number = |digits: &str| u32::from_str_radix(digits.trim(), 16).expect("a code point");
    (number(first)..=number(last)).filter_map(char::from_u32)
}

fn model(tokenizer: Tokenizer, normalize: Normalize) -> Model {
    let spec = Spec {
        tokenizer,
        normalize,
        min_features: 0,
        ..Spec::default()
    };
    Model::plain(spec).expect("no tables")
}

#[test]
fn characters_are_folded_as_unicode_says() {
    let (Some(ages), Some(properties)) = (
        lines("DerivedAge.txt"),
        lines("DerivedNormalizationProps.txt"),
    ) else {
        return;
    };
    let mut folded: HashMap<char, String> = HashMap::new();
    for line in properties {
        let fields: Vec<&str> = line.split(';').map(str::trim).collect();
        if let [field, "NFKC_CF", mapping] = fields[..] {
            let mapping: String = mapping.split_whitespace().flat_map(characters).collect();
            folded.extend(characters(field).map(|c| (c, mapping.clone())));
        }
    }
    assert!(folded.len() > 10_000, "{}", folded.len());
    let nfc = ComposingNormalizerBorrowed::new_nfc();
    let spec = model(Tokenizer::Words, Normalize::NfkcCasefold);
    let mut similarity = Similarity::new(Measure::Jaccard, spec);
    let mut compared = 0;
    for c in ages
        .iter()
        .flat_map(|line| characters(line.split(';').next().unwrap_or_default()))
    {
        let mapping = folded.get(&c).cloned().unwrap_or_else(|| c.into());
        // What the spec adds: apostrophes and hyphens are alike, and a tatweel only stretches a word.
        let mapping: String = mapping
            .chars()
            .filter(|c| *c != '\u{640}')
            .map(|c| match c {
                '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2bb}' | '\u{2bc}' => '\'',
                '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
                c => c,
            })
            .collect();
        let expected = nfc.normalize(&mapping);
        assert_eq!(
            similarity.compared(&c.to_string()),
            expected,
            "U+{:04X}",
            c as u32
        );
        compared += 1;
    }
    assert!(compared > 140_000, "{compared}");
}

#[test]
fn texts_are_cut_into_words_as_unicode_says() {
    let Some(lines) = lines("auxiliary/WordBreakTest.txt") else {
        return;
    };
    let mut words = Fingerprinter::new(model(Tokenizer::Words, Normalize::AsIs));
    assert!(lines.len() > 1_000, "{}", lines.len());
    // The library does not treat U+2701 as a pictograph, and the file does.
    for line in lines.iter().filter(|line| !line.contains("200D × 2701")) {
        let pieces = line
            .split('÷')
            .map(str::trim)
            .filter(|piece| !piece.is_empty());
        let pieces: Vec<String> = pieces
            .map(|piece| piece.split('×').flat_map(characters).collect())
            .collect();
        let expected: Vec<&str> = pieces
            .iter()
            .map(String::as_str)
            .filter(|piece| piece.contains(char::is_alphanumeric))
            .collect();
        let mut found = Vec::new();
        words.for_each_feature(&pieces.concat(), |_, word| found.push(word.to_owned()));
        assert_eq!(found, expected, "{line}");
    }
}
