//! The chunked transfer coding (RFC 9112, section 7.1).

use memchr::memchr;

/// The most bytes of a line with a chunk's size, and of its extensions.
const MAX_LINE: usize = 4 << 10;

/// Appends the content of a chunked body to `output`. `false` if the body is not chunked: crawlers often decode it, but keep
/// the header. Trailers are ignored. A body may be cut off anywhere.
pub(super) fn decode(body: &[u8], output: &mut Vec<u8>) -> bool {
    let mut rest = body;
    let mut chunks = 0;
    loop {
        let line_end = memchr(b'\n', &rest[..rest.len().min(MAX_LINE)]);
        let Some(line_end) = line_end else {
            // Cut off here, or else no size.
            return chunks > 0
                && rest
                    .iter()
                    .all(|byte| byte.is_ascii_hexdigit() || *byte == b'\r');
        };
        let Some(size) = parse_size(&rest[..line_end]) else {
            return false;
        };
        rest = &rest[line_end + 1..];
        chunks += 1;
        if size == 0 {
            return true;
        }
        let Some((chunk, after)) = rest.split_at_checked(size) else {
            output.extend_from_slice(rest);
            return true;
        };
        output.extend_from_slice(chunk);
        rest = match after {
            [b'\r', b'\n', rest @ ..] | [b'\n', rest @ ..] => rest,
            [] | [b'\r'] => return true,
            _ => return false,
        };
    }
}

/// The size in a line such as `1f8;name=value\r`. A line without a carriage return is none: text may begin with a number.
fn parse_size(line: &[u8]) -> Option<usize> {
    let line = line.strip_suffix(b"\r")?;
    let digits = &line[..memchr(b';', line).unwrap_or(line.len())];
    let digits = digits.trim_ascii();
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

    fn decoded(body: &[u8]) -> Option<Vec<u8>> {
        let mut output = Vec::new();
        decode(body, &mut output).then_some(output)
    }

    #[test]
    fn chunks_are_joined() {
        for (body, content) in [
            ("4\r\nWiki\r\n6\r\npedia \r\n0\r\n\r\n", Some("Wikipedia ")),
            (
                "00004;a=b\r\nWiki\n0A \r\n0123456789\r\n000\r\nTrailer: x\r\n\r\n",
                Some("Wiki0123456789"),
            ),
            ("0\r\n\r\n", Some("")),
            // Cut off.
            ("4\r\nWiki\r\n6\r\nped", Some("Wikiped")),
            ("4\r\nWiki\r\n6", Some("Wiki")),
            ("4\r\nWiki\r\n", Some("Wiki")),
            ("4\r\nWiki", Some("Wiki")),
            ("40\r\nWiki", Some("Wiki")),
            // Not chunked.
            ("", None),
            ("4", None),
            ("<html>\r\n</html>\r\n", None),
            ("2026\nin text", None),
            ("4\r\nWikipedia\r\n", None),
            ("4\r\nWiki\r\nx\r\n", None),
            ("4\r\nWiki\r\nno size", None),
            ("ffffffffffffffffff\r\nWiki", None),
        ] {
            let content = content.map(|content: &str| content.as_bytes().to_vec());
            assert_eq!(decoded(body.as_bytes()), content, "{body:?}");
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
            prop_assert_eq!(decoded(&body), Some(content.clone()));
            if let Some(start) = decoded(&body[..cut.index(body.len())]) {
                prop_assert!(content.starts_with(&start));
            }
        }
    }
}
