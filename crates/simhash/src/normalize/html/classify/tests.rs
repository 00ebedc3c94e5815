//! Which blocks are kept, of pages that a sketch describes.

use super::super::main::{main_text, read_blocks};
use super::keep::CLOSE;
use super::*;

/// A page whose texts have as many words as the numbers in `sketch`; after a slash, how many of them are in a link.
fn page(sketch: &str) -> String {
    let mut page = String::new();
    for part in sketch.split_inclusive('>') {
        let (numbers, tag) = part.split_at(part.find('<').unwrap_or(part.len()));
        if !numbers.is_empty() {
            let (words, links) = numbers.split_once('/').unwrap_or((numbers, "0"));
            let [words, links] = [words, links].map(|number| number.parse::<usize>().unwrap());
            page.push_str(&"word ".repeat(words - links));
            page.push_str(&format!("<a href=x>{}</a>", "link ".repeat(links)));
        }
        page.push_str(tag);
    }
    page
}

/// The numbers of words of the blocks that are kept.
fn kept_of(page: &str) -> Vec<u32> {
    let mut text = String::new();
    let (mut blocks, containers, title) = read_blocks(page, &mut text);
    let any = choose(&mut blocks, &text, &containers, &title);
    let kept = blocks.iter().filter(|block| block.is_kept);
    let kept: Vec<u32> = kept.map(|block| block.words).collect();
    assert_eq!(any, !kept.is_empty());
    kept
}

#[track_caller]
fn check(sketch: &str, expected: &[u32]) {
    assert_eq!(kept_of(&page(sketch)), expected, "{sketch}");
}

#[test]
fn words_and_links_decide() {
    check("", &[]);
    check("<p>17<p>18/6<p>19/7<div>16</div>", &[17, 18]);
    check("<div>16</div><p>50/40", &[]);
    check("<nav>50</nav>", &[]);
    // Many short lines.
    check("<div>5<br>5<br>5<br>5</div><p>17", &[17]);
}

#[test]
fn short_sentences_are_content_between_long_ones() {
    check("<p>17<li>1</li><div>1</div><p>3/2<p>20", &[17, 1, 20]);
    check("<div><p>17</div><p>1<div><p>20</div>", &[17, 20]);
}

#[test]
fn short_sentences_are_content_beside_each_other() {
    check("<li>5<li>6<li>4/1<li>7/3", &[5, 6]);
    check("<li>5<li>5", &[]);
    for (sentence, expected) in [
        ("You are visitor number 23201 since 1998.", 11),
        ("Now you have counted to 3, to 2 and to 1, so begin", 11),
        ("Now you have counted to ten, so begin with step 1.", 22),
    ] {
        let page = format!("{}<li>{sentence}", page("<li>11"));
        assert_eq!(kept_of(&page).iter().sum::<u32>(), expected, "{sentence}");
    }
}

#[test]
fn cards_are_no_content() {
    // A linked title and a sentence.
    let article = "<h1>3</h1><p>40<p>41";
    check(&format!("{article}<div>8/7<p>17</div>"), &[3, 40, 41]);
    check(
        &format!("{article}<div><div>5/5</div><div><p>19</div></div>"),
        &[3, 40, 41],
    );
    // Few links; many words; the title.
    check(&format!("{article}<div>8/7<p>28</div>"), &[3, 40, 41, 28]);
    check(&format!("{article}<div>18/18<p>62</div>"), &[3, 40, 41, 62]);
    check("<div><h1>3</h1>8/7<p>17</div>", &[3, 17]);
}

#[test]
fn content_stands_around_the_title() {
    let notice = "<div><p>40</div>";
    check(&format!("<div><h1>3</h1><p>30</div>{notice}"), &[3, 30]);
    check(
        &format!("<div><div><h1>3</h1></div><p>30</div>{notice}"),
        &[3, 30],
    );
    // Too few words, or too small a part of all.
    check(&format!("<div><h1>3</h1><p>19</div>{notice}"), &[3, 19, 40]);
    check(&format!("<div><h1>3</h1><p>25</div>{notice}"), &[3, 25, 40]);
    // The highest heading counts, but none that leads elsewhere.
    check(
        &format!("<div><h3>2</h3><p>18</div><div><h2>3</h2><p>60</div>{notice}"),
        &[3, 60],
    );
    check(
        &format!("<div><h2>3/3</h2><p>60</div><div><h3>3</h3><p>81</div>{notice}"),
        &[3, 81],
    );
}

#[test]
fn the_title_element_names_the_title() {
    // What the element says, then the page; of the words of a heading, the element names the first line.
    let kept = |title: &str, sketch: &str| {
        let page = page(sketch).replace("word ", "w ");
        kept_of(&format!("<title>{title}</title>{page}"))
    };
    let notice = "<div><p>40</div>";
    // A heading that leads elsewhere, below another.
    let links = format!("<div><h2>4/4</h2><p>60</div>{notice}");
    assert_eq!(kept("Site", &links), [60, 40]);
    assert_eq!(kept("link link link link | Site", &links), [4, 60]);
    // Text that is no heading, with the author behind it.
    let text = format!("<div>3<br>4<p>60</div>{notice}");
    assert_eq!(kept("Site", &text), [60, 40]);
    assert_eq!(kept("w w w | Site", &text), [7, 60]);
    assert_eq!(kept("w w w w | Site", &text), [60, 40]);
    // It is kept, whatever stands between it and the content.
    let far = format!("<h1>3</h1>{}<p>40", "<div>1</div>".repeat(9));
    assert_eq!(kept("Site", &far), [40]);
    assert_eq!(kept("w w w", &far), [3, 40]);
    // A post of a forum is no card of another page.
    let post = "<div><h3>3/3</h3><p>9/9<p>19</div>";
    let posts = format!("<h2>3/3</h2><p>40</p>{post}");
    assert_eq!(kept("Site", &posts), [40]);
    assert_eq!(kept("link link link", &posts), [3, 40, 19]);
}

#[test]
fn a_title_ends_before_the_author() {
    let page = format!(
        "<title>One two</title><div>One two<br>by Ada<p>{}</div>",
        "w ".repeat(60)
    );
    let mut text = String::new();
    main_text(&page, &mut text);
    assert_eq!(text.lines().next(), Some("One two"));
    assert!(!text.contains("Ada"), "{text}");
}

#[test]
fn links_to_headings_are_no_links() {
    let page = page("<h2>3/3</h2><p>40");
    assert_eq!(kept_of(&page), [40]);
    let page = page.replace("href=x", "href='#x'");
    assert_eq!(kept_of(&page), [3, 40]);
}

#[test]
fn content_is_in_the_only_article() {
    check("<article><p>17</article><p>30", &[17]);
    check("<article><li>6<li>7</article><p>30", &[6, 7]);
    check(
        "<article><p>17</article><article><p>18</article><p>30",
        &[17, 18, 30],
    );
    check("<article><div>9</div></article><p>30", &[30]);
}

#[test]
fn blocks_in_frames_belong_to_the_text_around_them() {
    check(
        "<p>17<div><pre>1</pre></div><div>4</div><p>20",
        &[17, 1, 4, 20],
    );
    check("<p>17<div>2<pre>1</pre></div><p>20", &[17, 1, 20]);
    check(
        "<p>17<div>3/3</div><div><pre>1</pre></div><p>20",
        &[17, 1, 20],
    );
    check(
        "<p>17<div>3</div><div><li>1<li>1<li>1</div><p>20<div>4</div>",
        &[17, 20],
    );
}

#[test]
fn an_article_ends_with_short_sentences() {
    check("<p>17<p>3<p>4/3<p>5", &[17, 3]);
    check("<div><p>17</div><p>3", &[17]);
    check("<p>17<h2>2</h2><div><pre>3</pre></div><p>3", &[17, 2, 3, 3]);
    check("<article><p>17<p>4/3<p>5</article>", &[17]);
    // Whatever stands in between in a container of its own.
    for other in [
        "",
        "<nav>9</nav>",
        "<div>1</div>",
        "<div>3/3</div>",
        "<div><p>5</div>",
        "<div class=ad><p>20</div>",
    ] {
        check(&format!("<div><p>17{other}<p>3</div>"), &[17, 3]);
        check(&format!("<article><p>17{other}<p>3</article>"), &[17, 3]);
    }
    for (end, expected) in [
        ("You are visitor number 23201 since 1998.", 17),
        ("It gives C4322 in VS2019 with /jobs=8.", 24),
    ] {
        let page = format!("{}<p>{end}", page("<p>17"));
        assert_eq!(kept_of(&page).iter().sum::<u32>(), expected, "{end}");
    }
}

#[test]
fn text_without_marks_belongs_to_text_around_it() {
    check("<div>2<li>17</li>3<li>17</li>4</div>", &[17, 3, 17]);
    check("<div>17<li>3</li>2<li>18</li>5</div>", &[17, 3, 2, 18]);
    check("<div>17<li>3</li>4/3<li>4</div>", &[17, 3]);
    check("<div>17<div>3</div></div>3", &[17]);
}

#[test]
fn numbers_are_counted() {
    for (text, expected) in [
        ("", 0),
        ("3 June 2018, 14:30", 4),
        ("1,956 views, 12k shares, 3rd", 3),
        ("C4322 RFC7748 {{8080}} --jobs=4 имя1", 0),
        ("发布于2026年3月4日", 3),
    ] {
        assert_eq!(numbers(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn headings_stand_before_content() {
    check("<h1>3/3</h1><h2>2</h2><div>2</div><p>40", &[3, 2, 40]);
    check("<h2>1</h2><h2>2</h2><p>40<h2>3</h2>", &[2, 40]);
    check("<h2>3/3</h2><p>40", &[40]);
    for (labels, expected) in [(CLOSE, &[3, 40][..]), (CLOSE + 1, &[40])] {
        check(
            &format!("<h1>3</h1>{}<p>40", "<div>1</div>".repeat(labels as usize)),
            expected,
        );
    }
    // What elements exclude and lists of links do not count in between.
    check(
        &format!("<h1>3</h1>{}<p>40", "<nav>3</nav><p>3/3</p>".repeat(9)),
        &[3, 40],
    );
}

#[test]
fn elements_say_less_if_nothing_is_left() {
    check("<main><p>20</main><form><p>21</form><p>22", &[20]);
    check("<main>5</main><form><p>21</form><p>22", &[21, 22]);
    check("<form><p>21</form>", &[21]);
    check("<div class=sidebar><p>21</div>", &[21]);
}
