//! Compares two texts word by word, for `show` and `report`.

use std::collections::HashMap;

use similar::{Algorithm, DiffTag, capture_diff_slices};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::printing::visible;

/// The most words and separators compared of a text. The time grows with the square of the number
/// that differ.
const MAX_WORDS: usize = 5000;
/// Texts with fewer of their words in common than one in this number are not compared word by word.
const COMMON: usize = 4;
/// The most bytes in which the bounds of words are sought at a time: the time for a run of combining marks grows with its square.
const PIECE: usize = 256;
/// Stands for the words that are not compared.
const CUT: &str = "…";
/// Equal words and separators that are shown before and after a difference.
const CONTEXT: usize = 12;

/// A part of one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Words that both texts have.
    Equal(String),
    /// Words that the other text does not have at this place.
    Differing(String),
    /// A number of words that both texts have and that are not shown.
    Hidden(usize),
}

/// The two sides of a comparison.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sides {
    pub left: Vec<Part>,
    pub right: Vec<Part>,
    /// Whether a text was too long, so that only its start is compared.
    pub cut: bool,
}

impl Sides {
    /// The number of differing words on the side that has more of them.
    pub fn differing_words(&self) -> u64 {
        self.larger_sum(|part| match part {
            Part::Differing(words) => count_words(words),
            Part::Equal(_) | Part::Hidden(_) => 0,
        })
    }

    /// The number of words of the longer text.
    pub fn words(&self) -> u64 {
        self.larger_sum(|part| match part {
            Part::Equal(words) | Part::Differing(words) => count_words(words),
            Part::Hidden(words) => *words as u64,
        })
    }

    /// The counts of a side's parts together, on the side that has more.
    fn larger_sum(&self, count: impl Fn(&Part) -> u64) -> u64 {
        let sum = |side: &[Part]| side.iter().map(&count).sum::<u64>();
        sum(&self.left).max(sum(&self.right))
    }
}

fn count_words(text: &str) -> u64 {
    let words = word_bounds(text).filter(|word| word.chars().any(char::is_alphanumeric));
    words.count() as u64
}

/// The words of a text and what is between them.
fn word_bounds(text: &str) -> impl Iterator<Item = &str> {
    let tokens = text.split_inclusive(char::is_whitespace);
    tokens.flat_map(pieces).flat_map(str::split_word_bounds)
}

/// The text in pieces of at most [`PIECE`] bytes.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE.min(rest.len())));
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Whether at least one in [`COMMON`] words of the shorter text is in the other one, too.
fn have_common_words(left: &[String], right: &[String]) -> bool {
    let is_word = |word: &&String| word.chars().any(char::is_alphanumeric);
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in left.iter().filter(is_word) {
        *counts.entry(word).or_default() += 1;
    }
    let all = left.iter().filter(is_word).count();
    let (mut common, mut others) = (0, 0);
    for word in right.iter().filter(is_word) {
        others += 1;
        if let Some(count) = counts.get_mut(word.as_str()).filter(|count| **count > 0) {
            *count -= 1;
            common += 1;
        }
    }
    common * COMMON >= all.min(others)
}

/// Compares two texts word by word.
pub fn compare(left: &str, right: &str) -> Sides {
    let ((a, a_is_cut), (b, b_is_cut)) = (words(left), words(right));
    let mut sides = Sides {
        cut: a_is_cut || b_is_cut,
        ..Sides::default()
    };
    if !have_common_words(&a, &b) {
        sides.left.push(Part::Differing(a.concat()));
        sides.right.push(Part::Differing(b.concat()));
        return sides;
    }
    let operations = capture_diff_slices(Algorithm::Myers, &a, &b);
    for (at, operation) in operations.iter().enumerate() {
        let (tag, old, new) = operation.as_tag_tuple();
        if tag == DiffTag::Equal {
            let is_last = at + 1 == operations.len();
            let before = if at == 0 { 0 } else { CONTEXT };
            let after = if is_last { 0 } else { CONTEXT };
            for side in [&mut sides.left, &mut sides.right] {
                push_equal(side, &a[old.clone()], before, after);
            }
            continue;
        }
        if !old.is_empty() {
            sides.left.push(Part::Differing(a[old].concat()));
        }
        if !new.is_empty() {
            sides.right.push(Part::Differing(b[new].concat()));
        }
    }
    sides
}

/// Pushes equal words; of a long run, only the first `before` and the last `after`. If the whole
/// texts are equal, pushes their start.
fn push_equal(side: &mut Vec<Part>, same: &[String], before: usize, after: usize) {
    let before = if before + after == 0 {
        4 * CONTEXT
    } else {
        before
    };
    let is_long = same.len() > before + after + CONTEXT;
    if !is_long {
        side.push(Part::Equal(same.concat()));
        return;
    }
    let (first, rest) = same.split_at(before);
    let (hidden, last) = rest.split_at(rest.len() - after);
    if !first.is_empty() {
        side.push(Part::Equal(first.concat()));
    }
    let words = hidden.iter().map(|word| count_words(word)).sum::<u64>();
    side.push(Part::Hidden(words as usize));
    if !last.is_empty() {
        side.push(Part::Equal(last.concat()));
    }
}

/// The first words of a template, on one line; `None` if the template has no words.
pub fn template_start(template: &str) -> Option<String> {
    /// Characters that are shown.
    const SHOWN: usize = 300;
    let words: Vec<&str> = template.split_whitespace().collect();
    let line = words.join(" ");
    if line.is_empty() {
        return None;
    }
    let Some((most, _)) = line.char_indices().nth(SHOWN) else {
        return Some(line);
    };
    let ends = line[..most].split_word_bound_indices();
    // The last word may be cut.
    let end = ends.map(|(at, _)| at).next_back().filter(|at| *at > 0);
    Some(format!("{}{CUT}", &line[..end.unwrap_or(most)]))
}

/// Splits a text into words and separators. Collapses white space to one space, and replaces
/// characters that control the terminal. The flag says whether the text has more words.
fn words(text: &str) -> (Vec<String>, bool) {
    let mut words: Vec<String> = Vec::new();
    for word in word_bounds(text) {
        if words.len() == MAX_WORDS {
            words.push(CUT.to_owned());
            return (words, true);
        }
        if !word.chars().all(char::is_whitespace) {
            words.push(visible(word));
        } else if words.last().is_some_and(|last| last != " ") {
            words.push(" ".to_owned());
        }
    }
    (words, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_template_is_one_short_line() {
        let start = |template: &str| template_start(template).unwrap_or_default();
        assert_eq!(template_start(" \n\t"), None);
        assert_eq!(start("Home\n  News \n"), "Home News");
        assert_eq!(start(&"a".repeat(300)), "a".repeat(300));
        assert_eq!(start(&"a".repeat(301)), "a".repeat(300) + CUT);
        let han = start(&"近似文書".repeat(100));
        assert!((299..=300).contains(&(han.chars().count() - 1)), "{han}");
        let words = start(&"template ".repeat(100));
        assert!(
            words.ends_with("template …") && words.chars().count() < 302,
            "{words}"
        );
    }

    fn equal(text: &str) -> Part {
        Part::Equal(text.to_owned())
    }

    fn differing(text: &str) -> Part {
        Part::Differing(text.to_owned())
    }

    #[test]
    fn words_that_differ_are_told_apart() {
        let sides = compare("the  quick brown fox", "the quick red\tfox jumps");
        assert_eq!(
            sides.left,
            [equal("the quick "), differing("brown"), equal(" fox")]
        );
        assert_eq!(
            sides.right,
            [
                equal("the quick "),
                differing("red"),
                equal(" fox"),
                differing(" jumps")
            ]
        );
        // Each character of Chinese is a word.
        let sides = compare("重複文書", "重複書類");
        assert_eq!(sides.left, [equal("重複"), differing("文"), equal("書")]);
        assert_eq!(sides.right, [equal("重複"), equal("書"), differing("類")]);
    }

    #[test]
    fn long_equal_parts_are_hidden() {
        let long: String = (0..100).map(|number| format!("w{number} ")).collect();
        let sides = compare(&format!("{long}a {long}"), &format!("{long}b {long}"));
        let [
            Part::Hidden(before),
            Part::Equal(first),
            Part::Differing(a),
            Part::Equal(last),
            Part::Hidden(after),
        ] = &sides.left[..]
        else {
            panic!("{:?}", sides.left);
        };
        assert_eq!((*before, *after, a.as_str()), (94, 94, "a"));
        assert!(
            first.ends_with("w99 ") && last.starts_with(" w0"),
            "{first}{last}"
        );
        let same = compare(&long, &long);
        assert!(
            matches!(same.left[..], [Part::Equal(_), Part::Hidden(_)]),
            "{same:?}"
        );
    }

    #[test]
    fn nothing_steers_the_terminal() {
        let hostile = "a\u{1b}[31mb \u{7}\u{202e}c\u{0}";
        for part in compare(hostile, "").left {
            let (Part::Equal(text) | Part::Differing(text)) = part else {
                continue;
            };
            assert!(
                !text.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{0}']),
                "{text:?}"
            );
        }
    }
}
