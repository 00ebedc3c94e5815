//! Which elements are not shown.
//!
//! Style sheets are not read, so this knows only what stands in the page itself: elements that browsers do not show,
//! and attributes. The attributes of `html` and `body` do not count: pages hide themselves until their scripts run.

use memchr::memchr;

use super::elements::{Element, HIDDEN};
use super::scan::Attributes;

/// What hides an element, with all that it contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    /// Its kind: a drawing, a template, a closed dialog.
    Kind,
    /// An attribute that a script may take away.
    Veiled,
}

/// What hides an element with these attributes; `None` if it is shown. The template of a shadow root is.
pub(super) fn hides(element: Element, attributes: &Attributes<'_>) -> Option<Hidden> {
    let is_closed_dialog = element == Element::Dialog && !attributes.open;
    let is_shadow_root = element == Element::Template && attributes.shadow_root;
    if (element.has(HIDDEN) && !is_shadow_root) || attributes.popover || is_closed_dialog {
        Some(Hidden::Kind)
    } else if attributes.hidden || attributes.style.is_some_and(style_hides) {
        Some(Hidden::Veiled)
    } else {
        None
    }
}

/// Whether a `style` attribute hides its element: by `display: none` or `visibility: hidden`. Of several declarations
/// of a property the last counts.
fn style_hides(style: &[u8]) -> bool {
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
            assert!(style_hides(style.as_bytes()), "{style}");
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
            assert!(!style_hides(style.as_bytes()), "{style}");
        }
    }
}
