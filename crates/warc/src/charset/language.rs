//! The hint for the detector of encodings: the top-level domain of a country in which people write as on the page.

use super::{Hints, prescan};

/// The domain of a country with the language that a page says to be in, if it says one that is known; otherwise the top-level domain
/// of its URL.
pub(super) fn likely_domain<'a>(page: &[u8], hints: &Hints<'a>) -> Option<&'a [u8]> {
    let language = hints.is_markup.then(|| prescan::language(page)).flatten();
    let of_url = || match top_level_domain(hints.url) {
        // They write in Latin letters as well. The detector knows it of Bosnia alone.
        Some(b"rs" | b"md") => Some(&b"ba"[..]),
        domain => domain,
    };
    language.and_then(domain_of).or_else(of_url)
}

/// A domain that the detector takes for the script and the encodings of a language, such as `th` or `zh-Hant`.
fn domain_of(language: &[u8]) -> Option<&'static [u8]> {
    let language = std::str::from_utf8(language).ok()?.to_ascii_lowercase();
    let mut parts = language.trim().split(['-', '_']);
    let name = parts.next()?;
    let is_traditional = parts.any(|part| matches!(part, "hant" | "tw" | "hk" | "mo"));
    let domain = match name {
        "ru" | "uk" | "be" | "bg" | "mk" | "kk" | "ky" | "tg" | "mn" => "ru",
        "sr" | "bs" => "ba",
        "el" => "gr",
        "he" | "iw" | "yi" => "il",
        "ar" | "fa" | "ur" | "ps" => "ae",
        "tr" | "az" => "tr",
        "th" => "th",
        "vi" => "vn",
        "zh" if is_traditional => "hk",
        "zh" => "sg",
        "ja" => "jp",
        "ko" => "kr",
        "pl" | "hu" | "sl" => "pl",
        "cs" | "sk" | "hr" | "ro" => "cz",
        "lt" | "lv" => "lt",
        "is" | "fo" => "is",
        // Pages in other languages say so as well, because their templates do: this speaks for no encoding.
        "en" => "com",
        "af" | "br" | "ca" | "cy" | "da" | "de" | "es" | "et" | "eu" | "fi" | "fr" | "fy"
        | "ga" | "gd" | "gl" | "id" | "it" | "lb" | "ms" | "nb" | "nl" | "nn" | "no" | "oc"
        | "pt" | "rm" | "sq" | "sv" => "fr",
        _ => return None,
    };
    Some(domain.as_bytes())
}

/// The last label of the host of a URL, as the detector wants it: in lower case, and ASCII.
fn top_level_domain(url: &str) -> Option<&[u8]> {
    let (_, after) = url.split_once("://")?;
    let authority = after.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = host.split(':').next()?;
    let label = host.trim_end_matches('.').rsplit('.').next()?;
    let is_part = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    (!label.is_empty() && label.bytes().all(is_part)).then_some(label.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_level_domains_are_found() {
        for (url, domain) in [
            ("http://www.example.ru/a.b?c", Some("ru")),
            ("https://user@example.co.jp.:8080", Some("jp")),
            ("http://localhost/", Some("localhost")),
            ("http://example.RU/", None),
            ("http://example.рф/", None),
            ("http://[::1]/", None),
            ("http://", None),
            ("urn:x", None),
        ] {
            let found = top_level_domain(url);
            assert_eq!(found, domain.map(str::as_bytes), "{url}");
        }
    }

    #[test]
    fn countries_of_two_alphabets() {
        for (url, domain) in [
            ("http://a.rs/", "ba"),
            ("http://a.md/", "ba"),
            ("http://a.ru/", "ru"),
        ] {
            let hints = Hints {
                url,
                ..Hints::default()
            };
            assert_eq!(likely_domain(b"", &hints), Some(domain.as_bytes()), "{url}");
        }
    }

    #[test]
    fn a_page_says_its_language() {
        let url = "http://example.de/";
        for (page, domain) in [
            ("<html lang=th>", "th"),
            ("<!doctype html>\n<HTML class=\"x\" xml:lang='th-TH'>", "th"),
            ("<html lang=zh>", "sg"),
            ("<html lang=zh-Hant-HK>", "hk"),
            ("<html lang=zh_TW>", "hk"),
            ("<html lang=' pl '>", "pl"),
            ("<html lang=es>", "fr"),
            ("<html lang=pt-BR>", "fr"),
            ("<html lang=is>", "is"),
            ("<html lang=en-GB>", "com"),
            ("<html lang=tlh>", "de"),
            ("<html lang>", "de"),
            ("<html><p lang=th>", "de"),
            ("<htmlx lang=th>", "de"),
            ("<html lang=th", "de"),
            ("<html lang='th", "de"),
        ] {
            let hints = |is_markup| Hints {
                is_markup,
                url,
                ..Hints::default()
            };
            let found = |is_markup| likely_domain(page.as_bytes(), &hints(is_markup));
            assert_eq!(found(true), Some(domain.as_bytes()), "{page}");
            assert_eq!(found(false), Some(&b"de"[..]), "{page}");
        }
    }
}
