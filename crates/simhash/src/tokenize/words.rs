//! Extracts words by UAX #29, words or n-grams of Chinese, Japanese and Korean text, and n-grams of the scripts of [`unspaced`].
//!
//! White space separates stretches of plain characters ([`crate::plain`]) from pieces with others.
//! [`masks`] finds the words of the stretches; the full rules of UAX #29 cut the pieces.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;

use super::masks::{self, Chunk};
use super::{Extract, TakeFeature, cjk, unspaced};
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

    /// Whether the features of `text` are its words: it has no run that is cut into anything else.
    pub(crate) fn gives_words(&self, text: &Folded) -> bool {
        let text = text.as_str();
        let largest = text.bytes().fold(0, u8::max);
        self.cjk == Cjk::Words
            || largest < unspaced::LEAST_BYTE
            || cjk::next_start(text, 0) == text.len() && unspaced::next_start(text, 0) == text.len()
    }
}

impl Extract for Words {
    #[inline]
    fn extract(&mut self, text: &Folded, each: &mut impl TakeFeature) {
        masks::classify(self.kernel, text, &mut self.chunks);
        // The other ways to cut them need more than masks.
        if !matches!(self.cjk, Cjk::Bigrams | Cjk::Grams) {
            for chunk in &mut self.chunks {
                chunk.other |= std::mem::take(&mut chunk.cjk);
            }
        }
        let end = text.len();
        let mut from = 0;
        loop {
            let other = self.next_byte(from..end, |chunk| chunk.other);
            if other == end {
                break self.plain_words(text, from..end, each);
            }
            // A combining mark can form a word together with the white space before it.
            let before = self.last_space(from, other);
            let start = before.map_or(from, |space| self.space_start(from, space));
            self.plain_words(text, from..start, each);
            // Text in other scripts usually goes on after the white space: take nearby pieces together. And white space
            // alone, of ASCII or not, can form a word with a combining mark behind it, however much it is.
            let mut last = other;
            loop {
                from = self.next_byte(last..end, |chunk| chunk.space);
                let behind_spaces = self.next_byte(from..end, |chunk| !chunk.space);
                let near = end.min(from + NEAR).max(end.min(behind_spaces + 1));
                last = self.next_byte(from..near, |chunk| chunk.other);
                if last == near {
                    break;
                }
            }
            self.mixed_words(text, start..from, each);
        }
    }
}

/// Pieces that are not plain become one piece if fewer bytes than this are between them.
const NEAR: usize = 16;

impl Words {
    /// Finds the first byte in `range` whose bit is set in the mask that `class` takes from its chunk. Returns its position, or
    /// the end of `range` if there is none.
    fn next_byte(&self, range: Range<usize>, class: impl Fn(&Chunk) -> u64) -> usize {
        let mut mask = u64::MAX << (range.start % 64);
        for index in range.start / 64..range.end.div_ceil(64) {
            let found = class(&self.chunks[index]) & mask;
            if found != 0 {
                let at = 64 * index + found.trailing_zeros() as usize;
                return at.min(range.end);
            }
            mask = u64::MAX;
        }
        range.end
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

    /// Extracts the features of a plain stretch, which ends at white space, at a run of CJK, or at the
    /// end of the text.
    #[inline(never)]
    fn plain_words(&self, text: &Folded, range: Range<usize>, each: &mut impl TakeFeature) {
        if range.is_empty() {
            return;
        }
        let mut mask = u64::MAX << (range.start % 64);
        // The start of the word that goes on in the next chunk, or `NONE`.
        let mut open = NONE;
        for at in range.start / 64..=(range.end - 1) / 64 {
            if at == range.end / 64 {
                mask &= !(u64::MAX << (range.end % 64));
            }
            let words = self.chunks[at].words & mask;
            let cjk = self.chunks[at].cjk & mask;
            mask = u64::MAX;
            let before = u64::from(open != NONE);
            let mut starts = words & !(words << 1 | before);
            let mut ends = !words & (words << 1 | before);
            if open != NONE && ends != 0 {
                take_word(text, open..64 * at + ends.trailing_zeros() as usize, each);
                ends &= ends - 1;
                open = NONE;
            }
            // Words alone are the commonest case, and have the shorter loop.
            if cjk == 0 {
                while ends != 0 {
                    let start = 64 * at + starts.trailing_zeros() as usize;
                    take_word(text, start..64 * at + ends.trailing_zeros() as usize, each);
                    starts &= starts.wrapping_sub(1);
                    ends &= ends - 1;
                }
            } else {
                let neighbours = self.neighbours(at);
                let mut firsts = starts | cjk;
                while firsts != 0 {
                    let bit = firsts.trailing_zeros();
                    let start = 64 * at + bit as usize;
                    firsts &= firsts - 1;
                    if cjk >> bit & 1 == 1 {
                        self.take_cjk(text, start, neighbours, bit, each);
                    } else if ends != 0 {
                        take_word(text, start..64 * at + ends.trailing_zeros() as usize, each);
                        starts &= starts - 1;
                        ends &= ends - 1;
                    }
                }
            }
            if starts != 0 {
                open = 64 * at + starts.trailing_zeros() as usize;
            }
        }
        if open != NONE {
            take_word(text, open..range.end, each);
        }
    }

    /// Which plain CJK characters of a chunk have others behind them, and before them: a bit at the first byte of each.
    #[inline(always)]
    fn neighbours(&self, at: usize) -> [u64; 2] {
        let own = self.chunks[at].cjk;
        let before = match at {
            0 => 0,
            _ => self.chunks[at - 1].cjk,
        };
        let after = self.chunks.get(at + 1).map_or(0, |after| after.cjk);
        [own >> 3 | after << 61, own << 3 | before >> 61]
    }

    /// Extracts the features that begin with the plain CJK character at `start`, bit `bit` of its chunk, which has these
    /// [`Self::neighbours`].
    #[inline(always)]
    fn take_cjk(
        &self,
        text: &Folded,
        start: usize,
        neighbours: [u64; 2],
        bit: u32,
        each: &mut impl TakeFeature,
    ) {
        let [behind, before] = neighbours.map(|neighbours| neighbours >> bit & 1 == 1);
        // A run of one character has no pair.
        if self.cjk == Cjk::Grams || !(behind || before) {
            each.take(text.feature(start..start + 3));
        }
        if behind {
            each.take(text.feature(start..start + 6));
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
            // The next run begins at the next plain CJK character, or not before the next character that is not plain.
            let next = self.next_byte(from..range.end, |chunk| chunk.other | chunk.cjk);
            let start = cjk::next_start(&whole[..range.end], next);
            if self.next_byte(from..start, |chunk| chunk.other) == start {
                self.plain_words(text, from..start, each)
            } else {
                other_words(text, from..start, each)
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

/// Extracts a word of a plain stretch. Underscores alone are not a word.
#[inline(always)]
fn take_word(text: &Folded, word: Range<usize>, each: &mut impl TakeFeature) {
    let bytes = text.padded();
    if bytes[word.start] != b'_' || bytes[word.clone()].iter().any(|&byte| byte != b'_') {
        each.take(text.feature(word));
    }
}

const NONE: usize = usize::MAX;

/// Extracts the features of a piece without CJK: n-grams of the runs of [`unspaced`], and the words between them.
fn other_words(text: &Folded, range: Range<usize>, each: &mut impl TakeFeature) {
    let mut from = range.start;
    while from < range.end {
        let start = unspaced::next_start(&text.as_str()[..range.end], from);
        uax29_words(text, from..start, each);
        from = unspaced::grams(text, start, range.end, each);
    }
}

/// Extracts the words of a piece by UAX #29.
fn uax29_words(text: &Folded, range: Range<usize>, each: &mut impl TakeFeature) {
    let words = |piece: Range<usize>, each: &mut _| {
        let start = piece.start;
        for (at, word) in text.as_str()[piece].unicode_word_indices() {
            TakeFeature::take(each, text.feature(start + at..start + at + word.len()));
        }
    };
    let bytes = &text.as_str().as_bytes()[..range.end];
    let (mut from, mut at) = (range.start, range.start);
    while at < range.end {
        let is_han = |at: usize| cjk::is_common_han(bytes, at);
        if !(is_han(at) && is_han(at + 3)) {
            at += cjk::utf8_len(bytes[at]);
            continue;
        }
        words(from..at, each);
        // A Han character is a word, unless marks follow that combine with it.
        while is_han(at + 3) {
            each.take(text.feature(at..at + 3));
            at += 3;
        }
        from = at;
    }
    words(from..range.end, each);
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

    /// The definition: runs of CJK are cut into bigrams, or into characters and bigrams; runs of Thai, Lao, Burmese and Khmer
    /// into four characters; and the text between them by UAX #29.
    fn by_definition(cjk_features: Cjk, text: &str) -> Vec<String> {
        let mut features = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let is_in_run = |c| cjk::is_cjk(c) || unspaced::is_unspaced(c);
            let start = rest.find(is_in_run).unwrap_or(rest.len());
            let (spaced, from) = rest.split_at(start);
            features.extend(spaced.unicode_words().map(str::to_owned));
            let is_cjk = from.starts_with(cjk::is_cjk);
            let ends = |c| {
                if is_cjk {
                    !cjk::is_cjk(c)
                } else {
                    !unspaced::is_unspaced(c)
                }
            };
            let end = from.find(ends).unwrap_or(from.len());
            let run: Vec<char> = from[..end].chars().collect();
            match run.len() {
                0 => {}
                1..4 if !is_cjk => features.push(run.iter().collect()),
                _ if !is_cjk => {
                    features.extend(run.windows(4).map(|four| four.iter().collect::<String>()));
                }
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

    #[test]
    fn four_characters_of_scripts_without_spaces() {
        let grams = |text| extract(Cjk::Grams, text);
        assert_eq!(grams("สวัสดี 12"), ["สวัส", "วัสด", "ัสดี", "12"]);
        assert_eq!(grams("กา ลาว"), ["กา", "ลาว"]);
        assert_eq!(grams("ພາສາ၁ភាសា"), ["ພາສາ", "၁", "ភាសា"]);
        assert_eq!(grams("rustไทย中"), ["rust", "ไทย", "中"]);
    }

    #[test]
    fn runs_at_every_place_of_a_chunk() {
        for place in 0..130 {
            for run in [
                "近",
                "近似",
                "近似重复网页",
                "近x似",
                "近々似",
                "ไทย",
                "ภาษาไทย近",
            ] {
                for after in ["", " x", "x", "々"] {
                    let text = format!("{}{run}{after}", "a".repeat(place));
                    for cjk in [Cjk::Bigrams, Cjk::Grams] {
                        assert_eq!(extract(cjk, &text), by_definition(cjk, &text), "{text:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn other_pieces_near_and_far() {
        for between in 0..40 {
            for mark in ["\u{5d0}", "\u{93e}", "\u{301}", "🙂"] {
                for first in ["\u{1680}", "\u{5d0}", "a"] {
                    for space in [" ", "b", "."] {
                        let text = format!("{first}{}{mark} c", space.repeat(between));
                        assert_eq!(
                            extract(Cjk::Grams, &text),
                            by_definition(Cjk::Grams, &text),
                            "{text:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_piece_of_many_runs() {
        // Looking for the last character anew from each run would take hours.
        let text = format!("{}🙂", "语a".repeat(1_000_000));
        assert_eq!(extract(Cjk::Bigrams, &text).len(), 2_000_000);
    }

    fn text() -> impl Strategy<Value = String> {
        let pieces = prop_oneof![
            4 => "[a-z0-9_'.:,;]{1,8}",
            2 => "[ \\t\\n]{1,2}",
            1 => "[ \u{1680}\u{3000}]{1,30}[\u{93e}\u{301}]?",
            1 => "[ -~]{0,70}",
            1 => "[近似重复网页一丁㐀龥かなカナ한국𠀀]{1,5}",
            1 => "[ภาษไทยัีລາວမြန်မာខ្មែរꩠ๑]{1,9}",
            1 => "[，。、《》…—’“”·«é\\u{301}\\u{200d}א-ת\"]{1,3}",
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
