//! The article of a page, as the reader view of a browser shows it.
//!
//! dom_smoothie finds it, a library that follows Mozilla's Readability: it scores elements by the length and the commas
//! of their paragraphs, by their classes and ids, and by their share of links, and takes the best with its siblings.
//!
//! The library decides the text, and so do dom_query, its tree, and `page_tree`. So the manifest names the one release of
//! both that makes version 1: another release is another version, unless it gives the same text for every page.

use dom_smoothie::{Article, Config, Readability};

use super::main::main_text;
use super::page_tree::page_tree;
use super::text::visible_text;

/// Appends the article of a page to `out`, in the lines of its visible text. If the library finds none, or if the page is
/// too large for it, appends the main text of the page.
pub(in super::super) fn article_text(page: &str, out: &mut String) {
    let begin = out.len();
    if let Some(article) = find_article(page) {
        visible_text(&article.content, out);
    }
    if out[begin..].trim().is_empty() {
        out.truncate(begin);
        main_text(page, out);
    }
}

fn find_article(page: &str) -> Option<Article> {
    let config = Config {
        // The tree has no scripts.
        disable_json_ld: true,
        ..Config::default()
    };
    let document = page_tree(page)?;
    let mut readability = Readability::with_document(document, None, Some(config)).ok()?;
    readability.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "This paragraph is long enough to be a part of the main text, because it has more than sixteen words.";
    const SECOND: &str = "Another paragraph of the same article follows here, which is again longer than the sixteen words of a label.";

    fn article_of(page: &str) -> String {
        let mut out = "before ".to_owned();
        article_text(page, &mut out);
        out.strip_prefix("before ").expect("is appended").to_owned()
    }

    /// These change with a release of the library that gives another text.
    #[test]
    fn articles_of_pages() {
        let nav = "<nav><ul><li><a href=/>Home</a><li><a href=/news>News</a></ul></nav>";
        let two = format!("<p>{LONG}</p><p>{SECOND}</p>");
        let six = two.repeat(3);
        let lines = format!("{LONG}\n{SECOND}");
        let six_lines = [&*lines; 3].join("\n");
        for (page, expected) in [
            (
                format!(
                    "{nav}<div class=content>{six}</div><div class=sidebar><p>{SECOND}</div><footer><p>{LONG}</footer>"
                ),
                six_lines.clone(),
            ),
            (
                format!(
                    "{nav}<article><h1>The title of an article</h1><p class=byline>By A. Author</p>{two}\
                    <aside><p>{SECOND}</aside>{two}{two}</article><div id=comments><p>{SECOND}</p></div>"
                ),
                format!("The title of an article\n{six_lines}"),
            ),
            (
                format!(
                    "<div><ul><li>{LONG}<li>{SECOND}</ul>{two}{two}</div><ul><li><a href=/1>One</a><li><a href=/2>Two</a></ul>"
                ),
                six_lines.clone(),
            ),
            (
                format!("<div id=main>{six}</div><div class=comments><p>{SECOND}</p></div>"),
                six_lines.clone(),
            ),
            (format!("<p>{LONG}</p>"), LONG.to_owned()),
            // The library looks for the addresses of videos in an object, and cuts a character there.
            (
                format!("<object>a\u{20ac}youtube.com<div>{six}</div>"),
                six_lines,
            ),
        ] {
            assert_eq!(article_of(&page), expected, "{page}");
        }
    }

    #[test]
    fn pages_without_an_article_have_their_main_text() {
        for (page, expected) in [
            (String::new(), ""),
            ("<p hidden>one</p>".to_owned(), ""),
            // The library leaves out what a reader can change.
            ("<textarea>one two".to_owned(), "one two"),
            // Too large.
            (
                format!(
                    "<div class=menu><p>{SECOND}</div><p>{LONG}{}",
                    "<br>".repeat(200_000)
                ),
                LONG,
            ),
        ] {
            let mut main = String::new();
            main_text(&page, &mut main);
            assert_eq!(main, expected);
            assert_eq!(article_of(&page), expected);
        }
    }

    /// Each is nearly as large as it may be, and has the shape for which the library needs the most time.
    #[test]
    fn articles_of_hostile_pages() {
        let paragraphs = format!("<p>{LONG}</p>").repeat(8);
        for (open, many) in [
            ("<div>", "<p>word "),
            ("<section>", "word <b>word</b> "),
            ("<div><section>", "<br><br>word"),
            ("<ul><li>", "<ul><li>word</ul>"),
            ("<div><ins>", "<a href=x>word</a>"),
            ("<table><tr><td>", "<table><tr><td>word</table>"),
            ("<div class=share>", "<img>"),
            ("<form><fieldset>", "<input>"),
        ] {
            let around = open.repeat(100);
            let mut page = format!("{around}{}{paragraphs}", many.repeat(4_000));
            assert!(page_tree(&page).is_some(), "{open}");
            assert!(!article_of(&page).is_empty(), "{open}");
            page.push_str(&many.repeat(20_000));
            assert!(page_tree(&page).is_none(), "{open}");
        }
        // Texts in which the serializer searches from many places to the end.
        for many in ["&", "&amp;", "a& ", "\u{a3}"] {
            let page = |times| format!("<p>{}</p>{paragraphs}", many.repeat(times));
            assert!(page_tree(&page(20_000)).is_some(), "{many}");
            assert!(page_tree(&page(500_000)).is_none(), "{many}");
            assert!(!article_of(&page(500_000)).is_empty(), "{many}");
        }
    }
}
