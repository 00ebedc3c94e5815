//! Answers for people: a table for each query.

use lookup::{Answer, LookupOptions};
use unicode_segmentation::UnicodeSegmentation as _;

use super::queries::Asked;
use crate::printing::{heading, visible};

/// The most characters of a text that its heading shows.
const SHOWN: usize = 60;

/// Writes the answer to a query.
pub(super) fn write(
    text: &mut String,
    asked: &Asked,
    answer: &Answer,
    wanted: &LookupOptions,
    colours: bool,
) {
    let k = wanted.k;
    let given = asked
        .query
        .text
        .as_deref()
        .map_or_else(String::new, shortened);
    let Some(fingerprint) = answer.fingerprint else {
        *text += &format!(
            "{}: no fingerprint, the text has too few features\n\n",
            heading(&given, colours)
        );
        return;
    };
    *text += &if given.is_empty() {
        heading(&format!("{fingerprint:016x}"), colours)
    } else {
        format!("{} ({fingerprint:016x})", heading(&given, colours))
    };
    text.push('\n');
    if answer.hits.is_empty() {
        let similar = if wanted.min_similarity > 0.0 {
            " that is similar enough"
        } else {
            ""
        };
        *text += &format!("  nothing within {k} bits{similar}\n\n");
        return;
    }
    let with_similarity = answer.hits.iter().any(|hit| hit.similarity.is_some());
    let similarity_heading = if with_similarity { "  similarity" } else { "" };
    *text += &format!("  distance{similarity_heading}  day         id\n");
    for hit in &answer.hits {
        let day = hit
            .day
            .map_or_else(|| "-".to_owned(), |day| day.to_string());
        let similarity = match (with_similarity, hit.similarity) {
            (false, _) => String::new(),
            (true, None) => format!("  {:>10}", "-"),
            (true, Some(similarity)) => format!("  {similarity:>10.2}"),
        };
        *text += &format!(
            "  {:>8}{similarity}  {day:<10}  {}\n",
            hit.distance,
            visible(&hit.id.to_string())
        );
    }
    if answer.more {
        text.push_str("  … there are more hits than --limit\n");
    }
    text.push('\n');
}

/// The beginning of a text, on one line.
pub(super) fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut characters = line.graphemes(true);
    let shown: String = characters.by_ref().take(SHOWN).collect();
    let dots = if characters.next().is_some() {
        "…"
    } else {
        ""
    };
    visible(&format!("“{shown}{dots}”"))
}
