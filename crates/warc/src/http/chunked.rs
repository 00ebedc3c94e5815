//! The chunked transfer coding (RFC 9112, section 7.1).

use memchr::{memchr, memmem};

use super::Extent;

/// The most bytes of a line with a chunk's size, and of its extensions.
const MAX_LINE: usize = 4 << 10;
/// The most bytes of a line with a damaged size.
const MAX_DAMAGED: usize = 10;

/// Appends the content of a chunked body to `output`. `None` if the body is not chunked: crawlers often decode it, but keep
/// the header. Trailers are ignored. A body may be cut off or damaged anywhere behind its first chunk.
pub(super) fn decode(body: &[u8], output: &mut Vec<u8>) -> Option<Extent> {
    let mut rest = body;
    let mut chunks = 0;
    loop {
        let Some((size, behind)) = read_size(rest) else {
            // Cut off here, or damaged.
            return (chunks > 0).then_some(Extent::Start);
        };
        rest = behind;
        chunks += 1;
        if size == 0 {
            return Some(Extent::Whole);
        }
        let Some((chunk, after)) = rest.split_at_checked(size) else {
            output.extend_from_slice(rest);
            return Some(Extent::Start);
        };
        output.extend_from_slice(chunk);
        rest = match after {
            [b'\r', b'\n', rest @ ..] | [b'\n', rest @ ..] => rest,
            [] | [b'\r'] => return Some(Extent::Start),
            _ => return (chunks > 1).then_some(Extent::Start),
        };
    }
}

/// As [`decode`], of a body whose server wrote line ends of its own: `\n`, more of them, or none behind a chunk. `None` unless all
/// sizes are there, up to the last one: no text has them.
pub(super) fn decode_leniently(body: &[u8], output: &mut Vec<u8>) -> Option<Extent> {
    let before = output.len();
    let mut rest = body;
    loop {
        rest = rest.trim_ascii_start();
        let line_end = memchr(b'\n', &rest[..rest.len().min(MAX_LINE)]);
        let line = &rest[..line_end.unwrap_or(rest.len())];
        let size = parse_digits(line.strip_suffix(b"\r").unwrap_or(line));
        match size {
            Some(0) if output.len() > before => return Some(Extent::Whole),
            Some(size) if size > 0 && line_end.is_some_and(|end| size < rest.len() - end) => {
                let (chunk, after) = rest[line.len() + 1..].split_at(size);
                output.extend_from_slice(chunk);
                rest = after;
            }
            _ => {
                output.truncate(before);
                return None;
            }
        }
    }
}

/// As [`decode`], of a body whose first size is damaged: what stands before the next size counts, if from there on all is whole up
/// to the end of the body. `None` if it is not: crawlers often decode a body, but keep the header.
pub(super) fn decode_behind_damage(body: &[u8], output: &mut Vec<u8>) -> Option<Extent> {
    let line_end = memchr(b'\n', &body[..body.len().min(MAX_DAMAGED)])?;
    let size = body[..line_end].strip_suffix(b"\r")?;
    if !size.iter().all(u8::is_ascii_alphanumeric) {
        return None;
    }
    let content = &body[line_end + 1..];
    let mut ends = memmem::find_iter(content, b"\r\n");
    let end = ends.find(|end| are_chunks_to_the_end(&content[end + 2..]))?;
    output.extend_from_slice(&content[..end]);
    decode(&content[end + 2..], output)?;
    Some(Extent::Start)
}

/// Whether some bytes are chunks, at least one with content, and then only white space.
fn are_chunks_to_the_end(mut rest: &[u8]) -> bool {
    let mut chunks = 0;
    loop {
        let Some((size, behind)) = read_size(rest) else {
            return false;
        };
        if size == 0 {
            return chunks > 0 && behind.trim_ascii().is_empty();
        }
        let after = behind.get(size..);
        let Some(after) = after.and_then(|after| after.strip_prefix(b"\r\n")) else {
            return false;
        };
        rest = after;
        chunks += 1;
    }
}

/// The size in a first line such as `1f8;name=value\r`, and what is behind the line. A line without a carriage return has none: text may
/// begin with a number.
fn read_size(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let end = memchr(b'\n', &bytes[..bytes.len().min(MAX_LINE)])?;
    let size = parse_digits(bytes[..end].strip_suffix(b"\r")?)?;
    Some((size, &bytes[end + 1..]))
}

/// The size in a line without its end.
fn parse_digits(line: &[u8]) -> Option<usize> {
    let digits = &line[..memchr(b';', line).unwrap_or(line.len())];
    let digits = digits.trim_ascii();
    let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_usize, |size, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        size.checked_mul(16)?.checked_add(digit as usize)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(body: &[u8]) -> Option<(Vec<u8>, Extent)> {
        let mut output = Vec::new();
        decode(body, &mut output).map(|extent| (output, extent))
    }

    #[test]
    fn a_damaged_first_size_costs_what_it_says_alone() {
        let behind = |body: &str| {
            let mut output = Vec::new();
            let extent = decode_behind_damage(body.as_bytes(), &mut output);
            extent.map(|extent| (String::from_utf8(output).unwrap(), extent))
        };
        for size in ["zz", "", "8"] {
            let body = format!("{size}\r\nWi\r\n7\r\nki\r\n6\r\npedia \r\n0\r\n\r\n");
            assert_eq!(decoded(body.as_bytes()), None);
            let content = "Wi\r\n7\r\nkipedia ".to_owned();
            assert_eq!(behind(&body), Some((content, Extent::Start)), "{size}");
        }
        for text in [
            "A text\r\nof lines\r\n12\r\n",
            "A text of one line",
            "\r\n1\r\n",
        ] {
            assert_eq!(behind(text), None);
        }
    }

    #[test]
    fn chunks_are_joined() {
        let whole = |content| Some((content, Extent::Whole));
        let start = |content| Some((content, Extent::Start));
        for (body, content) in [
            ("4\r\nWiki\r\n6\r\npedia \r\n0\r\n\r\n", whole("Wikipedia ")),
            (
                "00004;a=b\r\nWiki\n0A \r\n0123456789\r\n000\r\nTrailer: x\r\n\r\n",
                whole("Wiki0123456789"),
            ),
            ("0\r\n\r\n", whole("")),
            ("0x4\r\nWiki\r\n0x0\r\n\r\n", whole("Wiki")),
            ("4\r\nWiki\r\n6\r\nped", start("Wikiped")),
            ("4\r\nWiki\r\n6", start("Wiki")),
            ("4\r\nWiki\r\n", start("Wiki")),
            ("4\r\nWiki", start("Wiki")),
            ("40\r\nWiki", start("Wiki")),
            // Damaged behind the first chunk.
            ("4\r\nWiki\r\nx\r\n", start("Wiki")),
            ("4\r\nWiki\r\nno size", start("Wiki")),
            ("4\r\nWiki\r\n2\r\npedia\r\n", start("Wikipe")),
            // Not chunked.
            ("", None),
            ("4", None),
            ("<html>\r\n</html>\r\n", None),
            ("2026\nin text", None),
            ("4\r\nWikipedia\r\n", None),
            ("ffffffffffffffffff\r\nWiki", None),
        ] {
            let content = content.map(|(content, extent): (&str, _)| (content.into(), extent));
            assert_eq!(decoded(body.as_bytes()), content, "{body:?}");
        }
    }

    #[test]
    fn line_ends_of_other_servers() {
        for body in [
            "4\nWiki\n6\npedia \n0\n\n",
            "\r\n4\r\nWiki\r\n\r\n6\r\npedia \r\n0\r\n",
            "4\r\nWiki6\r\npedia 0\r\n\r\n",
            "4\nWiki6\npedia 0",
        ] {
            let mut output = Vec::new();
            assert_eq!(
                decoded(body.as_bytes()).filter(|(_, extent)| *extent == Extent::Whole),
                None
            );
            let extent = decode_leniently(body.as_bytes(), &mut output);
            assert_eq!(
                (&output[..], extent),
                (&b"Wikipedia "[..], Some(Extent::Whole)),
                "{body:?}"
            );
        }
        for body in [
            "",
            "0",
            "2026\nin text",
            "4\nWiki",
            "4\nWiki\n",
            "<p>",
            "4\nWiki\nx\n0\n",
            "99\nWiki\n0\n",
        ] {
            let mut output = b"before".to_vec();
            assert_eq!(
                decode_leniently(body.as_bytes(), &mut output),
                None,
                "{body:?}"
            );
            assert_eq!(output, b"before");
        }
    }

    proptest! {
        #[test]
        fn chunks_are_read_as_written(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..20),
            cut in any::<proptest::sample::Index>(),
        ) {
            let mut body = Vec::new();
            for chunk in &chunks {
                body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                body.extend_from_slice(chunk);
                body.extend_from_slice(b"\r\n");
            }
            body.extend_from_slice(b"0\r\n\r\n");
            let content = chunks.concat();
            prop_assert_eq!(decoded(&body), Some((content.clone(), Extent::Whole)));
            if let Some((start, extent)) = decoded(&body[..cut.index(body.len())]) {
                prop_assert!(content.starts_with(&start));
                prop_assert!(extent == Extent::Start || start == content);
            }
        }
    }
}
