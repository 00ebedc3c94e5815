//! Which elements are not shown.
//!
//! Style sheets are not read, so this knows only what stands in the page itself: elements that browsers do not show,
//! and attributes. The attributes of `html` and `body` do not count: pages hide themselves until their scripts run.

use memchr::memchr;

use super::elements::{Element, HIDDEN};
use super::scan::Attributes;

/// Whether an element with these attributes is hidden, with all that it contains.
pub(super) fn is_hidden(element: Element, attributes: &Attributes<'_>) -> bool {
    let is_closed_dialog = element == Element::Dialog && !attributes.open;
    element.has(HIDDEN)
        || attributes.hidden
        || attributes.popover
        || is_closed_dialog
        || attributes
            .aria_hidden
            .is_some_and(|value| value.eq_ignore_ascii_case(b"true"))
        || attributes.style.is_some_and(hides)
}

/// Whether a `style` attribute hides its element: by `display: none` or `visibility: hidden`. Of several declarations
/// of a property the last counts.
fn hides(style: &[u8]) -> bool {
    let (mut is_gone, mut is_invisible) = (false, false);
    for declaration in style.split(|&byte| byte == b';') {
        let Some(colon) = memchr(b':', declaration) else {
            continue;
        };
        let property = declaration[..colon].trim_ascii();
        let mut words = declaration[colon + 1..]
            .trim_ascii_start()
            .split(|&byte| byte.is_ascii_whitespace() || byte == b'!');
        // Behind it there may be `!important`.
        let value = words.next().unwrap_or_default();
        if property.eq_ignore_ascii_case(b"display") {
            is_gone = value.eq_ignore_ascii_case(b"none");
        } else if property.eq_ignore_ascii_case(b"visibility") {
            is_invisible = value.eq_ignore_ascii_case(b"hidden");
        }
    }
    is_gone || is_invisible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_that_hide() {
        for style in [
            "display:none",
            "color: red; DISPLAY : None !important",
            "visibility:hidden;",
            "display:block;display:none!important",
        ] {
            assert!(hides(style.as_bytes()), "{style}");
        }
        for style in [
            "",
            "display",
            "display:",
            "display:nones",
            "display:none;display:block",
            "x-display:none",
            "overflow:hidden",
            "background:url(display:none)",
        ] {
            assert!(!hides(style.as_bytes()), "{style}");
        }
    }
}
