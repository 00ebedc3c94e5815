//! The text of a page, as a file's columns ask for it.

use std::borrow::Cow;

use simhash::Markup;
use warc::Form;

use super::columns::Pages;
use super::left_out::PLAIN_TEXT;
use super::xhtml;

/// The content of a document of the `form`, which pages are read as.
pub(super) fn content(pages: Pages, form: Form, text: Cow<'_, str>) -> Cow<'_, str> {
    if let (Pages::Html | Pages::VisibleText, Form::Xhtml) = (pages, form) {
        let html = xhtml::to_html(&text);
        return Cow::Owned(content(pages, Form::Html, html).into_owned());
    }
    match (pages, form) {
        (Pages::Source, _) | (Pages::Html, Form::Html) | (Pages::VisibleText, Form::Text) => text,
        (Pages::Html, Form::Text) => Cow::Owned(format!("{PLAIN_TEXT}{text}")),
        (Pages::VisibleText, Form::Html) | (_, Form::Xhtml) => {
            let mut visible = String::with_capacity(text.len() / 2);
            Markup::Text.strip(&text, &mut visible);
            Cow::Owned(visible)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_text_is_shown_by_its_page() {
        let text = "if a<b && c &amp; <p>\u{e9}</plaintext>";
        let page = content(Pages::Html, Form::Text, text.into());
        let shown = content(Pages::VisibleText, Form::Html, page);
        assert_eq!(shown.trim(), text);
        for pages in [Pages::VisibleText, Pages::Source] {
            assert_eq!(content(pages, Form::Text, text.into()), text);
        }
    }
}
