//! Pages and their texts.

use proptest::prelude::*;

use super::reference;

fn visible_text(page: &str) -> String {
    let mut out = "before ".to_owned();
    super::visible_text(page, &mut out);
    out.strip_prefix("before ").expect("is appended").to_owned()
}

fn main_text(page: &str) -> String {
    let mut out = "before ".to_owned();
    super::main_text(page, &mut out);
    out.strip_prefix("before ").expect("is appended").to_owned()
}

#[cfg(feature = "article")]
fn article_text(page: &str) -> String {
    let mut out = "before ".to_owned();
    super::article_text(page, &mut out);
    out.strip_prefix("before ").expect("is appended").to_owned()
}

#[test]
fn text_of_pages() {
    for (page, expected) in [
        ("", ""),
        ("  no markup,\n1 < 2 ", "no markup, 1 < 2"),
        ("<p>one<p>two", "one\ntwo"),
        ("<div>one<div>two</div>three</div>", "one\ntwo\nthree"),
        (
            "<!doctype html><html><head><title>T</title><body>one",
            "one",
        ),
        // Inline elements do not break words, others do.
        (
            "b<b>o</b>l<a href=x>d</a> <em>o</em>ne<wbr>two",
            "bold onetwo",
        ),
        ("one<br>two<br/>three</br>four", "one\ntwo\nthree\nfour"),
        (
            "one<img alt=two>three<input value=four>five",
            "one three five",
        ),
        ("<button>one</button><button>two</button>", "one two"),
        ("<x-one>one</x-one><x-two>two</x-two>", "one two"),
        ("<table><tr><td>1<td>2<tr><td>3</table>", "1\n2\n3"),
        (
            "<ul><li>one<li>two</ul><dl><dt>three<dd>four</dl>",
            "one\ntwo\nthree\nfour",
        ),
        (
            "<ruby>漢<rp>(<rt>kan<rp>)</ruby><progress>x</progress>",
            "漢kan",
        ),
        // White space.
        (
            "<p> one \n\t two </p>\n\n<p>\n</p> <pre>three\n\n  four</pre>",
            "one two\nthree four",
        ),
        (
            "one&nbsp;&nbsp;two\u{a0}three<b> </b>four<p>&nbsp;</p>",
            "one two three four",
        ),
        ("one <b> two</b>", "one two"),
        ("o\0ne &am\0p;", "one &amp;"),
        ("one <br> \u{a0}<br> two", "one\ntwo"),
        // Character references.
        (
            "&lt;p&gt; caf&eacute; &amp;amp; &#8217; &hellip;",
            "<p> café &amp; ’ …",
        ),
        // Comments and declarations.
        (
            "one<!-- <p> -->two<!-->three<!doctype x>four<?x?>five</3>six",
            "onetwothreefourfivesix",
        ),
        ("one<!-- two", "one"),
        ("one<p class='two", "one"),
        // Elements that are not shown.
        (
            "<style>p{}</style><script>if(a<b){}</script><noscript>x<p></noscript>one",
            "one",
        ),
        ("wo<script>x</script>rd", "word"),
        ("<script>x", ""),
        ("<template><p>x<template>y</template>z</template>one", "one"),
        ("one<svg><title>x</title><text>y<path/></svg>two", "one two"),
        ("<math><mi>x</mi></math>one", "one"),
        ("<math><mtext><b>x</b></mtext></math>one", "one"),
        (
            "<iframe>x<p></iframe><object>x<p>y</object><video>x</video><audio>x</audio><canvas>x</canvas>one",
            "one",
        ),
        (
            "<select><option>x<option>y</select><datalist><option>x</datalist>one",
            "one",
        ),
        ("<dialog>x</dialog><dialog open>one</dialog>", "one"),
        (
            "<textarea>one &amp; <b></textarea><xmp>two &amp; <b></xmp>",
            "one & <b>\ntwo &amp; <b>",
        ),
        ("one<plaintext>two</plaintext>", "one\ntwo</plaintext>"),
        // Attributes that hide.
        ("<div hidden>x<div>y</div>z</div>one", "one"),
        ("<p style='color:red; display : none'>x</p>one", "one"),
        ("<p style='visibility:hidden'>x<p>one", "one"),
        ("<p style='display:none; display:'>x<p>one", "one"),
        (
            "<p style='display:none !important; display:block'>x<p>one",
            "one",
        ),
        ("<p HIDDEN style='display:flex'>one", "one"),
        ("<dialog style='display:block'>one</dialog>", "one"),
        // An element may be visible in one that is not, where it has its place.
        (
            "one<div style='visibility:hidden'>x<p style='visibility:visible'>two<b>2</b><p>x<b style='visibility:visible'>three</b></div>four",
            "one\ntwo2\nthree\nfour",
        ),
        (
            "<div style='visibility:collapse'>x<a style='visibility:visible'>one<i style='visibility:hidden'>x</i></a></div>",
            "one",
        ),
        (
            "<div style='display:none'>x<b style='visibility:visible'>x</b></div><div hidden>x<b style='display:block'>x</b></div>one",
            "one",
        ),
        (
            "<div style='visibility:hidden'>x<svg style='visibility:visible'>x</svg><b hidden style='visibility:visible'>x</b></div>one",
            "one",
        ),
        (
            "<b style='visibility:hidden'>one<p style='visibility:visible'>two",
            "one\ntwo",
        ),
        // Browsers show it, to whoever sees.
        (
            "<span aria-hidden=true>one</span> two<img hidden>three",
            "one two three",
        ),
        ("<html hidden><body style='display:none'>one", "one"),
        ("<div popover>x</div>one", "one"),
        // The ends of hidden elements.
        ("<ul><li hidden>x<li>one</ul>two", "one\ntwo"),
        ("<ul><li hidden>x<ul><li>y</ul></ul>one", "one"),
        ("<div><span hidden>x</div>one", "one"),
        ("<p hidden>x<div>one</div>", "one"),
        (
            "<table><tr><td hidden>x<td>one<tr hidden><td>y<tr><td>two</table>",
            "one\ntwo",
        ),
        (
            "<table><tr><div hidden>x<td>one<td></table><form><li hidden>x</form>two",
            "one\ntwo",
        ),
        ("<template><table><tr><td>x</template>one", "one"),
        ("<svg><g><p>one", "one"),
        ("<svg>x</p>one", "one"),
        ("<svg><style><p></style></svg>one", "one"),
        ("<svg/>one<svg><script/><g/></svg>two", "one two"),
        ("<svg><font>x</font><font color=red>one", "one"),
        (
            "<svg><foreignObject><p>x</p></foreignObject></svg>one",
            "one",
        ),
        // Which of their elements hold HTML.
        (
            "one<math><foreignObject><p>two</p></foreignObject></math>three",
            "one\ntwo\nthree",
        ),
        (
            "one<math><annotation-xml encoding=MathML-Content><p>two</p></annotation-xml></math>three",
            "one\ntwo\nthree",
        ),
        (
            "one<math><annotation-xml encoding='TEXT/html'><p>x</p></annotation-xml></math>two",
            "one two",
        ),
        (
            "one<math><annotation-xml encoding=application/xhtml+xml><p>x</p></annotation-xml></math>two",
            "one two",
        ),
        ("one<svg><title><p>x</p>y<br>z</title></svg>two", "one two"),
        ("one<svg><desc><div>x</div>y</desc></svg>two", "one two"),
        ("one<svg><title>x</svg>two<svg><desc>x</svg>", "one two"),
        ("one<svg><mtext><p>two", "one\ntwo"),
        ("<select><option>x<select>one", "one"),
        ("<a hidden>x<a>one</a>two", "onetwo"),
        (
            "<div hidden>x<form>x<form>x</form></div><form>one</form>two",
            "one\ntwo",
        ),
        ("<form hidden>x<form>x</form>one", "one"),
        (
            "<table><form hidden>one<tr><td>two</form></table>",
            "one\ntwo",
        ),
        (
            "<table><tr><td hidden>x<col>one<tr><td>two</table>",
            "one\ntwo",
        ),
        ("one<image hidden>two", "one two"),
        // Those around blocks that end later.
        ("<b hidden>x<p>x</b>one</p>two", "one\ntwo"),
        ("<font style='display:none'>x<p>x<p>x</font>one", "one"),
        ("<i hidden>x<div>x</i>one</div>two", "one\ntwo"),
        // Elements that are never closed are shown.
        ("one<div hidden>two<p>three", "one\ntwo\nthree"),
        ("<template>one<p>two", "one\ntwo"),
        ("<object>one<div hidden>x</div><div hidden>two", "one\ntwo"),
        (
            "<div hidden>1<div hidden>2<div hidden>3<div hidden>4<div hidden>5",
            "1\n2\n3\n4\n5",
        ),
    ] {
        assert_eq!(visible_text(page), expected, "{page}");
        assert_eq!(reference::visible_text(page), expected, "{page}");
    }
}

#[test]
fn hidden_text_counts_where_it_is_most_of_the_page() {
    let article = "an article of many words ".repeat(40);
    let article = article.trim();
    let page = |frame: &str, attribute: &str, text: &str| {
        format!(
            "<body><p>{frame}</p><div {attribute}><svg><title>x</title></svg><p>{text}</p></div></body>"
        )
    };
    for attribute in [
        "hidden",
        "HIDDEN=until-found",
        "style='visibility: hidden; opacity: 0;'",
        "style='display:none'",
        "style='DISPLAY: /* until it is ready */ none !important'",
        "style='disp\\6c ay&colon;&#110;one'",
        "style='content-visibility:hidden'",
        "hidden><div style='display:none'",
        "hidden class='ad-free newsletter-page'",
        "style='display:none' id=modal-content",
    ] {
        let shown = visible_text(&page("a frame", attribute, article));
        assert_eq!(shown, format!("a frame\n{article}"), "{attribute}");
        let frame = "words of a frame ".repeat(40);
        let hidden = visible_text(&page(&frame, attribute, article));
        assert_eq!(hidden, frame.trim(), "{attribute}");
    }
    // No script shows these.
    for attribute in [
        "popover",
        "hidden><span popover",
        "hidden><datalist",
        "hidden role=dialog",
        "hidden><nav hidden",
        "hidden><dialog",
    ] {
        assert_eq!(
            visible_text(&page("a frame", attribute, article)),
            "a frame",
            "{attribute}"
        );
    }
    // Raw text is text.
    let listing = "<xmp>a listing that is visible</xmp>".repeat(40);
    let hidden = visible_text(&page(&listing, "hidden", article));
    assert_eq!(hidden.lines().count(), 40);
    // Browsers show these, however little stands beside them.
    for attribute in [
        "aria-hidden=true",
        "style='opacity:0'",
        "hidden style='display:block'",
    ] {
        let shown = visible_text(&page(&listing, attribute, "few words"));
        assert!(shown.ends_with("few words"), "{attribute}");
    }
    let roots = "<div><template shadowrootmode=Open><p>one</p></template></div><template>two</template>\
        <div><template shadowrootmode>three</template></div>\
        <div><template shadowrootmode=x shadowrootmode=open>four</template></div>";
    assert_eq!(visible_text(roots), "one");
}

/// Pieces of pages, most of them with something wrong.
fn page() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => prop::sample::select(vec![
            "<p>", "</p>", "<div>", "</div>", "<b>", "</b>", "<b hidden>", "<a href=x>", "</a>", "<br>", "<span>", "</span>", "<x-y>",
            "</x-y>", "<ul>", "</ul>", "<li>", "</li>", "<h1>", "</h2>", "<table>", "</table>", "<tr>", "<td>", "</td>",
            "<form>", "</form>", "<button>", "<section>", "</section>", "</body>",
        ]).prop_map(str::to_owned),
        2 => prop::sample::select(vec![
            "<div hidden>", "<p hidden>", "<li hidden>", "<td hidden>", "<b style='display:none'>",
            "<DIV STYLE=\"color:x; visibility: HIDDEN\">", "<b style='visibility:visible'>", "<div style='visibility:visible'>",
            "<p hidden style='display:block'>", "<dialog>", "<dialog open>", "<template>", "</template>", "<svg>",
            "</svg>", "<svg/>", "<font>", "<font x size=1>", "<math>", "</math>", "<mi>", "<annotation-xml>",
            "<annotation-xml encoding=text/html>", "<desc>", "<foreignObject>", "</foreignObject>", "<select>", "</select>", "<option>",
            "<object>", "</object>", "<video>", "</video>", "<input>", "<div popover>",
        ]).prop_map(str::to_owned),
        2 => prop::sample::select(vec![
            "<script>", "</script>", "</script ", "<script/>", "<!--", "-->", "--!>", "<!-->", "<!--->", "<style>", "</style>",
            "<title>", "</title>", "<textarea>", "</textarea>", "<xmp>", "</xmp>", "<iframe>", "</iframe>", "<noscript>",
            "</noscript>", "<noframes>", "</noframes>", "<plaintext>", "<!doctype html>", "<?x", "<![CDATA[", "]]>", "</3>",
            "</>", "</", "<", "<!", "<!-", "<a", "<p\thidden\r\n", "<p =hidden/", "='", "=\"", "'>", "\">", "/>", ">", "=",
        ]).prop_map(str::to_owned),
        1 => prop::sample::select(vec![
            "&", "&amp;", "&am", "p;", "&lt;p&gt;", "&nbsp;", "&#x", "&#x80;", "&#0", "&eacute", "&notin;", "&notit;", "&;",
        ]).prop_map(str::to_owned),
        3 => prop::sample::select(vec![
            "one", "two ", " three", " ", "\n", "\r\n", "\t\x0c", "\u{a0}", "近", "é", "\u{ab}x\u{bb}", "a", "1",
        ]).prop_map(str::to_owned),
        1 => "[a-zA-Z<>&;#/!?='\" \\-]{0,12}",
        1 => "\\PC{0,6}",
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn text_equals_the_reference(page in page()) {
        prop_assert_eq!(visible_text(&page), reference::visible_text(&page));
    }

    /// The article has no letter that is not visible, and is not empty without need.
    #[cfg(feature = "article")]
    #[test]
    fn an_article_is_a_part_of_the_text(page in page()) {
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
        let (text, article) = (letters(&visible_text(&page)), letters(&article_text(&page)));
        prop_assert!(article <= text, "{article} letters of {text}");
        prop_assert_eq!(article == 0, text == 0);
    }

    /// The main text is made of lines of the visible text, in their order.
    #[test]
    fn main_text_is_a_part_of_the_text(page in page()) {
        let (text, main) = (visible_text(&page), main_text(&page));
        let mut lines = text.lines();
        for line in main.lines() {
            prop_assert!(lines.any(|other| other == line), "{line:?} is not in {text:?}");
        }
        prop_assert_eq!(main.is_empty(), text.is_empty());
    }
}

/// Each of these takes minutes if a part of the page is read again at each tag.
#[test]
fn hostile_pages_take_linear_time() {
    for piece in [
        "<",
        "</",
        "<!--",
        "<!",
        "<a ",
        "<a b='",
        "<div hidden>",
        "<div>",
        "<svg>",
        "<b><p>",
        "</x>",
        "<x>",
        "<p>",
        "&",
        "&a",
        "<script>",
        "<script><!--<script>",
        "<textarea>",
        "<title>",
        "<table><tr>",
        "<td>",
        "<select>",
        "<form>",
        "</form>",
        "<li>",
        "<span></p>",
        "<a href=x>",
        "a<br>",
        "<div class='a b c",
        "<div class=nav>",
        "-->",
        "\u{a0}",
        " \u{ab}",
        "<h1>a",
    ] {
        let page = piece.repeat(1_000_000 / piece.len());
        // Headings may be parts of the title.
        for title in [
            "",
            "<title>a</title>",
            &format!("<title>{}</title>", "a - ".repeat(256)),
        ] {
            main_text(&format!("{title}{page}"));
        }
        visible_text(&page);
        #[cfg(feature = "article")]
        article_text(&page);
    }
}

const LONG: &str = "This paragraph is long enough to be a part of the main text, because it has more than sixteen words.";
const SECOND: &str = "Another paragraph of the same article follows here, which is again longer than the sixteen words of a label.";

#[test]
fn main_text_of_pages() {
    let nav = "<nav><ul><li><a href=/>Home</a><li><a href=/news>News</a></ul></nav>";
    for (page, expected) in [
        // By elements, roles, classes and ids.
        (format!("{nav}<p>{LONG}</p><footer>{SECOND}</footer>"), LONG.to_owned()),
        (format!("<div role=navigation>{SECOND}</div><p>{LONG}"), LONG.to_owned()),
        (format!("<div class='x cookie-banner'><p>{SECOND}</div><p>{LONG}"), LONG.to_owned()),
        (format!("<div id=relatedPosts><p>{SECOND}</div><p>{LONG}"), LONG.to_owned()),
        (format!("<p>{LONG} The <span class=comment>one</span> in it."), format!("{LONG} The one in it.")),
        (format!("<body class='has-sidebar nav'><div class='no-sidebar menu-open'><p>{LONG}"), LONG.to_owned()),
        (format!("<nav style='visibility:hidden'>x<p style='visibility:visible'>{SECOND}</p></nav><p>{LONG}"), LONG.to_owned()),
        // By words and links.
        (format!("<div>Posted on Monday</div><p>{LONG}</p><div>12 views</div>"), LONG.to_owned()),
        (format!("<p>{LONG}</p><p><a href=x>{SECOND}</a></p>"), LONG.to_owned()),
        (format!("<p>{LONG}</p><p><a name=x>{SECOND}</a></p>"), format!("{LONG}\n{SECOND}")),
        (format!("<div>{LONG}<br>{SECOND}</div>"), format!("{LONG}\n{SECOND}")),
        ("<p>这一段文字足够长，所以它属于正文，因为它有三十四个以上的汉字，而不只是一个标签或一个日期。</p><p>近似</p>".to_owned(),
         "这一段文字足够长，所以它属于正文，因为它有三十四个以上的汉字，而不只是一个标签或一个日期。".to_owned()),
        // Short paragraphs.
        (format!("<div><p>{LONG}</p><p>Short.</p><div>Label</div><p>{SECOND}</p><p>Last.</p></div>"),
         format!("{LONG}\nShort.\n{SECOND}")),
        (format!("<div><p>{LONG}</p></div><div><p>Short.</p></div><div><p>{SECOND}</p></div>"), format!("{LONG}\n{SECOND}")),
        (format!("<article><div><p>{LONG}</p></div><ul><li>Short.</ul><div><p>{SECOND}</p></div></article>"),
         format!("{LONG}\nShort.\n{SECOND}")),
        // Headings.
        (format!("<h1>Title</h1><div>By A. Author</div><p>{LONG}</p><h2>Part</h2><p>{SECOND}</p><h2>Related</h2>"),
         format!("Title\n{LONG}\nPart\n{SECOND}")),
        (format!("<article><header><h1>Title</h1></header><p>{LONG}</article><header>{SECOND}</header>"),
         format!("Title\n{LONG}")),
        // The main element.
        (format!("<p>{SECOND}</p><main><p>{LONG}</main><p>{SECOND}"), LONG.to_owned()),
        (format!("<form id=aspnetForm><div role=main><p>{LONG}</div></form>"), LONG.to_owned()),
        (format!("<main>Short.</main><p>{LONG}"), LONG.to_owned()),
        // What the elements say is too much.
        (format!("<form><p>{LONG}</p></form>{nav}"), LONG.to_owned()),
        (format!("<div class=social><p>{LONG}</div>{nav}"), LONG.to_owned()),
        // A page of links has its visible text.
        (format!("{nav}<p>Short."), "Home\nNews\nShort.".to_owned()),
        (nav.to_owned(), "Home\nNews".to_owned()),
        (String::new(), String::new()),
    ] {
        assert_eq!(main_text(&page), expected, "{page}");
    }
}

/// A page of a news site.
struct News<'a> {
    advertisement: &'a str,
    date: &'a str,
    counter: &'a str,
    related: &'a str,
    comments: &'a str,
    second: &'a str,
}

const NEWS: News<'_> = News {
    advertisement: "",
    date: "Monday, 23 November 2026",
    counter: "12 readers",
    related: "<li><a href=/1>One</a></li>",
    comments: "",
    second: SECOND,
};

impl News<'_> {
    /// The page with an `article` element, and with the `div`s of older pages.
    fn pages(&self) -> [String; 2] {
        let Self {
            advertisement,
            date,
            counter,
            related,
            comments,
            second,
        } = self;
        let page = |open: &str, close: &str| {
            format!(
                "<!doctype html><html><head><title>A title - News</title><script>var counter = '{counter}';</script></head>\
                <body class=article><div id=top><ul class=menu><li><a href=/>Home</a></li><li><a href=/w>World</a></li></ul>\
                <span>{date}</span></div>{open}<h1>A title</h1><p class=byline>By A. Author</p><div>{date} | {counter}</div>\
                <p>{LONG}</p>{advertisement}<p>A short one.</p><p>{second}</p>{advertisement}\
                <blockquote>Said somebody.</blockquote><p>{LONG}</p>{advertisement}<p>The end of it.</p>{close}<div class=share>Share this: <a href=/f>F</a></div>\
                <h3>Related</h3><ul>{related}</ul>{comments}<div class='site-footer'><p>{SECOND}</p></div></body></html>"
            )
        };
        [
            page("<main><article>", "</article></main>"),
            page("<div id=content>", "</div>"),
        ]
    }
}

#[test]
fn the_main_text_of_an_article_does_not_depend_on_what_is_around_it() {
    let expected =
        format!("A title\n{LONG}\nA short one.\n{SECOND}\nSaid somebody.\n{LONG}\nThe end of it.");
    let many = "<li><a href=/2>A second article with a title that is much longer than that of the first one</a></li>".repeat(9);
    let comment =
        format!("<div id=comments><div class=comment><p>{SECOND}</p><p>Yes.</p></div></div>");
    let text_ad = format!("<div class='ad-slot'><p>{SECOND}</p></div>");
    for news in [
        NEWS,
        News {
            advertisement: "<iframe src=x></iframe>",
            ..NEWS
        },
        News {
            advertisement: "<div>Advertisement</div>",
            ..NEWS
        },
        News {
            advertisement: "<div><a href=x>Buy a thing that you need now, or two of them, and get a third one free</a></div>",
            ..NEWS
        },
        News {
            advertisement: &text_ad,
            ..NEWS
        },
        News {
            advertisement: "<aside><h2>Newsletter</h2><form><input><button>Subscribe</button></form></aside>",
            ..NEWS
        },
        // A heading that the `title` element has, too.
        News {
            advertisement: "<div><h3>News</h3><ul><li><a href=/1>One</a><li><a href=/2>Two</a></ul></div>",
            ..NEWS
        },
        News {
            advertisement: "<div><h3><a href=/1>A title of another article</a></h3><p>Its first words.</p></div>",
            ..NEWS
        },
        News {
            date: "Tuesday, 24 November 2026, at nine in the morning",
            ..NEWS
        },
        News {
            counter: "1,234,567 readers and counting",
            ..NEWS
        },
        News {
            related: &many,
            ..NEWS
        },
        News {
            related: "",
            ..NEWS
        },
        News {
            comments: &comment,
            ..NEWS
        },
    ] {
        for page in news.pages() {
            assert_eq!(main_text(&page), expected, "{page}");
        }
    }
}

#[test]
fn an_edit_of_one_word_changes_one_line() {
    let [before, after] = ["exactly", "precisely"].map(|word| {
        // From 16 words to 17 and back, between other long paragraphs.
        [
            format!("Here are {word} sixteen words in one line, or so it says, and no word more."),
            format!(
                "Here are {word} seventeen words in one line, or so it says, and not one word more."
            ),
        ]
    });
    for second in before.iter().chain(&after) {
        let news = News { second, ..NEWS };
        let expected = format!(
            "A title\n{LONG}\nA short one.\n{second}\nSaid somebody.\n{LONG}\nThe end of it."
        );
        for page in news.pages() {
            assert_eq!(main_text(&page), expected, "{page}");
        }
    }
}
