"""Templates of newspapers, magazines and blogs."""

import json
from html import escape

from .. import assets, html


def meta(page):
    """The lines of a head that search engines and networks read."""
    article, site = page.article, page.site
    title, summary = escape(article.title, quote=True), escape(article.summary, quote=True)
    charset = f'<meta charset="{page.charset_in_meta}">\n' if page.charset_in_meta else ""
    return (
        f"{charset}<title>{title} | {escape(site.title)}</title>\n"
        f'<meta name="description" content="{summary}">\n'
        f'<link rel="canonical" href="{escape(page.url.split("?")[0])}">\n'
        f'<meta property="og:title" content="{title}">\n<meta property="og:description" content="{summary}">\n'
        f'<meta property="og:site_name" content="{escape(site.title)}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    )


def magazine(page):
    """A magazine with semantic elements, much script, a cookie banner, share buttons and comments."""
    site, article, label = page.site, page.article, page.label
    style = html.Style(p='<p class="prose">{}</p>\n', deeper=0)
    author, published = page.author(), page.published()
    linked = {
        "@context": "https://schema.org", "@type": "NewsArticle", "headline": article.title, "datePublished": published,
        "author": {"@type": "Person", "name": author}, "publisher": {"@type": "Organization", "name": site.title},
    }
    share = "".join(
        f'<li><button class="share share--{name}" aria-label="{label["share"]}: {name}">{page.icon(at)}<span class="share__count">'
        f"{page.count(3000)}</span></button></li>"
        for at, name in enumerate(["Mail", "Link", "Feed", "Print"])
    )
    cards = page.teaser_list(
        6, '<li class="card"><a href="{href}"><h3 class="card__title">{title}</h3></a><p class="card__standfirst">{summary}</p></li>\n'
    )
    remarks = "".join(
        f'<li class="comment"><header><b>{name}</b> <time>{date}</time></header><p>{escape(text)}</p>'
        f'<button>{label["reply"]}</button> <button>👍 {page.count(200)}</button></li>\n'
        for name, date, text in page.remarks(6)
    )
    return f"""<!doctype html>
<html lang="{site.language}" class="no-js">
<head>
{meta(page)}<script type="application/ld+json">{json.dumps(linked, ensure_ascii=False)}</script>
<style>{site.assets.css}</style>
<script nonce="{page.token(16)}">window.__cfg={{"build":"{page.token(9)}","consent":null}};{site.assets.scripts[0]}</script>
</head>
<body class="article-page">
<a class="skip" href="#main">Skip to content</a>
<div id="consent" role="dialog" aria-modal="true" aria-label="Cookies"><p>{page.cookie_text()}</p>
<button class="primary">{label["accept"]}</button><button>{label["reject"]}</button></div>
<header class="masthead"><a href="/"><img src="{site.assets.logo}" alt="{escape(site.title)}"></a>
<p class="masthead__date">{page.today()}</p>
<nav aria-label="Main"><ul>{page.menu_links()}</ul></nav>
<form role="search" action="/search"><input type="search" name="q" placeholder="{label["search"]}"><button>{page.icon(4)}</button></form>
</header>
<div class="leaderboard">{page.ad_frame()}</div>
<main id="main">
<article itemscope itemtype="https://schema.org/NewsArticle">
<header><nav class="breadcrumb" aria-label="Breadcrumb"><a href="/">{label["home"]}</a> › <a href="/{site.menu[0].lower()}">{site.menu[0]}</a></nav>
<h1 itemprop="headline">{escape(article.title)}</h1>
<p class="byline">{label["by"]} <a rel="author" href="/authors/{author.replace(" ", "-").lower()}">{author}</a> ·
<time itemprop="datePublished">{published}</time> · {label["updated"]} <time>{page.updated()}</time></p>
<ul class="share-bar">{share}</ul></header>
<figure>{page.picture()}<figcaption>{page.author()} / {escape(site.title)}</figcaption></figure>
<div itemprop="articleBody">
{html.body(style, article.blocks, [page.ad_box("inline-promo"), page.ad_frame()])}</div>
<footer><p>{label["tags"]}: {", ".join(f'<a rel="tag" href="/t/{each.lower()}">{each}</a>' for each in site.menu[1:4])}</p></footer>
</article>
<section class="related" aria-labelledby="related"><h2 id="related">{label["related"]}</h2><ul>{cards}</ul></section>
<section id="comments"><h2>{label["comments"]} ({page.count(300)})</h2><ol>{remarks}</ol></section>
</main>
<aside class="rail"><h2>{label["popular"]}</h2><ol>{page.front_list(7)}</ol>{page.ad_box("rail-ad")}{page.ad_frame()}</aside>
<footer class="site-footer"><form class="newsletter"><p>{page.newsletter_text()}</p><input type="email"><button>{label["subscribe"]}</button></form>
<nav aria-label="Footer"><ul>{page.menu_links()}</ul><ul><li><a href="/about">{label["about"]}</a></li><li><a href="/contact">{label["contact"]}</a></li>
<li><a href="/privacy">{label["privacy"]}</a></li><li><a href="/terms">{label["terms"]}</a></li></ul></nav>{"".join(f"<p>{each}</p>" for each in page.notices(2))}<small>{page.footer_text()}</small></footer>
<script nonce="{page.token(16)}">{site.assets.scripts[1]}</script>
</body>
</html>
"""


def daybreak(page):
    """A theme of a content management system, used by several sites: nested divs with classes, widgets in a sidebar."""
    site, article, label = page.site, page.article, page.label
    style = html.Style(
        ul='<ul class="wp-block-list">\n{}</ul>\n', pre='<pre class="wp-block-code"><code>{}</code></pre>\n',
        heading='<h{level} class="wp-block-heading">{text}</h{level}>\n',
    )
    related = page.teaser_list(
        4,
        '<div class="col-md-3 related-item"><a class="thumb" href="{href}"><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" alt=""></a>'
        '<h5><a href="{href}">{title}</a></h5></div>',
    )
    remarks = "".join(
        f'<div class="comment-body" id="comment-{at}"><div class="comment-author vcard"><cite class="fn">{name}</cite> '
        f'<span class="says">says:</span></div><div class="comment-meta">{date}</div><p>{escape(text)}</p>'
        f'<div class="reply"><a class="comment-reply-link" href="#respond">{label["reply"]}</a></div></div>\n'
        for at, (name, date, text) in enumerate(page.remarks(5))
    )
    modules = "".join(
        f'<link rel="stylesheet" id="m{at}-css" href="https://{site.host}/wp-content/plugins/m{at}/style.min.css?ver={at}.{at + 3}" media="all">\n'
        for at in range(9)
    )
    return f"""<!DOCTYPE html>
<html lang="{site.language}" prefix="og: https://ogp.me/ns#">
<head>
{meta(page)}{modules}<style id="daybreak-inline-css">{site.assets.css}</style>
<script>var daybreak_vars={{"ajaxurl":"https:\\/\\/{site.host}\\/admin-ajax.php","nonce":"{page.token(8)}"}};</script>
<script>{site.assets.scripts[0]}</script>
</head>
<body class="post-template-default single single-post postid-{page.number} wp-embed-responsive">
<div id="page" class="site">
<div class="top-bar"><div class="container"><div class="row"><div class="col-md-6"><span class="date">{page.today()}</span></div>
<div class="col-md-6 text-right"><a href="/login">{label["login"]}</a> <a href="/register">{label["register"]}</a></div></div></div></div>
<div id="masthead" class="site-header"><div class="site-branding"><div class="site-title"><a href="/" rel="home">{escape(site.title)}</a></div></div>
<div class="main-navigation"><ul id="primary-menu" class="menu">{page.menu_links()}</ul></div></div>
<div id="content" class="site-content"><div class="container"><div class="row">
<div id="primary" class="content-area col-md-8"><div id="main" class="site-main">
<div id="post-{page.number}" class="post type-post status-publish hentry">
<div class="entry-header"><h1 class="entry-title">{escape(article.title)}</h1>
<div class="entry-meta"><span class="posted-on">{page.published()}</span> <span class="byline">{label["by"]} <a class="url fn n" href="/author">{page.author()}</a></span>
<span class="post-views">{page.count()} {label["views"]}</span></div></div>
<div class="post-thumbnail">{page.picture()}</div>
<div class="entry-content">
{html.body(style, article.blocks, [page.ad_frame(), page.ad_box("code-block code-block-2")])}</div>
<div class="sharedaddy"><h3 class="sd-title">{label["share"]}:</h3><div class="sd-content"><ul>{"".join(f'<li><a class="share-{each}" href="#"><span>{each}</span></a></li>' for each in ("Email", "Print", "Link"))}</ul></div></div>
<div class="entry-footer"><span class="cat-links">{site.menu[2]}</span> <span class="tags-links">{label["tags"]}: {", ".join(site.menu[3:6])}</span></div>
</div>
<div class="author-box"><img class="avatar" src="/avatar/{page.token(6)}" alt=""><div class="author-name">{page.author()}</div><div class="author-bio">Writes for {escape(site.title)} since {2008 + page.site.kilobytes % 9}.</div></div>
<div class="post-navigation"><div class="nav-links">{page.teaser_list(2, '<div class="nav-item"><a href="{href}">« {title} »</a></div>')}</div></div>
<div class="related-posts"><h3>{label["related"]}</h3><div class="row">{related}</div></div>
<div id="comments" class="comments-area"><h2 class="comments-title">{label["comments"]}</h2>{remarks}<div id="respond"><form class="comment-form"><textarea></textarea><input type="submit" value="{label["comments"]}"></form></div></div>
</div></div>
<div id="secondary" class="widget-area col-md-4">
<div class="widget widget_search"><form><input type="search" placeholder="{label["search"]} …"></form></div>
<div class="widget widget_ad">{page.ad_box("textwidget")}</div>
<div class="widget widget_recent_entries"><h2 class="widget-title">{label["popular"]}</h2><ul>{page.front_list(9)}</ul></div>
<div class="widget widget_tag_cloud"><h2 class="widget-title">{label["tags"]}</h2><div class="tagcloud">{page.menu_links(" ", '<a class="tag-cloud-link" href="{href}">{text}</a>')}</div></div>
<div class="widget widget_text"><div class="textwidget">{"<br>".join(page.notices(2))}</div></div>
<div class="widget widget_newsletter"><p>{page.newsletter_text()}</p></div>
</div></div></div></div>
<div id="colophon" class="site-footer"><div class="container"><div class="site-info">{page.footer_text()} <a href="/privacy">{label["privacy"]}</a> | <a href="/contact">{label["contact"]}</a></div></div></div>
</div>
<div class="cookie-notice-container" id="cookie-notice"><span class="cn-text">{page.cookie_text()}</span> <a class="cn-set-cookie" href="#">{label["accept"]}</a></div>
<script>{site.assets.scripts[1]}</script>
</body></html>
"""


def broadsheet(page):
    """A news site whose pages have more teasers than article."""
    site, article, label = page.site, page.article, page.label
    style = html.Style(p='<p class="a-p" data-v="{{}}">{}</p>\n'.replace("{{}}", str(site.kilobytes)), ul='<ul class="a-ul">{}</ul>\n')
    teaser = (
        '<div class="t-item"><a class="t-link" href="{href}"><span class="t-kicker">'
        + site.menu[0]
        + '</span><span class="t-head">{title}</span></a><div class="t-text">{summary}</div></div>\n'
    )
    ticker = page.front_list(6, '<li><span class="clock"></span> <a href="{href}">{title}</a></li>')
    live = f'<div class="live"><b>{page.count(9000)}</b> {label["views"]} · {page.count(500)} {label["comments"].lower()}</div>'
    more = page.front_list(14, teaser)
    blocks = article.blocks
    middle = min(3, len(blocks))
    return f"""<!DOCTYPE html>
<html lang="{site.language}">
<head>
{meta(page)}<script>{site.assets.scripts[0]}</script>
<style>{site.assets.css}</style>
</head>
<body>
<div class="o-top"><ul class="o-nav">{page.menu_links()}</ul><div class="o-date">{page.today()}</div><div class="o-user"><a href="/login">{label["login"]}</a> | <a href="/abo">{label["subscribe"]}</a></div></div>
<div class="o-ticker"><ul>{ticker}</ul></div>
<div class="o-wrap">
<div class="o-main">
<article class="a">
<div class="a-kicker">{site.menu[1]}</div>
<h1 class="a-title">{escape(article.title)}</h1>
<div class="a-meta">{page.author()} <time>{page.published()}</time> {live}</div>
<div class="a-figure">{page.picture()}</div>
{html.body(style, blocks[:middle])}
<div class="a-inset"><div class="a-inset-head">{label["related"]}</div><ul>{page.teaser_list(3)}</ul></div>
{html.body(style, blocks[middle:], [page.ad_box("a-promo"), page.ad_frame(), page.ad_frame()])}
</article>
<div class="a-tools"><a href="#">{label["share"]}</a> <a href="#">E-mail</a> <a href="#">{label["comments"]}</a></div>
<div class="t-block"><h2>{label["popular"]}</h2>{more}</div>
<div class="native"><h2>{label["sponsored"]}</h2>{"".join(page.ad_box("native-item") for _ in range(4))}</div>
</div>
<div class="o-side">{page.ad_frame()}<div class="t-rank"><h3>{label["more"]}</h3><ol>{page.front_list(10)}</ol></div>{page.ad_box("side-ad")}</div>
</div>
<footer class="o-foot"><div class="o-sections">{page.menu_links(" | ", '<a href="{href}">{text}</a>')}</div><p>{page.newsletter_text()}</p><p>{" ".join(page.notices(2))}</p><p>{page.footer_text()} {label["terms"]} · {label["privacy"]} · {label["contact"]}</p></footer>
<div id="cmp"><div class="cmp-text">{page.cookie_text()}</div><button>{label["accept"]}</button> <button>{label["reject"]}</button></div>
<script>{site.assets.scripts[1]}</script>
<noscript><img src="https://count.example/px?r={page.token(8)}" alt=""></noscript>
</body></html>
"""


def notebook(page):
    """A small blog from a static site generator."""
    site, article = page.site, page.article
    style = html.Style(pre='<div class="highlight"><pre>{}</pre></div>\n')
    return f"""<!DOCTYPE html>
<html lang="{site.language}">
<head>
{meta(page)}<link rel="stylesheet" href="/style.css">
</head>
<body>
<header><a href="/">{escape(site.title)}</a> <nav>{page.menu_links(" · ", '<a href="{href}">{text}</a>')}</nav></header>
<main>
<h1>{escape(article.title)}</h1>
<p class="date">{page.published()}</p>
{html.body(style, article.blocks)}
<p class="hits">{page.count(5000)} {page.label["views"]}</p>
<hr>
<p>{page.label["related"]}:</p>
<ul>{page.teaser_list(3)}</ul>
{page.ad_box("support")}
</main>
<footer><p>{page.footer_text()} {page.label["updated"]} {page.updated()}. <a href="/feed.xml">RSS</a></p></footer>
</body>
</html>
"""


def listing(page, count=18):
    """The blocks of a page that only lists articles."""
    return [
        block
        for title, summary in page.rng("navigation").sample(page.others, count)
        for block in (("h", 3, [("a", title, "/" + assets.name(page.rng("navigation"), 8))]), ("p", [("t", summary)]))
    ]
