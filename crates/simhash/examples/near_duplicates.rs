//! Prints the fingerprints of a few texts, and the distance of every pair of them.
//!
//! ```console
//! cargo run --release -p dedup-simhash --example near_duplicates
//! ```

use simhash::{Fingerprinter, Model, ModelError, Spec};

const TEXTS: [(&str, &str); 4] = [
    (
        "article",
        "Near-duplicate web pages are abundant. Two such pages differ from each other in a very small portion, for example \
         in their advertisements. Such differences are irrelevant for web search, and a crawler that detects them saves \
         network bandwidth, storage and time.",
    ),
    (
        "edited",
        "Near-duplicate web pages are abundant. Two such pages differ from each other in a very small portion, for example \
         in their counters. Such differences are irrelevant for web search, and a crawler that detects them saves network \
         bandwidth, storage and time.",
    ),
    (
        "recipe",
        "Peel the tomatoes, cut them into small pieces and cook them with garlic and olive oil for twenty minutes.",
    ),
    ("error", "404 Not Found"),
];

fn main() -> Result<(), ModelError> {
    let mut fingerprinter = Fingerprinter::new(Model::plain(Spec::default())?);
    let mut known: Vec<(&str, u64)> = Vec::new();
    for (name, text) in TEXTS {
        match fingerprinter.fingerprint(text) {
            Some(fingerprint) => {
                println!("{name}: {fingerprint:016x}");
                known.push((name, fingerprint));
            }
            None => println!("{name}: no fingerprint, too few features"),
        }
    }
    for (at, (a, x)) in known.iter().enumerate() {
        for (b, y) in &known[at + 1..] {
            println!("{a} and {b}: distance {}", (x ^ y).count_ones());
        }
    }
    Ok(())
}
