//! Fuzzes fingerprints and similarities with arbitrary texts.
//!
//! No tokenizer panics, and every kernel makes the same fingerprint. The features of
//! `words+cjk-bigrams` equal their definition, which the Unicode libraries compute over the whole
//! text. Every similarity is symmetric and from 0 to 1. The article of a page is a part of its visible text.
#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use icu_casemap::CaseMapper;
use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::CodePointSetData;
use icu_properties::props::DefaultIgnorableCodePoint;
use libfuzzer_sys::fuzz_target;
use simhash::tokenize::cjk::is_cjk;
use simhash::tokenize::unspaced::is_unspaced;
use simhash::{Choice as _, Fingerprinter, Fold, Kernel, Markup, Measure, Model, Normalize, Similarity, Spec, Tokenizer, Weight};
use unicode_segmentation::UnicodeSegmentation as _;

/// Models of every tokenizer, each with combinations of weight, folding and markup.
static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| {
    let choices = [
        (Weight::Tf, Normalize::NfkcCasefold, Fold::None, Markup::None),
        (Weight::Levels, Normalize::Nfkc, Fold::Marks, Markup::Text),
        (Weight::LogTf, Normalize::AsIs, Fold::None, Markup::Main),
        (Weight::SqrtTf, Normalize::NfkcCasefold, Fold::Marks, Markup::Text),
        (Weight::Set, Normalize::Nfkc, Fold::None, Markup::Main),
    ];
    let specs = Tokenizer::examples().into_iter().flat_map(|tokenizer| {
        choices.map(|(weight, normalize, fold, markup)| {
            let spec = Spec { tokenizer, weight, normalize, fold, min_features: 0, ..Spec::default() };
            spec.with_markup(markup)
        })
    });
    specs.map(|spec| Model::plain(spec).expect("no tables")).collect()
});

/// The model whose features [`by_definition`] counts.
static BIGRAMS: LazyLock<Model> = LazyLock::new(|| {
    // One of `MODELS`, so that it is reached there.
    let weight = Weight::Tf;
    let spec =
        Spec { tokenizer: Tokenizer::WordsCjkBigrams, weight, min_features: 0, ..Spec::default() };
    Model::plain(spec).expect("no tables")
});

/// A model that cuts texts otherwise, as its similarities do.
static CODE: LazyLock<Model> = LazyLock::new(|| {
    let spec = Spec { tokenizer: Tokenizer::Code, min_features: 0, ..Spec::default() };
    Model::plain(spec).expect("no tables")
});

/// Folds a text by Unicode's definition of NFKC_Casefold, with tatweel left out and one apostrophe and one hyphen for all.
fn folded(text: &str) -> String {
    let invisible = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let nfkc = ComposingNormalizerBorrowed::new_nfkc();
    let as_read = |text: &str| -> String {
        let seen = text.chars().filter(|c| *c != '\u{640}' && !invisible.contains(*c));
        let one_for_all = seen.map(|c| match c {
            '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2bb}' | '\u{2bc}' => '\'',
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            c => c,
        });
        nfkc.normalize(&one_for_all.collect::<String>()).into_owned()
    };
    as_read(&nfkc.normalize(&CaseMapper::new().fold_string(&as_read(text))))
}

/// Counts words, bigrams of CJK characters, and four characters of scripts without spaces by their definitions.
fn by_definition(text: &str) -> BTreeMap<String, u32> {
    let folded = folded(text);
    let mut counts = BTreeMap::new();
    let mut count = |feature: &str| *counts.entry(feature.to_owned()).or_default() += 1;
    let mut rest = &*folded;
    while !rest.is_empty() {
        let is_in_run = |c: char| is_cjk(c) || is_unspaced(c);
        let (spaced, from) = rest.split_at(rest.find(is_in_run).unwrap_or(rest.len()));
        spaced.unicode_words().for_each(&mut count);
        let is_han = from.starts_with(is_cjk);
        let goes_on = |c: char| if is_han { is_cjk(c) } else { is_unspaced(c) };
        let (run, after) = from.split_at(from.find(|c| !goes_on(c)).unwrap_or(from.len()));
        let characters: Vec<char> = run.chars().collect();
        let gram = if is_han { 2 } else { 4 };
        match characters.len() {
            0 => {}
            short if short < gram => count(run),
            _ => characters.windows(gram).for_each(|gram| count(&gram.iter().collect::<String>())),
        }
        rest = after;
    }
    counts
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for model in MODELS.iter() {
        let [first, others @ ..] = &Kernel::available()[..] else { return };
        let mut fingerprinter = Fingerprinter::with_kernel(model.clone(), *first);
        let expected = fingerprinter.fingerprint(&text);
        for kernel in others {
            let found = Fingerprinter::with_kernel(model.clone(), *kernel).fingerprint(&text);
            assert_eq!(found, expected, "{} under {:?}", kernel.name(), model.spec());
        }
        let features = fingerprinter.features(&text);
        if *model == *BIGRAMS {
            let found: BTreeMap<String, u32> =
                features.into_iter().map(|feature| (feature.feature, feature.occurrences)).collect();
            assert_eq!(found, by_definition(&text));
        }
    }
    // Nothing is in the article that is not visible; if anything is visible, something is in the article.
    let letters = |markup: Markup| {
        let mut shown = String::new();
        markup.strip(&text, &mut shown);
        shown.chars().filter(|c| !c.is_whitespace()).count()
    };
    let (visible, article) = (letters(Markup::Text), letters(Markup::Article));
    assert!(article <= visible && (article == 0) == (visible == 0), "{article} letters of {visible}");
    let half = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    let (a, b) = text.split_at(half);
    for measure in Measure::examples() {
        // The words of the Jaccard similarity are those of the tokenizer for code, or else words.
        let is_code = text.len() % 2 == 0;
        let model = if is_code { &CODE } else { &BIGRAMS };
        let mut similarity = Similarity::new(measure, Model::clone(model));
        let (x, y) = (similarity.prepare(a), similarity.prepare(b));
        let found = Similarity::between(&x, &y, 0.0);
        assert!((0.0..=1.0).contains(&found), "{measure:?} {found}");
        assert_eq!(found, Similarity::between(&y, &x, 0.0));
        assert!(Similarity::between(&x, &x, 0.0) > 1.0 - 1e-9);
    }
});
