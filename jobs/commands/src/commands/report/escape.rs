//! Escapes text for HTML.

use crate::printing::visible;

/// Escapes text for use between tags or in a quoted attribute; also replaces control characters.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Characters shown of an id or a source.
const ID_CHARACTERS: usize = 160;

/// Escapes an id or a source for HTML, and cuts it after [`ID_CHARACTERS`] characters.
pub(super) fn escaped_start(id: &str) -> String {
    match id.char_indices().nth(ID_CHARACTERS) {
        Some((end, _)) => format!("{}…", escape(&id[..end])),
        None => escape(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(
            escape("<script>'a' & \"b\"</script>\u{202e}"),
            "&lt;script&gt;&#39;a&#39; &amp; &quot;b&quot;&lt;/script&gt;\u{fffd}"
        );
    }
}
