//! Extracts the words of source code and tables, with the signs and operators before them.

use super::{Extract, TakeFeature, cjk, unspaced};
use crate::text::Folded;

/// Extracts words, each with the signs and operators before it on its line: of `a < -limit`, the features are `a` and `<-limit`.
/// So a text whose signs or operators are others has other features. Signs behind the last word of a line are a feature.
#[derive(Debug, Clone, Default)]
pub(crate) struct Code {
    /// The features, one after the other.
    joined: Folded,
    /// Where each ends.
    ends: Vec<usize>,
}

/// The longest run of signs that is one feature, in bytes: a line of them is a rule, however long it is.
const MOST_SIGNS: usize = 8;

impl Extract for Code {
    fn extract(&mut self, text: &Folded, each: &mut impl TakeFeature) {
        let Self { joined, ends } = self;
        ends.clear();
        joined.fill(|out| cut(text.as_str(), out, ends));
        let mut start = 0;
        for &end in &*ends {
            each.take(joined.feature(start..end));
            start = end;
        }
    }
}

/// Appends the features of `text` to `out`, and their ends to `ends`.
fn cut(text: &str, out: &mut String, ends: &mut Vec<usize>) {
    // Whether a word is open, and where the open feature starts.
    let (mut in_word, mut start) = (false, 0);
    let mut characters = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = characters.next() {
        let after = characters.peek().copied().unwrap_or(' ');
        let is_point = c == '.' && before.is_ascii_digit() && after.is_ascii_digit();
        let is_of_word = c.is_alphanumeric() || c == '_' || is_point && in_word;
        let is_alone = is_of_word && (cjk::is_cjk(c) || unspaced::is_unspaced(c));
        // A word ends at every other character; signs, only at the end of their line.
        let ends_here = if in_word {
            !is_of_word || is_alone
        } else {
            c == '\n' && out.len() > start
        };
        if ends_here {
            ends.push(out.len());
            (in_word, start) = (false, out.len());
        }
        if is_of_word {
            out.push(c);
            in_word = true;
            if is_alone {
                ends.push(out.len());
                (in_word, start) = (false, out.len());
            }
        } else if is_sign(c) && out.len() - start < MOST_SIGNS {
            out.push(c);
        }
        before = c;
    }
    if out.len() > start {
        ends.push(out.len());
    }
}

/// Whether a character is a sign or an operator. Brackets, quotes, commas and semicolons are not: they change with the layout.
fn is_sign(c: char) -> bool {
    // Of ASCII: ! # $ % & * + - . / : < = > ? @ \ ^ | ~
    matches!(c, '!' | '#'..='&' | '*' | '+' | '-'..='/' | ':' | '<'..='@' | '\\' | '^' | '|' | '~')
        || matches!(c, '±' | '×' | '÷' | '¬' | '\u{2190}'..='\u{22ff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenize::features;

    #[test]
    fn signs_belong_to_the_word_behind_them() {
        let cut = |text| features(Code::default(), text);
        assert_eq!(cut("a < limit"), ["a", "<limit"]);
        assert_eq!(cut("return -a + b*3"), ["return", "-a", "+b", "*3"]);
        assert_eq!(cut("x = f(a, !b);"), ["x", "=f", "a", "!b"]);
        assert_eq!(cut("i++\nj--"), ["i", "++", "j", "--"]);
        assert_eq!(
            cut("-137.50 1.2.3 1.x ."),
            ["-137.50", "1.2.3", "1", ".x", "."]
        );
        assert_eq!(cut("if a<=b && !c {"), ["if", "a", "<=b", "&&!c"]);
        assert_eq!(cut("a ≤ b"), ["a", "≤b"]);
        assert_eq!(cut("----------------\nend"), ["--------", "end"]);
        assert_eq!(cut("近似x y"), ["近", "似", "x", "y"]);
        assert_eq!(cut("snake_case"), ["snake_case"]);
        assert!(cut(" ()\n{}").is_empty());
    }
}
