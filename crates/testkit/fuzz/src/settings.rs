//! Fuzzes the parsers of specs, tables of document frequencies, file tags, id lists, stop words, and the configuration
//! file.
#![no_main]

use std::ffi::OsString;
use std::sync::{Arc, LazyLock};

use archive::{IdSet, IdType, Tail, frequencies};
use inputs::{Input, assert_not_internal, edited, json_edits, run, scratch};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use simhash::{DocumentFrequencies, Fingerprinter, Idf, IdfPower, Model, Spec, StopWords};

// The program has no library target, so its modules are compiled here again.
#[allow(dead_code, unused_imports)]
#[path = "../../../../jobs/commands/src/args/mod.rs"]
mod args;
#[path = "../../../../jobs/commands/src/config.rs"]
mod config;
#[allow(dead_code)]
#[path = "../../../../jobs/commands/src/exit.rs"]
mod exit;
#[allow(dead_code)]
#[path = "../../../../jobs/commands/src/own_names.rs"]
mod own_names;

const TAG: &str = "xxh3-16384:10:20:00000000000000ff:0000000000000001";
const CONFIGURATION: &str = r#"
threads = 2
memory-limit = "4GiB"
scratch = "/tmp"
retry-deadline = "3m"

[run]
new = ["a.parquet", "b.jsonl"]
base = "s3://bucket/archive"
max-distance = 3
within = false
day = 2026-01-31
append = true
min-similarity = 0.8

[plan]
design = "blocks-4"
"#;
const COMMANDS: [&str; 5] = ["run", "plan", "fingerprint", "idf", "sql"];

static FREQUENCIES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let frequencies = DocumentFrequencies {
        documents: 9,
        rest: 1,
        features: vec![("the".into(), 9), ("近似".into(), 2)],
    };
    frequencies::encode("x", &Spec::default(), &frequencies).expect("a table")
});

fuzz_target!(|bytes: &[u8]| run(|| {
    let mut input = Input::new(bytes);
    match input.byte() % 7 {
        0 => parse_spec(&text(&input)),
        1 => {
            let template = Spec::default().to_json();
            let template: Value = serde_json::from_str(&template).expect("JSON");
            parse_spec(&json_edits::edited(&template, &mut input).to_string());
        }
        2 => decode_frequencies(edited(&FREQUENCIES, &mut input)),
        3 => parse_tag(&String::from_utf8_lossy(&edited(
            TAG.as_bytes(),
            &mut input,
        ))),
        4 => {
            let text = text(&input);
            let id_type = [IdType::String, IdType::Bigint][usize::from(bytes.len() % 2 == 0)];
            if let Ok(ids) = IdSet::parse(text.lines(), id_type) {
                assert!(ids.len() <= text.lines().count());
            }
            let _ = StopWords::decode(&text);
            let _ = StopWords::parse(&text, &Spec::default());
        }
        _ => parse_configuration(input),
    }
}));

fn text(input: &Input<'_>) -> String {
    String::from_utf8_lossy(input.clone().rest()).into_owned()
}

/// Parses a spec; one that parses survives a round trip, and makes fingerprints.
fn parse_spec(text: &str) {
    let Ok(spec) = Spec::from_json(text) else {
        return;
    };
    assert_eq!(Spec::from_json(&spec.to_json()).expect("a spec"), spec);
    let _ = spec.differences(&Spec::default());
    if let Ok(model) = Model::plain(spec) {
        Fingerprinter::new(model).fingerprint("One text, with some words. 近似 и слова!");
    }
}

/// Decodes a table of document frequencies, and makes a fingerprint with its weights.
fn decode_frequencies(bytes: Vec<u8>) {
    match frequencies::decode("x", bytes.into()) {
        Err(error) => assert_not_internal(error.kind(), &error),
        Ok((spec, found)) => {
            let wanted = Spec {
                seed: 7,
                idf_power: IdfPower::Half,
                ..Spec::default()
            };
            if let Ok(idf) = frequencies::weights("x", &spec, &wanted, &found) {
                let digest = Some(Idf::digest(&idf).to_owned());
                let spec = Spec {
                    idf: digest,
                    ..wanted
                };
                if let Ok(model) = Model::new(spec, Some(Arc::new(idf)), None) {
                    Fingerprinter::new(model).fingerprint("the one and the other of the words");
                }
            }
        }
    }
}

/// Parses a file tag; one that parses survives a round trip.
fn parse_tag(text: &str) {
    if let Ok(tail) = Tail::try_from(text.to_owned()) {
        assert_eq!(Tail::try_from(tail.to_string()), Ok(tail));
    }
    let _ = serde_json::from_value::<Tail>(text.into());
}

/// Parses a command line with a configuration file; it parses, or is refused with exit code 78 or by clap.
fn parse_configuration(mut input: Input<'_>) {
    let command = COMMANDS[input.below(COMMANDS.len())];
    let text = match input.byte() % 4 {
        0 => input.rest().to_vec(),
        _ => edited(CONFIGURATION.as_bytes(), &mut input),
    };
    let path = scratch().join("config.toml");
    std::fs::write(&path, text).expect("a file");
    let arguments = [
        "dedup-job".into(),
        command.into(),
        "--config".into(),
        OsString::from(&path),
    ];
    match config::parse(&arguments) {
        Ok(_) => {}
        Err(exit::Failure::Clap(error)) => {
            error.to_string();
        }
        Err(failure) => {
            assert_eq!(failure.code(), 78, "{failure}");
        }
    }
}
