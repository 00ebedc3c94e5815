//! Extracts words by UAX #29, and words or n-grams of Chinese, Japanese and Korean text.
//!
//! White space separates plain stretches (such as ASCII, see [`masks`]) from pieces with other
//! characters. [`masks`] finds the words of the stretches; the full rules of UAX #29 cut the pieces.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;

use super::masks::{self, Chunk};
use super::{Extract, TakeFeature, cjk};
use crate::isa::Kernel;
use crate::text::Folded;

/// How runs of Han, Hiragana, Katakana and Hangul are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cjk {
    /// As all other text, by UAX #29.
    Words,
    /// Into overlapping pairs of characters.
    Bigrams,
    /// Into characters and overlapping pairs of characters.
    Grams,
    /// Into words of jieba's dictionary.
    #[cfg(feature = "jieba")]
    Jieba,
}

/// Extracts words.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    cjk: Cjk,
    kernel: Kernel,
    chunks: Vec<Chunk>,
}

impl Words {
    pub(crate) fn new(cjk: Cjk, kernel: Kernel) -> Self {
        Self {
            cjk,
            kernel,
            chunks: Vec::new(),
        }
    }
}

impl Extract for Words {
    #[inline]
    fn extract(&mut self, text: &Folded, each: &mut impl TakeFeature) {
        masks::classify(self.kernel, text.as_str().as_bytes(), &mut self.chunks);
        let mut from = 0;
        while let Some(other) = self.next_byte(from, |chunk| chunk.other) {
            // A combining mark can form a word together with the white space before it.
            let before = self.last_space(from, other);
            let start = before.map_or(from, |space| self.space_start(from, space));
            self.plain_words(text, from..start, each);
            // Text in other scripts usually goes on after the white space: take nearby pieces together.
            let mut end = other;
            loop {
                end = self
                    .next_byte(end, |chunk| chunk.space)
                    .unwrap_or(text.as_str().len());
                match self.next_byte(end, |chunk| chunk.other) {
                    Some(next) if next < end + NEAR => end = next,
                    _ => break,
                }
            }
            self.mixed_words(text, start..end, each);
            from = end;
        }
        self.plain_words(text, from..text.as_str().len(), each);
    }
}

/// Pieces that are not plain become one piece if fewer bytes than this are between them.
const NEAR: usize = 16;

impl Words {
    /// The position of the first byte, at or after `from`, of the class that `class` selects.
    fn next_byte(&self, from: usize, class: impl Fn(&Chunk) -> u64) -> Option<usize> {
        let mut mask = u64::MAX << (from % 64);
        for (at, chunk) in self.chunks.iter().enumerate().skip(from / 64) {
            let found = class(chunk) & mask;
            if found != 0 {
                return Some(64 * at + found.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }

    /// The position of the last white space in `from..to`.
    fn last_space(&self, from: usize, to: usize) -> Option<usize> {
        let mut mask = !(u64::MAX << (to % 64));
        for at in (from / 64..=to / 64).rev() {
            let found = self.chunks[at].space & mask;
            if found != 0 {
                let space = 64 * at + 63 - found.leading_zeros() as usize;
                return (space >= from).then_some(space);
            }
            mask = u64::MAX;
        }
        None
    }

    /// The start of the run of white space that ends at `to`.
    fn space_start(&self, from: usize, to: usize) -> usize {
        let is_space = |&at: &usize| self.chunks[at / 64].space >> (at % 64) & 1 == 1;
        (from..to).rev().take_while(is_space).last().unwrap_or(to)
    }

    /// Extracts the words of a plain stretch, which ends at white space, at CJK text or
    /// punctuation, or at the end of the text.
    #[inline(always)]
    fn plain_words(&self, text: &Folded, range: Range<usize>, each: &mut impl TakeFeature) {
        if range.is_empty() {
            return;
        }
        let bytes = text.padded();
        let mut mask = u64::MAX << (range.start % 64);
        // The start of the word that goes on in the next chunk, or `NONE`.
        let mut open = NONE;
        let mut emit = |start: usize, end: usize| {
            // Underscores alone are not a word.
            if bytes[start] != b'_' || bytes[start..end].iter().any(|&byte| byte != b'_') {
                each.take(text.feature(start..end));
            }
        };
        for at in range.start / 64..=(range.end - 1) / 64 {
            let mut words = self.chunks[at].words & mask;
            mask = u64::MAX;
            if at == range.end / 64 {
                words &= !(u64::MAX << (range.end % 64));
            }
            let before = u64::from(open != NONE);
            let mut starts = words & !(words << 1 | before);
            let mut ends = !words & (words << 1 | before);
            if open != NONE && ends != 0 {
                emit(open, 64 * at + ends.trailing_zeros() as usize);
                ends &= ends - 1;
                open = NONE;
            }
            while ends != 0 {
                let start = 64 * at + starts.trailing_zeros() as usize;
                let end = 64 * at + ends.trailing_zeros() as usize;
                starts &= starts.wrapping_sub(1);
                ends &= ends - 1;
                emit(start, end);
            }
            if starts != 0 {
                open = 64 * at + starts.trailing_zeros() as usize;
            }
        }
        if open != NONE {
            emit(open, range.end);
        }
    }

    /// Extracts the features of a piece in any script.
    fn mixed_words(&self, text: &Folded, range: Range<usize>, each: &mut impl TakeFeature) {
        let whole = text.as_str();
        if self.cjk == Cjk::Words {
            return uax29_words(text, range, each);
        }
        let mut from = range.start;
        while from < range.end {
            // No run of CJK characters begins before the next character that is not plain.
            let other = self.next_byte(from, |chunk| chunk.other);
            let other = other.map_or(range.end, |other| other.min(range.end));
            let start = cjk::next_start(&whole[..range.end], other);
            let piece = without_punctuation(whole, from..start);
            if whole.as_bytes()[piece.clone()].is_ascii() {
                self.plain_words(text, piece, each);
            } else {
                uax29_words(text, piece, each);
            }
            if self.cjk == Cjk::Grams {
                from = cjk::chars_and_bigrams(text, start, range.end, each);
                continue;
            }
            from = cjk::run_end(&whole[..range.end], start);
            match self.cjk {
                #[cfg(feature = "jieba")]
                Cjk::Jieba => super::jieba::segment(whole, start..from, |word| {
                    each.take(text.feature(word));
                }),
                _ => cjk::bigrams(whole, start..from, |pair| each.take(text.feature(pair))),
            }
        }
    }
}

/// Trims CJK punctuation from a piece between two runs of CJK. Most such pieces consist of nothing else.
///
/// This changes no word: UAX #29 always has a boundary before such a mark, and after it if ASCII
/// follows.
fn without_punctuation(text: &str, mut piece: Range<usize>) -> Range<usize> {
    let is_mark = |c: char| matches!(c, '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{2014}' | '\u{201c}' | '\u{201d}' | '\u{2026}');
    let kept = text[piece.clone()].trim_end_matches(is_mark);
    piece.end = piece.start + kept.len();
    let kept = kept.trim_start_matches(is_mark);
    if kept.as_bytes().first().is_none_or(u8::is_ascii) {
        piece.start = piece.end - kept.len();
    }
    piece
}

const NONE: usize = usize::MAX;

/// Extracts the words of a piece by UAX #29.
fn uax29_words(text: &Folded, range: Range<usize>, each: &mut impl TakeFeature) {
    let start = range.start;
    for (at, word) in text.as_str()[range].unicode_word_indices() {
        each.take(text.feature(start + at..start + at + word.len()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tokenize::features;

    /// The features of `text`; asserts that every kernel finds the same.
    fn extract(cjk: Cjk, text: &str) -> Vec<String> {
        let all: Vec<_> = Kernel::available()
            .into_iter()
            .map(|kernel| features(Words::new(cjk, kernel), text))
            .collect();
        assert!(all.iter().all(|other| *other == all[0]));
        all[0].clone()
    }

    /// The definition: runs of CJK are cut into bigrams, or into characters and bigrams, and the text between them by
    /// UAX #29.
    fn by_definition(cjk_features: Cjk, text: &str) -> Vec<String> {
        let mut features = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let start = rest.find(cjk::is_cjk).unwrap_or(rest.len());
            let (spaced, from) = rest.split_at(start);
            features.extend(spaced.unicode_words().map(str::to_owned));
            let end = from.find(|c| !cjk::is_cjk(c)).unwrap_or(from.len());
            let run: Vec<char> = from[..end].chars().collect();
            match run.len() {
                0 => {}
                _ if cjk_features == Cjk::Grams => {
                    for (at, c) in run.iter().enumerate() {
                        features.push(c.to_string());
                        features.extend(run.get(at + 1).map(|next| format!("{c}{next}")));
                    }
                }
                1 => features.push(run.iter().collect()),
                _ => features.extend(run.windows(2).map(|pair| pair.iter().collect::<String>())),
            }
            rest = &from[end..];
        }
        features
    }

    #[test]
    fn words_of_spaced_text() {
        assert_eq!(
            extract(Cjk::Bigrams, "it's 3.14, e.g. a_b — naïve, naïve!"),
            ["it's", "3.14", "e.g", "a_b", "naïve", "naïve"]
        );
        assert!(extract(Cjk::Bigrams, " \t\n…—!? __ _").is_empty());
        let long = "x".repeat(500);
        assert_eq!(
            extract(Cjk::Bigrams, &format!("{long} {long}")),
            [&*long, &*long]
        );
    }

    #[test]
    fn bigrams_of_cjk_runs() {
        let bigrams = |text| extract(Cjk::Bigrams, text);
        assert_eq!(bigrams("近似重复"), ["近似", "似重", "重复"]);
        assert_eq!(bigrams("第3章 中"), ["第", "3", "章", "中"]);
        assert_eq!(bigrams("rust语言book"), ["rust", "语言", "book"]);
        assert_eq!(
            bigrams("한국어 カナ・かな"),
            ["한국", "국어", "カナ", "かな"]
        );
        assert_eq!(
            extract(Cjk::Words, "近似 カナ rust"),
            ["近", "似", "カナ", "rust"]
        );
        assert_eq!(
            extract(Cjk::Grams, "近似重a复"),
            ["近", "近似", "似", "似重", "重", "a", "复"]
        );
    }

    fn text() -> impl Strategy<Value = String> {
        let pieces = prop_oneof![
            4 => "[a-z0-9_'.:,;]{1,8}",
            2 => "[ \\t\\n]{1,2}",
            1 => "[ -~]{0,70}",
            1 => "[近似重复网页一丁㐀龥かなカナ한국𠀀]{1,5}",
            1 => "[，。、《》…—’“”é\\u{301}\\u{200d}א-ת\"]{1,3}",
            1 => "\\PC{0,3}",
            1 => any::<char>().prop_map(String::from),
        ];
        proptest::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn any_text_is_cut_by_definition(text in text()) {
            for cjk in [Cjk::Bigrams, Cjk::Grams] {
                prop_assert_eq!(extract(cjk, &text), by_definition(cjk, &text));
            }
            let words: Vec<_> = text.unicode_words().map(str::to_owned).collect();
            prop_assert_eq!(extract(Cjk::Words, &text), words);
        }
    }
}
