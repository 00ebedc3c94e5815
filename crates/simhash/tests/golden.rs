//! Golden fingerprints: a change that alters any bit needs a new version of the spec.
//!
//! `golden.txt` has one line for each spec and text: the name of the spec, the name of the text, and the fingerprint or `-`.
//! `golden-jieba.txt` has the lines of `words+jieba`, for builds with the feature `jieba`, and `golden-article.txt` those of
//! `--markup article`, for builds with the feature `article`.

use std::fmt::Write as _;
use std::sync::Arc;

use simhash::{
    DocumentFrequencies, Fingerprinter, Idf, IdfPower, Kernel, Markup, Model, Normalize, Spec,
    StopWords, Tokenizer, Weight,
};

const TEXTS: [(&str, &str); 5] = [
    (
        "english",
        "Near-duplicate web documents are abundant. Two such documents differ from each other in a very small portion \
         that displays advertisements, for example. It's 3.14; e.g. a_b, 1,000.50 and \u{201c}naïve\u{201d} Straße.",
    ),
    (
        "chinese",
        "近似重复的网页非常多，近似重复的网页只在广告、计数器和日期上不同；广告最多，日期次之。第３章 Rust语言。",
    ),
    (
        "mixed",
        "ｶﾞ・かな カタカナ 한국어 텍스트 e\u{301}té İstanbul ΑΒΓ где ПРИВЕТ, שלום \u{1f468}\u{200d}\u{1f469} 👍 ﬁne ㍿",
    ),
    (
        "page",
        "<html><head><title>T</title></head><body><nav>Home</nav><p>One <b>two</b> three four five</p></body></html>",
    ),
    ("short", "404 Not Found"),
];

/// A spec of words and bigrams of CJK characters with weight [`Weight::Tf`], changed by `change`.
fn spec(change: impl FnOnce(&mut Spec)) -> Spec {
    let mut spec = Spec {
        tokenizer: Tokenizer::WordsCjkBigrams,
        weight: Weight::Tf,
        ..Spec::default()
    };
    change(&mut spec);
    spec
}

fn models() -> Vec<(String, Model)> {
    let plain = |spec: Spec| Model::plain(spec).unwrap();
    let mut models = vec![("default".to_owned(), plain(Spec::default()))];
    for (tokenizer, weight) in [Tokenizer::WordsCjkBigrams, Tokenizer::WordsCjkGrams]
        .into_iter()
        .flat_map(|tokenizer| {
            [
                Weight::Tf,
                Weight::LogTf,
                Weight::SqrtTf,
                Weight::Set,
                Weight::Levels,
            ]
            .map(|weight| (tokenizer, weight))
        })
    {
        let without = spec(|spec| (spec.tokenizer, spec.weight) = (tokenizer, weight));
        let name = serde_json::to_value(weight).unwrap();
        let name = match tokenizer {
            Tokenizer::WordsCjkBigrams => name.as_str().unwrap().to_owned(),
            _ => format!("{tokenizer},{}", name.as_str().unwrap()),
        };
        models.push((name.clone(), plain(without.clone())));
        let frequencies = DocumentFrequencies {
            documents: 100,
            rest: 2,
            features: [("a", 90), ("的网", 60), ("documents", 40)]
                .map(|(feature, frequency)| (feature.to_owned(), frequency))
                .into(),
        };
        let idf = Arc::new(Idf::new(&without, &frequencies).unwrap());
        let with = Spec {
            idf: Some(idf.digest().to_owned()),
            ..without.clone()
        };
        models.push((
            format!("{name}+idf"),
            Model::new(with, Some(idf), None).unwrap(),
        ));
        if weight == Weight::SqrtTf {
            for power in [IdfPower::ThreeQuarters, IdfPower::Half, IdfPower::Quarter] {
                let mut spec = without.clone();
                spec.idf_power = power;
                let idf = Arc::new(Idf::new(&spec, &frequencies).unwrap());
                spec.idf = Some(idf.digest().to_owned());
                let model = Model::new(spec, Some(idf), None).unwrap();
                models.push((format!("{name}+idf^{power}"), model));
            }
        }
    }
    for tokenizer in [
        Tokenizer::Words,
        Tokenizer::WordsCjkBigrams,
        Tokenizer::WordsCjkGrams,
        Tokenizer::Shingles(3),
        Tokenizer::WordsAndShingles(2),
        Tokenizer::Chars(2),
        Tokenizer::Chars(4),
        Tokenizer::LongestSentences(2),
    ] {
        let spec = spec(|spec| {
            spec.tokenizer = tokenizer;
            spec.min_features = 1;
        });
        models.push((tokenizer.to_string(), plain(spec)));
    }
    for (name, change) in [
        (
            "nfkc",
            (|spec: &mut Spec| spec.normalize = Normalize::Nfkc) as fn(&mut Spec),
        ),
        ("as-is", |spec| spec.normalize = Normalize::AsIs),
        ("text", |spec| {
            *spec = spec.clone().with_markup(Markup::Text);
        }),
        ("main", |spec| {
            *spec = spec.clone().with_markup(Markup::Main);
        }),
        ("seed-7", |spec| spec.seed = 7),
        ("min-features-2", |spec| spec.min_features = 2),
    ] {
        models.push((name.to_owned(), plain(spec(change))));
    }
    let list = Arc::new(StopWords::parse("the\na\nin\nI", &Spec::default()));
    for tokenizer in [Tokenizer::WordsCjkBigrams, Tokenizer::Shingles(2)] {
        let spec = spec(|spec| {
            spec.stop_words = Some(list.digest().to_owned());
            spec.tokenizer = tokenizer;
        });
        let model = Model::new(spec, None, Some(Arc::clone(&list))).unwrap();
        models.push((format!("{tokenizer}+stop-words"), model));
    }
    models
}

#[test]
fn golden_fingerprints() {
    check(&models(), include_str!("golden.txt"));
}

#[cfg(feature = "jieba")]
#[test]
fn golden_fingerprints_of_dictionary_words() {
    let spec = spec(|spec| spec.tokenizer = Tokenizer::WordsJieba);
    let models = [("words+jieba".to_owned(), Model::plain(spec).unwrap())];
    check(&models, include_str!("golden-jieba.txt"));
}

#[cfg(feature = "article")]
#[test]
fn golden_fingerprints_of_articles() {
    let spec = spec(|spec| *spec = spec.clone().with_markup(Markup::Article));
    let models = [("article".to_owned(), Model::plain(spec).unwrap())];
    check(&models, include_str!("golden-article.txt"));
}

fn check(models: &[(String, Model)], golden: &str) {
    for kernel in Kernel::available() {
        let mut found = String::new();
        for (name, model) in models {
            let mut fingerprinter = Fingerprinter::with_kernel(model.clone(), kernel);
            for (text_name, text) in TEXTS {
                let bits = fingerprinter.fingerprint(text);
                let bits = bits.map_or("-".to_owned(), |bits| format!("{bits:016x}"));
                writeln!(found, "{name} {text_name} {bits}").unwrap();
            }
        }
        assert!(
            found == golden,
            "{} gives other fingerprints than the golden ones:\n{found}",
            kernel.name()
        );
    }
}

/// From the first release on, another text of a page needs another version of the markup removal.
#[test]
fn golden_texts_of_a_page() {
    check_text_of_page(Markup::Text, include_str!("page-text.txt"));
    check_text_of_page(Markup::Main, include_str!("page-main.txt"));
}

/// A release of the library that gives another text is another version of the markup removal.
#[cfg(feature = "article")]
#[test]
fn golden_article_of_a_page() {
    check_text_of_page(Markup::Article, include_str!("page-article.txt"));
}

fn check_text_of_page(markup: Markup, golden: &str) {
    let page = include_str!("page.html");
    let mut text = String::new();
    markup.strip(page, &mut text);
    text.push('\n');
    assert!(text == golden, "{markup} gives another text:\n{text}");
    let fingerprint = |spec, text: &str| {
        let mut fingerprinter = Fingerprinter::new(Model::plain(spec).unwrap());
        fingerprinter.fingerprint(text).unwrap()
    };
    assert_eq!(
        fingerprint(Spec::default().with_markup(markup), page),
        fingerprint(Spec::default(), golden),
    );
}

/// The features and weights that users see add up to the fingerprint.
#[test]
fn features_add_up_to_the_fingerprint() {
    for (name, model) in models() {
        let mut fingerprinter = Fingerprinter::new(model);
        for (text_name, text) in TEXTS {
            let features = fingerprinter.features(text);
            let mut expected = 0u64;
            for bit in 0..64 {
                let sum: i128 = features
                    .iter()
                    .map(|feature| match feature.hash >> bit & 1 {
                        1 => i128::from(feature.weight),
                        _ => -i128::from(feature.weight),
                    })
                    .sum();
                expected |= u64::from(sum > 0) << bit;
            }
            let enough = features.len() >= fingerprinter.spec().min_features as usize;
            assert_eq!(
                fingerprinter.fingerprint(text),
                enough.then_some(expected),
                "{name} {text_name}"
            );
        }
    }
}

/// Archives exist under these three specs, so their fingerprints never change.
#[test]
fn specs_of_the_first_version_stay() {
    let page = "Near-duplicate web documents are abundant. Two such documents differ \
        from each other in a very small portion that displays advertisements, for example.";
    let chinese =
        "近似重复的网页非常多，近似重复的网页只在广告、计数器和日期上不同；广告最多，日期次之。";
    for (weight, expected) in [
        (Weight::Tf, [0x6355_5203_1618_7151, 0xf7b1_b6c4_bc88_3b9a]),
        (
            Weight::LogTf,
            [0x6355_5203_1618_7151, 0xf7b1_b6c4_bc88_3b9a],
        ),
        (Weight::Set, [0x6255_1203_1618_3141, 0xf7b1_f645_bccc_bb1a]),
    ] {
        let model = Model::plain(spec(|spec| spec.weight = weight)).unwrap();
        let mut fingerprinter = Fingerprinter::new(model);
        let found = [page, chinese].map(|text| fingerprinter.fingerprint(text).unwrap());
        assert_eq!(found, expected, "{weight:?}");
    }
}

#[test]
fn too_few_features_have_no_fingerprint() {
    for weight in [Weight::Tf, Weight::LogTf, Weight::Set, Weight::Levels] {
        let model = Model::plain(spec(|spec| spec.weight = weight)).unwrap();
        let mut fingerprinter = Fingerprinter::new(model);
        for text in ["", "404", "404 Not Found", "a a a a a a a a", "…!?"] {
            assert_eq!(fingerprinter.fingerprint(text), None, "{text:?}");
        }
        assert!(fingerprinter.fingerprint("a b c d").is_some());
    }
    let any = Model::plain(spec(|spec| spec.min_features = 0)).unwrap();
    assert_eq!(Fingerprinter::new(any).fingerprint(""), Some(0));
}

#[test]
fn small_edits_stay_near_and_other_pages_far() {
    let mut fingerprinter = Fingerprinter::new(Model::plain(Spec::default()).unwrap());
    let page = TEXTS[0].1.repeat(20);
    let edited = page.replacen("abundant", "everywhere", 1);
    let a = fingerprinter.fingerprint(&page).unwrap();
    let b = fingerprinter.fingerprint(&edited).unwrap();
    let c = fingerprinter
        .fingerprint("An entirely different page about growing tomatoes on a balcony in spring")
        .unwrap();
    assert!((a ^ b).count_ones() <= 3);
    assert!((a ^ c).count_ones() > 12);
}
