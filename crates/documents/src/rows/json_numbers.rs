//! Numbers that JSON does not have, and that Python and others write.

use memchr::{memchr3, memmem};

/// The object with `null` for each `NaN`, `Infinity` and `-Infinity` outside of strings; `None` if it has none.
pub(super) fn without_nan(object: &[u8]) -> Option<Vec<u8>> {
    let may_have =
        memmem::find(object, b"NaN").is_some() || memmem::find(object, b"Infinity").is_some();
    if !may_have {
        return None;
    }
    let mut text = Vec::with_capacity(object.len());
    let (mut rest, mut has_one) = (object, false);
    // A string, or the first letter of a number.
    while let Some(at) = memchr3(b'"', b'N', b'I', rest) {
        let (before, found) = rest.split_at(at);
        text.extend_from_slice(before);
        let length = if found[0] == b'"' {
            string_length(found)
        } else if let Some(number) = [&b"NaN"[..], b"Infinity"]
            .into_iter()
            .find(|number| found.starts_with(number))
        {
            has_one = true;
            if text.last() == Some(&b'-') {
                text.pop();
            }
            text.extend_from_slice(b"null");
            rest = &found[number.len()..];
            continue;
        } else {
            1
        };
        text.extend_from_slice(&found[..length]);
        rest = &found[length..];
    }
    text.extend_from_slice(rest);
    has_one.then_some(text)
}

/// The length of the string at the start of `text`, with its quotes.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_none_become_null() {
        for (object, expected) in [
            (
                r#"{"a": NaN, "b": [-Infinity,Infinity]}"#,
                Some(r#"{"a": null, "b": [null,null]}"#),
            ),
            (r#"{"a": "NaN", "b": "\"NaN", "Infinity": 1}"#, None),
            (
                r#"{"a": "Infinity", "b":NaN}"#,
                Some(r#"{"a": "Infinity", "b":null}"#),
            ),
            (r#"{"a": Nothing, "NaN": "x"#, None),
            (r#"{"a": 1}"#, None),
        ] {
            let found = without_nan(object.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{object}");
        }
    }
}
