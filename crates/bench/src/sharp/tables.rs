//! Prints the figures of all methods, a table for each question.

use super::corpora::Corpora;
use super::distances::MAX_DISTANCE;
use super::measured::{ARCHIVES, Measured};
use super::near::{J50, J70, J80, J95, Part};
use super::poisson::BOUND_OF_NONE;

/// The archive for which interval and extrapolation are printed.
const USUAL_ARCHIVE: f64 = ARCHIVES[1];

/// Width of the column of methods.
const NAME: usize = 54;

pub fn print(rows: &[Measured], corpora: &Corpora, distances: &[u32]) {
    print_false_pairs(rows, distances);
    for (at, part) in corpora.parts().enumerate() {
        print_part(rows, at, part, distances);
    }
    for (at, corpus) in corpora.all.iter().enumerate() {
        let lengths = corpus
            .short
            .iter()
            .map(|short| (short.words(), short.size()));
        let lengths: Vec<_> = lengths.filter(|(_, texts)| *texts > 0).collect();
        print_short(rows, at, &corpus.name, &lengths, distances);
        super::lengths::print(rows, at, &corpus.name);
    }
    print_speeds(rows, corpora);
}

/// Prints how many unrelated documents a new document meets.
fn print_false_pairs(rows: &[Measured], distances: &[u32]) {
    println!(
        "\nFalse pairs for each new document, by the size of the archive. With few events: ~ is extrapolated from\n\
         greater distances; with none: < is the bound with 95 % confidence. With a sketch, ~ is the number without it,\n\
         times the share of all pairs within {MAX_DISTANCE} bits that it keeps, and < the bound if it keeps none. Pairs share\n\
         documents, so the interval is too narrow; the last column is the range when one source is left out."
    );
    println!(
        "{:<NAME$} {:>3} {:>10} | {:>9} {:>9} {:>17} {:>9} {:>9} | {:>17}",
        "method", "k", "events", "1e8", "1e9", "95 %", "~1e9", "1e10", "without a source"
    );
    for row in rows {
        for &k in row.distances(distances) {
            let rate = row.false_pairs.rate(k);
            let [small, usual, large] = ARCHIVES.map(|archive| match rate.events {
                0 => format!("<{}", figure(rate.per_document(BOUND_OF_NONE, archive))),
                events => figure(rate.per_document(events as f64, archive)),
            });
            let per_document = |events: f64| rate.per_document(events, USUAL_ARCHIVE);
            let interval = range(per_document(rate.interval.0), per_document(rate.interval.1));
            let extrapolated = rate.extrapolated.map(per_document);
            let sign = if rate.extrapolated_is_bound { '<' } else { '~' };
            let extrapolated =
                extrapolated.map_or(String::new(), |n| format!("{sign}{}", figure(n)));
            let shares = row.false_pairs.shares_without_a_source(k);
            let without = shares.map_or(String::new(), |(least, greatest)| {
                range(least * USUAL_ARCHIVE, greatest * USUAL_ARCHIVE)
            });
            println!(
                "{:<NAME$} {:>3} {:>10} | {small:>9} {usual:>9} {interval:>17} {extrapolated:>9} {large:>9} | {without:>17}",
                row.name,
                k_of(row, k),
                rate.events
            );
        }
    }
}

/// Prints which pairs are found inside a source, or among revisions.
fn print_part(rows: &[Measured], at: usize, part: &Part, distances: &[u32]) {
    println!(
        "\nPairs inside {}: {} documents, with {} pairs at J >= .8 and {} at J >= .95 to find. P.8 is the share of\n\
         pairs with J >= .8, R.8 the share of those that are found; the last column is pairs per pair with J >= .8.",
        part.name,
        part.size(),
        part.relevant[J80],
        part.relevant[J95]
    );
    println!(
        "{:<NAME$} {:>3} {:>10} | {:>5} {:>5} {:>5} | {:>5} {:>5} {:>5} | {:>9}",
        "method", "k", "pairs", "P.8", "P.7", "J<.5", "R.95", "R.8", "R.7", "pairs/.8"
    );
    for row in rows {
        let Some(counts) = row.parts.get(at) else {
            continue;
        };
        for &k in row.distances(distances) {
            println!(
                "{:<NAME$} {:>3} {:>10} | {} {} {} | {} {} {} | {:>9}",
                row.name,
                k_of(row, k),
                counts.found.at_most(k),
                share(counts.precision(J80, k)),
                share(counts.precision(J70, k)),
                share(1.0 - counts.precision(J50, k)),
                share(counts.recall(part, J95, k)),
                share(counts.recall(part, J80, k)),
                share(counts.recall(part, J70, k)),
                figure(1.0 / counts.precision(J80, k)),
            );
        }
    }
}

/// Prints the recall of short texts in which one word is replaced. `lengths` has the words of a
/// text, and the number of such texts.
fn print_short(
    rows: &[Measured],
    at: usize,
    corpus: &str,
    lengths: &[(usize, usize)],
    distances: &[u32],
) {
    println!("\nRecall of texts cut from {corpus} in which one word is replaced");
    let width = 6 * distances.len() - 1;
    let headings = lengths.iter().map(|(words, texts)| {
        let heading = format!("{words} words ({texts})");
        format!("{heading:>width$}")
    });
    let ks: Vec<String> = distances.iter().map(|k| format!("{k:>5}")).collect();
    println!(
        "{:<NAME$} | {}",
        "",
        headings.collect::<Vec<_>>().join(" | ")
    );
    println!(
        "{:<NAME$} | {}",
        "method, k",
        vec![ks.join(" "); lengths.len()].join(" | ")
    );
    for row in rows {
        let Some(all) = row.short.get(at) else {
            continue;
        };
        let columns = all.iter().filter(|counts| counts.texts > 0).map(|counts| {
            let recalls = distances.iter().map(|&k| share(counts.recall(k)));
            recalls.collect::<Vec<_>>().join(" ")
        });
        println!(
            "{:<NAME$} | {}",
            row.name,
            columns.collect::<Vec<_>>().join(" | ")
        );
    }
}

/// Prints the speed of each method on each corpus.
fn print_speeds(rows: &[Measured], corpora: &Corpora) {
    println!(
        "\nMegabytes of text per second, and seconds, on one core: the fastest of several runs. Runs of other programs that\n\
         take more than ten seconds are not repeated."
    );
    let names = corpora
        .all
        .iter()
        .map(|corpus| format!("{:>20}", corpus.name));
    println!(
        "{:<NAME$} {}",
        "method",
        names.collect::<Vec<_>>().join(" ")
    );
    for row in rows.iter().filter(|row| !row.seconds.is_empty()) {
        let each = row.speeds(corpora).into_iter().zip(&row.seconds);
        let columns = each.map(|(speed, seconds)| format!("{speed:>9.1} {seconds:>8.2} s"));
        println!(
            "{:<NAME$} {}",
            row.name,
            columns.collect::<Vec<_>>().join(" ")
        );
    }
}

/// Formats `k`; empty for a method without distances.
fn k_of(row: &Measured, k: u32) -> String {
    if row.by_distance {
        k.to_string()
    } else {
        String::new()
    }
}

fn range(least: f64, greatest: f64) -> String {
    format!("{}..{}", figure(least), figure(greatest))
}

/// Formats a share in a column of five characters.
fn share(share: f64) -> String {
    if share.is_finite() {
        format!("{share:>5.3}")
    } else {
        format!("{:>5}", "-")
    }
}

/// Formats a number with about two digits.
fn figure(number: f64) -> String {
    if !number.is_finite() {
        "-".to_owned()
    } else if number == 0.0 {
        "0".to_owned()
    } else if (10.0..1e5).contains(&number) {
        format!("{number:.0}")
    } else if (0.01..10.0).contains(&number) {
        let digits = if number < 1.0 { 2 } else { 1 };
        format!("{number:.digits$}")
    } else {
        format!("{number:.1e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_about_two_digits() {
        let figures = [
            0.0,
            0.000_462,
            0.046,
            0.46,
            4.62,
            46.2,
            46_231.9,
            462_319.0,
            f64::NAN,
        ];
        assert_eq!(
            figures.map(figure),
            [
                "0", "4.6e-4", "0.05", "0.46", "4.6", "46", "46232", "4.6e5", "-"
            ]
        );
    }
}
