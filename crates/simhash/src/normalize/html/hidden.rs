//! Which elements are not shown.
//!
//! Style sheets are not read, so this knows only what stands in the page itself: elements that browsers do not show,
//! and attributes. The attributes of `html` and `body` do not count: pages hide themselves until their scripts run.

use super::boilerplate::is_boilerplate;
use super::elements::{BLOCK, Element, HIDDEN};
use super::scan::Attributes;
use super::style::Style;

/// Whether the text of an element is shown, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sight {
    Shown,
    /// A style hides it (`visibility`), but it has its place on the page. An element inside may be shown.
    Invisible,
    /// An attribute hides it, which a script may take away, with all that it contains.
    Veiled,
    /// No script is expected to show it, unless a reader asks for it: a drawing, a template, a closed dialog, popover or menu. It
    /// does not count as hidden text.
    Never,
}

impl Sight {
    /// Whether an element with this sight takes up room on the page: its start and end then separate texts, even if its own text is
    /// left out.
    pub(super) fn has_place(self) -> bool {
        self <= Self::Invisible
    }

    /// The sight of an element inside of one with this sight. The template of a shadow root is an element like others.
    pub(super) fn inside(self, element: Element, attributes: &Attributes<'_>) -> Self {
        if self == Self::Never {
            return self;
        }
        let style = attributes.style.map(Style::read).unwrap_or_default();
        let is_shadow_root = element == Element::Template && attributes.shadow_root == Some(true);
        // Browsers hide it by a style of their own, which the style attribute overrides.
        let is_closed = match element {
            Element::Dialog => !attributes.open,
            _ => attributes.popover,
        } && style.is_displayed != Some(true);
        if (element.has(HIDDEN) && !is_shadow_root) || is_closed {
            return Self::Never;
        }
        let (mut is_displayed, mut shows_content) = (true, true);
        if let Some(hidden) = attributes.hidden {
            // A search on the page opens such an element.
            let is_findable = hidden.eq_ignore_ascii_case(b"until-found");
            (is_displayed, shows_content) = (is_findable, !is_findable);
        }
        // Browsers skip the content only of boxes that can have a size without it: not of those in a line, nor of rows.
        let is_box = element.has(BLOCK)
            && !matches!(
                element,
                Element::Tr | Element::Tbody | Element::Thead | Element::Tfoot
            );
        let is_there = style.is_displayed.unwrap_or(is_displayed)
            && (!is_box || style.shows_content.unwrap_or(shows_content));
        match style.is_visible {
            _ if !is_there && is_boilerplate(element, attributes) => Self::Never,
            _ if !is_there => self.max(Self::Veiled),
            _ if !self.has_place() => self,
            Some(true) => Self::Shown,
            Some(false) => Self::Invisible,
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Sight::{Invisible, Never, Shown, Veiled};
    use super::*;

    #[test]
    fn sights_of_elements() {
        let no_attributes = Attributes::default();
        let style = |style: &'static str| Attributes {
            style: Some(style.as_bytes()),
            ..no_attributes
        };
        let hidden = |value: &'static str, style: Option<&'static str>| Attributes {
            hidden: Some(value.as_bytes()),
            style: style.map(str::as_bytes),
            ..no_attributes
        };
        let named = |class: &'static str| Attributes {
            class: Some(class.as_bytes()),
            ..hidden("", None)
        };
        let role = |role: &'static str| Attributes {
            role: Some(role.as_bytes()),
            ..hidden("", None)
        };
        let popover = Attributes {
            popover: true,
            ..no_attributes
        };
        let open = Attributes {
            open: true,
            ..no_attributes
        };
        for (element, attributes, expected) in [
            (Element::Div, no_attributes, Shown),
            (Element::Div, hidden("", None), Veiled),
            (Element::Div, hidden("until-found", None), Veiled),
            (Element::Div, style("display:none"), Veiled),
            (Element::Div, style("visibility:hidden"), Invisible),
            (Element::Div, style("content-visibility:hidden"), Veiled),
            // In a line, and as a part of a table, an element shows its content.
            (Element::Span, style("content-visibility:hidden"), Shown),
            (Element::Span, hidden("until-found", None), Shown),
            (Element::Span, hidden("", None), Veiled),
            (Element::Tr, style("content-visibility:hidden"), Shown),
            (Element::Tbody, hidden("until-found", None), Shown),
            // A style counts more than what browsers do by themselves.
            (Element::Div, hidden("", Some("display:flex")), Shown),
            (Element::Div, hidden("", Some("color:red")), Veiled),
            (
                Element::Div,
                hidden("Until-Found", Some("display:block")),
                Veiled,
            ),
            (
                Element::Div,
                hidden("until-found", Some("content-visibility:visible")),
                Shown,
            ),
            (
                Element::Div,
                hidden("", Some("content-visibility:visible")),
                Veiled,
            ),
            (Element::Nav, hidden("", None), Never),
            (Element::Nav, no_attributes, Shown),
            (Element::Nav, role("article"), Veiled),
            (Element::Div, role("dialog"), Never),
            (Element::Article, role("dialog"), Veiled),
            (Element::Span, role("dialog"), Veiled),
            (Element::Div, named("modal-content"), Veiled),
            (Element::Dialog, no_attributes, Never),
            (Element::Dialog, open, Shown),
            (Element::Dialog, style("display:block"), Shown),
            (Element::Div, popover, Never),
            (
                Element::Dialog,
                Attributes {
                    popover: true,
                    ..open
                },
                Shown,
            ),
            (Element::Svg, style("display:block"), Never),
        ] {
            assert_eq!(
                Shown.inside(element, &attributes),
                expected,
                "{element:?} {attributes:?}"
            );
        }
    }

    #[test]
    fn sights_inside_of_others() {
        let [none, hidden, visible, gone] = [
            "",
            "visibility:collapse",
            "visibility:visible",
            "display:none",
        ]
        .map(|style| Attributes {
            style: Some(style.as_bytes()),
            ..Attributes::default()
        });
        for (outer, attributes, expected) in [
            (Shown, none, Shown),
            (Shown, visible, Shown),
            (Invisible, none, Invisible),
            (Invisible, hidden, Invisible),
            (Invisible, visible, Shown),
            (Invisible, gone, Veiled),
            (Veiled, none, Veiled),
            (Veiled, hidden, Veiled),
            (Veiled, visible, Veiled),
            (Never, visible, Never),
            (Never, gone, Never),
        ] {
            let inner = outer.inside(Element::Div, &attributes);
            assert_eq!(inner, expected, "{outer:?} {attributes:?}");
            assert_eq!(outer.inside(Element::Svg, &attributes), Never);
        }
    }
}
