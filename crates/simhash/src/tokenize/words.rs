//! Extracts words by UAX #29, and words or n-grams of Chinese, Japanese and Korean text.
//!
//! White space separates stretches of plain characters ([`crate::plain`]) from pieces with others.
//! [`masks`] finds the words of the stretches; the full rules of UAX #29 cut the pieces.

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

impl Cjk {
    /// Whether the features of a run depend on pairs of characters alone.
    fn is_grams(self) -> bool {
        matches!(self, Self::Bigrams | Self::Grams)
    }
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
        masks::classify(self.kernel, text, &mut self.chunks);
        if !self.cjk.is_grams() {
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
            // Text in other scripts usually goes on after the white space: take nearby pieces together.
            let mut last = other;
            loop {
                from = self.next_byte(last..end, |chunk| chunk.space);
                last = self.next_byte(from..end.min(from + NEAR), |chunk| chunk.other);
                if last == end.min(from + NEAR) {
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
    /// The position in `range` of the first byte of the class that `class` selects; its end if there is none.
    fn next_byte(&self, range: Range<usize>, class: impl Fn(&Chunk) -> u64) -> usize {
        let mut mask = u64::MAX << (range.start % 64);
        for at in range.start / 64..range.end.div_ceil(64) {
            let found = class(&self.chunks[at]) & mask;
            if found != 0 {
                let at = 64 * at + found.trailing_zeros() as usize;
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

    /// Extracts the features of a plain stretch, which ends at white space, at a run of CJK that is
    /// not plain, or at the end of the text.
    #[inline(always)]
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
                let in_run = self.in_run(at);
                let mut firsts = starts | cjk;
                while firsts != 0 {
                    let bit = firsts.trailing_zeros();
                    let start = 64 * at + bit as usize;
                    firsts &= firsts - 1;
                    if cjk >> bit & 1 == 1 {
                        self.take_cjk(text, start, in_run.at(bit), each);
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

    /// Which plain CJK characters of a chunk have others beside them.
    #[inline(always)]
    fn in_run(&self, at: usize) -> InRun {
        let own = self.chunks[at].cjk;
        let before = at
            .checked_sub(1)
            .map_or(0, |before| self.chunks[before].cjk);
        let after = self.chunks.get(at + 1).map_or(0, |after| after.cjk);
        InRun {
            followed: own >> 3 | after << 61,
            preceded: own << 3 | before >> 61,
        }
    }

    /// Extracts the features that begin with the plain CJK character at `start`.
    #[inline(always)]
    fn take_cjk(&self, text: &Folded, start: usize, in_run: InRun, each: &mut impl TakeFeature) {
        let (followed, preceded) = (in_run.followed != 0, in_run.preceded != 0);
        // A run of one character has no pair.
        if self.cjk == Cjk::Grams || !(followed || preceded) {
            each.take(text.feature(start..start + 3));
        }
        if followed {
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
            // No run of CJK characters begins before the next character of these classes.
            let other = self.next_byte(from..range.end, |chunk| chunk.other);
            let cjk = self.next_byte(from..other, |chunk| chunk.cjk);
            let start = cjk::next_start(&whole[..range.end], cjk);
            match other < start {
                true => uax29_words(text, from..start, each),
                false => self.plain_words(text, from..start, each),
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

/// For each plain CJK character of a chunk, a bit at its first byte.
#[derive(Debug, Clone, Copy, Default)]
struct InRun {
    /// Whether another follows.
    followed: u64,
    /// Whether it follows another.
    preceded: u64,
}

impl InRun {
    /// The bits of the character at `bit` alone.
    #[inline(always)]
    fn at(self, bit: u32) -> Self {
        Self {
            followed: self.followed >> bit & 1,
            preceded: self.preceded >> bit & 1,
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
