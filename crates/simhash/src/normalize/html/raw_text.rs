//! The ends of what has no tags in it: comments, declarations, scripts, and other elements of raw text.

use memchr::{memchr, memchr2};

/// The end of the comment whose text begins at `begin`, behind `<!--`; the end of the page if it is not closed.
pub(super) fn comment_end(page: &[u8], begin: usize) -> usize {
    let text = &page[begin..];
    // `<!-->` and `<!--->` are whole comments.
    if text.starts_with(b">") {
        return begin + 1;
    }
    if text.starts_with(b"->") {
        return begin + 2;
    }
    let mut at = 0;
    while let Some(step) = memchr(b'>', &text[at..]) {
        let before = &text[..at + step];
        at += step + 1;
        if before.ends_with(b"--") || before.ends_with(b"--!") {
            return begin + at;
        }
    }
    page.len()
}

/// The end of a declaration or of another tag that is taken for a comment: behind the next `>`, or the end of the page.
pub(super) fn bogus_comment_end(page: &[u8], begin: usize) -> usize {
    memchr(b'>', &page[begin..]).map_or(page.len(), |len| begin + len + 1)
}

/// Returns the position of the first end tag `</name` at or after `begin`, and the length of the page if there is none.
pub(super) fn raw_text_end(page: &[u8], begin: usize, name: &str) -> usize {
    let mut at = begin;
    while let Some(step) = memchr(b'<', &page[at..]) {
        at += step;
        if is_tag(&page[at..], b"</", name) {
            return at;
        }
        at += 1;
    }
    page.len()
}

/// Whether `text` begins with `open` and the name, and the name ends there.
fn is_tag(text: &[u8], open: &[u8], name: &str) -> bool {
    let Some(rest) = text.strip_prefix(open) else {
        return false;
    };
    rest.get(..name.len())
        .is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
        && matches!(
            rest.get(name.len()),
            Some(b' ' | b'\t' | b'\n' | b'\x0c' | b'\r' | b'/' | b'>')
        )
}

/// What a script is in. Old pages hide scripts from older browsers in comments, and write scripts from scripts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Plain,
    /// Behind `<!--`.
    Escaped,
    /// Behind `<!--` and `<script`: the next `</script` closes only the inner script.
    Double,
}

/// Returns the position of the end tag of a script whose text begins at `begin`, and the length of the page if nothing closes it.
pub(super) fn script_end(page: &[u8], begin: usize) -> usize {
    let mut state = Script::Plain;
    let mut at = begin;
    // Where the dashes begin that may be the end of the escaped part.
    let mut dashes = begin;
    loop {
        let rest = &page[at..];
        let found = match state {
            Script::Plain => memchr(b'<', rest),
            Script::Escaped | Script::Double => memchr2(b'<', b'>', rest),
        };
        let Some(step) = found else {
            return page.len();
        };
        at += step;
        let rest = &page[at..];
        if rest[0] == b'>' {
            if page[dashes..at].ends_with(b"--") {
                state = Script::Plain;
            }
        } else if is_tag(rest, b"</", "script") {
            if state != Script::Double {
                return at;
            }
            state = Script::Escaped;
        } else if state == Script::Plain && rest.starts_with(b"<!--") {
            state = Script::Escaped;
            dashes = at + 2;
        } else if state == Script::Escaped && is_tag(rest, b"<", "script") {
            state = Script::Double;
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_end_as_in_the_standard() {
        for text in [
            "<!-- a --|>",
            "<!--|>",
            "<!---|>",
            "<!----|>",
            "<!-- > -> --!|>",
            "<!--!> a --|>",
            "<!-- <!-- --|> -->",
            "<!-- a <!--|>",
            "<!-- a ---|>",
            "<!--- a",
        ] {
            let page = text.replace('|', "");
            let end = text.find('|').map_or(page.len(), |at| at + 1);
            assert_eq!(comment_end(page.as_bytes(), 4), end, "{text}");
        }
        assert_eq!(bogus_comment_end(b"<?a>b", 1), 4);
        assert_eq!(bogus_comment_end(b"<?a", 1), 3);
    }

    #[test]
    fn scripts_end_as_in_the_standard() {
        for text in [
            "if (a < b) |</script>",
            "'</scripts>' |</SCRIPT >",
            "<!-- |</script>",
            "<!-- <script> </script> |</script>",
            "<!-- <script> --> |</script> </script>",
            "<!-- <scripts> |</script>",
            "<!--> <script> |</script>",
            "<script> |</script>",
            "<!-- <script> </script> --> |</script>",
            "<!-- <script",
            "</script",
        ] {
            let page = text.replace('|', "");
            let end = text.find('|').unwrap_or(page.len());
            assert_eq!(script_end(page.as_bytes(), 0), end, "{text}");
        }
        assert_eq!(raw_text_end(b"<b></styles></STYLE\n>", 0, "style"), 12);
    }
}
