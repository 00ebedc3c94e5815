//! Finds the encoding of a text: a byte order mark says it, or a declaration that the bytes do not contradict, or else a detector.
//!
//! Browsers believe what is declared. Much of the web declares UTF-8 and is not, or declares nothing else than its server's
//! default, so here a declaration counts only if the bytes do not contradict it.

use chardetng::EncodingDetector;
use encoding_rs::{
    BIG5, DecoderResult, EUC_JP, EUC_KR, Encoding, GB18030, GBK, IBM866, ISO_2022_JP, ISO_8859_3,
    ISO_8859_5, ISO_8859_6, ISO_8859_7, ISO_8859_8, ISO_8859_8_I, ISO_8859_10, ISO_8859_13,
    ISO_8859_14, ISO_8859_15, ISO_8859_16, KOI8_R, KOI8_U, MACINTOSH, SHIFT_JIS, UTF_8, UTF_16BE,
    UTF_16LE, WINDOWS_874, WINDOWS_1251, WINDOWS_1252, WINDOWS_1253, WINDOWS_1255, WINDOWS_1256,
    WINDOWS_1257, X_MAC_CYRILLIC,
};
use memchr::{memchr, memchr2, memmem};

use super::language::likely_domain;
use super::{Hints, find_charset, is_utf_16, prescan};

/// Bytes from the first one on that is not ASCII by which an encoding is found.
pub const SAMPLE: usize = 256 << 10;
/// Bytes that are tried in the encoding that is declared.
const TRIED: usize = 64 << 10;
/// With fewer bytes that are not ASCII, a declaration that fits wins over what the bytes are like: by chance they are like another
/// encoding, or UTF-8.
pub const FEW: usize = 16;
/// With so many, what the bytes are like wins over a declaration that fits.
const MANY: usize = 400;
/// So many tell an encoding.
const ENOUGH: usize = 100;

/// The encoding of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub encoding: &'static Encoding,
    /// The length of its byte order mark.
    pub mark: usize,
    /// Whether UTF-8 is declared, and the bytes are in another encoding.
    pub is_other_than_declared: bool,
}

/// Finds the encoding of a text, or of a file from its start.
pub fn choose(bytes: &[u8], hints: &Hints<'_>) -> Choice {
    let named = || hints.charset.map(|charset| (charset, 0));
    let plain = || is_plainly_utf_8(bytes).then_some((UTF_8, 0));
    if let Some((encoding, mark)) = Encoding::for_bom(bytes).or_else(named).or_else(plain) {
        return Choice {
            encoding,
            mark,
            is_other_than_declared: false,
        };
    }
    let header = hints.content_type.and_then(find_charset);
    let header = header.and_then(Encoding::for_label_no_replacement);
    let within = hints.is_markup.then(|| prescan::prescan(bytes)).flatten();
    let declared = header.filter(|header| is_utf_16(header) && can_be_utf_16(bytes, header));
    // Servers say `utf-16` of either kind: the bytes come first.
    let encoding = utf_16(bytes)
        .or(declared)
        .unwrap_or_else(|| fitting(bytes, [header, within], hints));
    Choice {
        encoding,
        mark: 0,
        is_other_than_declared: header.or(within) == Some(UTF_8) && encoding != UTF_8,
    }
}

/// Finds the encoding of bytes from within a text, which say nothing of it themselves.
pub fn choose_within(bytes: &[u8]) -> &'static Encoding {
    fitting(bytes, [None, None], &Hints::default())
}

/// Whether a line of a text in `other` is in UTF-8 all the same: files are joined of rows in several encodings. In windows-1252, the
/// bytes of two characters are hardly UTF-8 by chance; in encodings of other letters, those of some words are.
pub fn is_line_of_utf_8(line: &[u8], other: &'static Encoding) -> bool {
    let least = if other == WINDOWS_1252 { 2 } else { FEW };
    let is_other = other != ISO_2022_JP && !is_utf_16(other);
    let characters = |line: &str| line.chars().filter(|c| !c.is_ascii()).take(least).count();
    is_other && simdutf8::basic::from_utf8(line).is_ok_and(|line| characters(line) == least)
}

/// Whether bytes are UTF-8 whatever is declared, as most of the web is: they are valid, and too many to be so by chance.
fn is_plainly_utf_8(bytes: &[u8]) -> bool {
    // ISO-2022-JP and UTF-16 may look like ASCII.
    if memchr2(0x1b, 0, bytes).is_some() {
        return false;
    }
    bytes.is_ascii()
        || (simdutf8::basic::from_utf8(bytes).is_ok() && other_bytes(bytes, FEW) == FEW)
}

/// The number of bytes that are not ASCII, up to `most`.
fn other_bytes(bytes: &[u8], most: usize) -> usize {
    let others = bytes.iter().filter(|byte| !byte.is_ascii());
    others.take(most).count()
}

/// The encoding that the bytes allow: one of the `declared`, or else what the bytes are like.
fn fitting(
    page: &[u8],
    declared: [Option<&'static Encoding>; 2],
    hints: &Hints<'_>,
) -> &'static Encoding {
    let declared = declared.into_iter().flatten();
    let mut declared = declared.filter(|encoding| *encoding != UTF_8 && !is_utf_16(encoding));
    if is_iso_2022_jp(page) {
        return ISO_2022_JP;
    }
    let Some(begin) = page.iter().position(|byte| !byte.is_ascii()) else {
        return UTF_8;
    };
    // With what stands before it.
    let begin = begin.saturating_sub(1);
    let bytes = &page[begin..page.len().min(begin + SAMPLE)];
    let others = other_bytes(bytes, MANY);
    let (characters, errors) = utf_8_characters(bytes);
    // In another encoding, hardly a character looks like one of UTF-8.
    if characters > 0 && characters >= errors {
        let mut by_chance = declared.filter(|declared| {
            errors == 0
                && others < FEW
                && is_multi_byte(declared)
                && fits(declared, bytes)
                && !is_latin_utf_8(bytes)
        });
        return by_chance.next().unwrap_or(UTF_8);
    }
    let declared = declared.find(|declared| fits(declared, bytes));
    // Servers declare windows-1252 without a reason.
    let most = if declared == Some(WINDOWS_1252) {
        FEW
    } else {
        MANY
    };
    if let Some(declared) = declared.filter(|_| others < most) {
        return declared;
    }
    let mut alike = detect_but_for_errors(telling(bytes), likely_domain(page, hints));
    // The detector does not know it.
    if alike == WINDOWS_1252 && is_macintosh(telling(bytes)) {
        alike = MACINTOSH;
    }
    match declared {
        Some(declared) if !overrules(alike, declared) => declared,
        _ if others < FEW && !is_plausible(alike, bytes) => UTF_8,
        _ => alike,
    }
}

/// Whether bytes are ISO-2022-JP, which is ASCII byte by byte: they have its escapes, and what follows these are characters.
fn is_iso_2022_jp(bytes: &[u8]) -> bool {
    let begins = |escape: &[u8]| memmem::find(bytes, escape).is_some();
    memchr(0x1b, bytes).is_some() && (begins(b"\x1b$B") || begins(b"\x1b$@")) && {
        let tried = Tried::new(ISO_2022_JP, bytes, None);
        tried.characters > 0 && tried.fits()
    }
}

/// The start of a text that tells its encoding: some KiB, or more if they have few bytes beyond ASCII. The detector is slow.
fn telling(bytes: &[u8]) -> &[u8] {
    const LENGTHS: [usize; 2] = [4 << 10, 16 << 10];
    let is_enough = |length: &usize| {
        let start = &bytes[..bytes.len().min(*length)];
        other_bytes(start, ENOUGH) == ENOUGH
    };
    let length = LENGTHS.into_iter().find(is_enough).unwrap_or(TRIED);
    &bytes[..bytes.len().min(length)]
}

/// Whether a text that is like windows-1252 is one in macintosh: nearly all that follows small letters in it are letters there, and
/// capitals, signs or nothing in windows-1252.
fn is_macintosh(bytes: &[u8]) -> bool {
    const LEAST: usize = 4;
    let (mut letters, mut others) = (0, 0);
    for pair in bytes.windows(2).filter(|pair| pair[0].is_ascii_lowercase()) {
        match pair[1] {
            0x87 | 0x88 | 0x8a..=0x90 | 0x98 | 0x9d | 0x9f => letters += 1,
            // Letters of MS-DOS, and of windows-1252.
            0x82 | 0x84 | 0x85 | 0xa0..=0xa6 | 0xc0..=0xc6 | 0xd6.. => others += 1,
            _ => {}
        }
    }
    letters >= LEAST && 8 * others <= letters
}

/// Whether a few bytes are letters of an encoding: of Latin script, if most of them stand in words of ASCII or alone, or are signs of
/// typography; of another, if there are three, and no byte is wrong. Others say nothing, and are wrong bytes.
fn is_plausible(encoding: &'static Encoding, bytes: &[u8]) -> bool {
    let (text, has_errors) = encoding.decode_without_bom_handling(bytes);
    let characters: Vec<char> = text.chars().collect();
    let letters = (0..characters.len()).filter(|&at| !characters[at].is_ascii());
    if script(encoding) != Script::Latin {
        return !has_errors && letters.count() >= 3;
    }
    let is_letter = |at: Option<usize>| {
        let character = at.and_then(|at| characters.get(at));
        character.is_some_and(char::is_ascii_alphabetic)
    };
    // Typography, and words of one letter.
    let is_alone = |at: usize| {
        let is_space = |at: Option<usize>| {
            at.and_then(|at| characters.get(at))
                .is_none_or(|c| c.is_ascii_whitespace())
        };
        is_space(at.checked_sub(1)) && is_space(at.checked_add(1))
    };
    let is_sign = |c: char| matches!(c, '\u{2013}'..='\u{203a}' | '\u{ab}' | '\u{bb}' | '\u{a0}'..='\u{a9}' | '\u{b0}' | '\u{20ac}');
    let within = |at: &usize| {
        // The last bytes are rather some that mean nothing.
        let character = characters[*at];
        let is_word = is_letter(at.checked_sub(1)) || is_letter(at.checked_add(1)) || is_alone(*at);
        is_sign(character)
            || (character.is_alphabetic() && !matches!(character, '\u{fe}' | '\u{ff}') && is_word)
    };
    2 * letters.clone().filter(within).count() >= letters.count()
}

/// Whether a text that is like `alike` contradicts its declaration.
fn overrules(alike: &'static Encoding, declared: &'static Encoding) -> bool {
    // The detector does not know these.
    const UNKNOWN: [&Encoding; 8] = [
        ISO_8859_3,
        ISO_8859_10,
        ISO_8859_13,
        ISO_8859_14,
        ISO_8859_15,
        ISO_8859_16,
        MACINTOSH,
        X_MAC_CYRILLIC,
    ];
    if UNKNOWN.contains(&declared) || same_letters(alike) == same_letters(declared) {
        return false;
    }
    // Of encodings of one script, the detector tells those of Cyrillic apart.
    let scripts = [alike, declared].map(script);
    scripts[0] != scripts[1] || scripts[0] == Script::Cyrillic || declared == WINDOWS_1252
}

fn same_letters(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == KOI8_R {
        KOI8_U
    } else if encoding == GBK {
        GB18030
    } else if encoding == ISO_8859_8 {
        ISO_8859_8_I
    } else {
        encoding
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    Latin,
    Cyrillic,
    Greek,
    Hebrew,
    Arabic,
    Thai,
    Chinese,
    TraditionalChinese,
    Japanese,
    Korean,
}

fn script(encoding: &'static Encoding) -> Script {
    const SCRIPTS: [(Script, &[&Encoding]); 9] = [
        (
            Script::Cyrillic,
            &[
                IBM866,
                ISO_8859_5,
                KOI8_R,
                KOI8_U,
                WINDOWS_1251,
                X_MAC_CYRILLIC,
            ],
        ),
        (Script::Greek, &[ISO_8859_7, WINDOWS_1253]),
        (Script::Hebrew, &[ISO_8859_8, ISO_8859_8_I, WINDOWS_1255]),
        (Script::Arabic, &[ISO_8859_6, WINDOWS_1256]),
        (Script::Thai, &[WINDOWS_874]),
        (Script::Chinese, &[GBK, GB18030]),
        (Script::TraditionalChinese, &[BIG5]),
        (Script::Japanese, &[SHIFT_JIS, EUC_JP, ISO_2022_JP]),
        (Script::Korean, &[EUC_KR]),
    ];
    let found = SCRIPTS.iter().find(|(_, of)| of.contains(&encoding));
    found.map_or(Script::Latin, |(script, _)| *script)
}

fn is_multi_byte(encoding: &'static Encoding) -> bool {
    matches!(
        script(encoding),
        Script::Chinese | Script::TraditionalChinese | Script::Japanese | Script::Korean
    )
}

/// The characters of several bytes, and the errors, of bytes read as UTF-8. An end in the middle of a character is an error.
fn utf_8_characters(bytes: &[u8]) -> (usize, usize) {
    let (mut characters, mut errors) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        characters += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        errors += usize::from(!chunk.invalid().is_empty());
    }
    (characters, errors)
}

/// Whether the few characters of a text in UTF-8 are Latin letters in words of ASCII, such as "café", most of them, and others words of
/// one letter; or signs of typography. In the encodings of CJK, the same bytes are characters, which seldom stand so.
fn is_latin_utf_8(bytes: &[u8]) -> bool {
    let text = simdutf8::basic::from_utf8(bytes).unwrap_or_default();
    let (mut within, mut alone) = (0, 0);
    for (at, character) in text.char_indices().filter(|(_, c)| !c.is_ascii()) {
        let neighbours = [at.checked_sub(1), Some(at + character.len_utf8())];
        let mut neighbours = neighbours
            .into_iter()
            .flatten()
            .filter_map(|at| bytes.get(at));
        match character {
            '\u{2010}'..='\u{203a}' => within += 1,
            '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => {
                if neighbours.clone().any(u8::is_ascii_alphabetic) {
                    within += 1;
                } else if neighbours.all(u8::is_ascii_whitespace) {
                    alone += 1;
                } else {
                    return false;
                }
            }
            _ => return false,
        }
    }
    within > alone
}

/// As [`detect`], for bytes a few of which are wrong: to the detector, one such byte rules an encoding out.
fn detect_but_for_errors(bytes: &[u8], domain: Option<&[u8]>) -> &'static Encoding {
    const HAVE_ERRORS: [&Encoding; 12] = [
        SHIFT_JIS,
        EUC_JP,
        GBK,
        BIG5,
        EUC_KR,
        ISO_8859_6,
        ISO_8859_7,
        ISO_8859_8,
        WINDOWS_874,
        WINDOWS_1253,
        WINDOWS_1255,
        WINDOWS_1257,
    ];
    let alike = detect(bytes, domain);
    if is_multi_byte(alike) && Tried::new(alike, bytes, None).errors == 0 {
        return alike;
    }
    let mut right = Vec::new();
    let found = HAVE_ERRORS.into_iter().find(|encoding| {
        let tried = Tried::new(encoding, bytes, Some(&mut right));
        tried.errors > 0
            && tried.fits()
            && same_letters(detect(&right, domain)) == same_letters(encoding)
    });
    found.unwrap_or(alike)
}

fn fits(encoding: &'static Encoding, bytes: &[u8]) -> bool {
    Tried::new(encoding, bytes, None).fits()
}

/// What bytes are in an encoding.
struct Tried {
    /// Characters beyond ASCII.
    characters: usize,
    /// Bytes of no character, and control characters beyond ASCII, which stand for bytes that the encoding of a page does not have.
    errors: usize,
}

impl Tried {
    /// Reads the first bytes; puts those that are of characters in `right`.
    fn new(encoding: &'static Encoding, bytes: &[u8], mut right: Option<&mut Vec<u8>>) -> Self {
        let mut rest = &bytes[..bytes.len().min(TRIED)];
        let mut tried = Self {
            characters: 0,
            errors: 0,
        };
        if let Some(right) = &mut right {
            right.clear();
        }
        let mut decoder = encoding.new_decoder_without_bom_handling();
        let mut buffer = [0_u8; 4 << 10];
        loop {
            // A sample may end within a character.
            let (result, read, written) =
                decoder.decode_to_utf8_without_replacement(rest, &mut buffer, false);
            // The decoder writes whole characters.
            let text = std::str::from_utf8(&buffer[..written]).unwrap_or_default();
            for character in text.chars().filter(|c| !c.is_ascii()) {
                match character {
                    '\u{80}'..='\u{9f}' => tried.errors += 1,
                    _ => tried.characters += 1,
                }
            }
            let mut wrong = 0;
            if let DecoderResult::Malformed(length, behind) = result {
                tried.errors += 1;
                wrong = usize::from(length + behind);
            }
            if let Some(right) = &mut right {
                right.extend_from_slice(&rest[..read.saturating_sub(wrong)]);
            }
            rest = &rest[read..];
            if result == DecoderResult::InputEmpty {
                return tried;
            }
        }
    }

    /// Whether they are a text but for one in twenty characters, and one more.
    fn fits(&self) -> bool {
        self.errors <= 1 + self.characters / 20
    }
}

/// The fewest bytes that tell UTF-16 from others.
const LEAST_UTF_16: usize = 8;

/// The kind of UTF-16 that bytes without a byte order mark are in: they are not UTF-8, and read so, nearly all characters are those of
/// texts, some of them ASCII or the punctuation of CJK texts. Bytes of other encodings make characters, too, but not these.
pub(crate) fn utf_16(bytes: &[u8]) -> Option<&'static Encoding> {
    let sample = &bytes[..bytes.len().min(TRIED) & !1];
    if sample.len() < LEAST_UTF_16 || is_utf_8_with_controls(sample) {
        return None;
    }
    let telling = |encoding| Units::read(sample, encoding).filter(Units::tell);
    let [little, big] = [UTF_16LE, UTF_16BE].map(telling);
    match (little, big) {
        (Some(little), Some(big)) if big.telling > little.telling => Some(UTF_16BE),
        (Some(_), _) => Some(UTF_16LE),
        (None, Some(_)) => Some(UTF_16BE),
        (None, None) => None,
    }
}

/// Whether bytes that are declared to be in a kind of UTF-16 can be that.
pub(crate) fn can_be_utf_16(bytes: &[u8], declared: &'static Encoding) -> bool {
    let sample = &bytes[..bytes.len().min(TRIED) & !1];
    !is_utf_8_with_controls(sample) && Units::read(sample, declared).is_some()
}

/// Whether bytes are UTF-8, with at most a few control characters, zeros among them. Of Latin texts in UTF-16, every second byte is
/// zero; of most other alphabets below U+2000, every second byte is another control character. Where it is a tab or a line end, as
/// in Devanagari, the low bytes and the zeros of spaces suffice.
fn is_utf_8_with_controls(bytes: &[u8]) -> bool {
    let is_control = |byte: &&u8| matches!(byte, 0..=8 | 0x0b | 0x0c | 0x0e..=0x1a | 0x1c..=0x1f);
    // The sample may end within a character.
    let bytes = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    };
    let (characters, errors) = utf_8_characters(bytes);
    8 * bytes.iter().filter(is_control).count() <= bytes.len()
        && (bytes.is_ascii() || characters > errors)
}

/// What bytes are if they are read as UTF-16.
struct Units {
    /// Characters that only a text in UTF-16 has.
    telling: usize,
    all: usize,
}

impl Units {
    /// `None` if more than one character in twenty is not one of texts.
    fn read(sample: &[u8], encoding: &'static Encoding) -> Option<Self> {
        let read: fn([u8; 2]) -> u16 = if encoding == UTF_16BE {
            u16::from_be_bytes
        } else {
            u16::from_le_bytes
        };
        let (mut texts, mut telling) = (0, 0);
        for pair in sample.chunks_exact(2) {
            let unit = read([pair[0], pair[1]]);
            texts += usize::from(matches!(unit,
                0x09 | 0x0a | 0x0d | 0x20..=0x7e | 0xa0..=0x10ff | 0x1e00..=0x206f
                | 0x20a0..=0x20bf | 0x3000..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7a3 | 0xd800..=0xdfff | 0xff00..=0xffef));
            telling += usize::from(matches!(
                unit,
                0x0a | 0x0d | 0x20..=0x7e | 0x3001 | 0x3002 | 0xff01 | 0xff0c | 0xff0e | 0xff1f
            ));
        }
        let all = sample.len() / 2;
        (all > 0 && 20 * (all - texts) <= all).then_some(Self { telling, all })
    }

    /// Whether there is at least one telling character in a hundred.
    fn tell(&self) -> bool {
        self.telling > 0 && 100 * self.telling >= self.all
    }
}

/// The encoding that the bytes are most likely in, none of those of Unicode.
fn detect(bytes: &[u8], domain: Option<&[u8]>) -> &'static Encoding {
    let mut detector = EncodingDetector::new();
    // The bytes may end within a character.
    detector.feed(bytes, false);
    detector.guess(domain, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts in UTF-16 without a mark, whatever a header says of its kind; and texts in UTF-8 with a few zeros.
    #[test]
    fn utf_16_is_told_by_the_bytes() {
        for text in [
            "The council met on Tuesday.",
            "Вчера вечером мы долго сидели.",
            "कल शाम हम नदी के किनारे बैठे थे।",
            "ਕੱਲ੍ਹ ਸ਼ਾਮ ਅਸੀਂ ਨਦੀ ਕੰਢੇ ਬੈਠੇ ਸੀ।",
            "నిన్న సాయంత్రం మేము నది ఒడ్డున కూర్చున్నాము.",
            "ഇന്നലെ വൈകുന്നേരം ഞങ്ങൾ നദീതീരത്ത് ഇരുന്നു.",
            "昨天晚上，我们在河边坐了很久。",
            "어제 저녁 우리는 강가에 앉아 있었다.",
        ] {
            for (encoding, to_bytes) in [
                (UTF_16LE, u16::to_le_bytes as fn(u16) -> [u8; 2]),
                (UTF_16BE, u16::to_be_bytes),
            ] {
                let bytes: Vec<u8> = text.encode_utf16().flat_map(to_bytes).collect();
                for header in [
                    None,
                    Some("utf-16"),
                    Some("utf-16le"),
                    Some("utf-16be"),
                    Some("utf-8"),
                ] {
                    let content_type = header.map(|header| format!("text/html; charset={header}"));
                    let hints = Hints {
                        content_type: content_type.as_deref().map(str::as_bytes),
                        ..Hints::default()
                    };
                    assert_eq!(
                        choose(&bytes, &hints).encoding,
                        encoding,
                        "{text}, {header:?}"
                    );
                }
            }
            let text = text.repeat(3);
            let starts = text.char_indices().map(|(at, _)| at).step_by(7);
            for at in starts {
                let mut with_zero = text.clone();
                with_zero.insert(at, '\0');
                assert_eq!(
                    choose(with_zero.as_bytes(), &Hints::default()).encoding,
                    UTF_8,
                    "{text}, {at}"
                );
            }
        }
    }
}
