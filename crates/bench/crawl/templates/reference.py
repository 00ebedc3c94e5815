"""Templates of manuals, encyclopaedias, archives and institutions."""

import textwrap
from html import escape

from .. import html
from ..blocks import block_text
from ..page import slug
from .press import meta


def manual(page):
    """A manual from a documentation generator, used by two sites: a tree of links, code, previous and next."""
    site, article, label = page.site, page.article, page.label
    style = html.Style(
        pre='<div class="highlight-default notranslate"><div class="highlight"><pre><span></span>{}</pre></div></div>\n',
        heading='<h{level} id="{id}">{text}<a class="headerlink" href="#{id}" title="Link to this heading">¶</a></h{level}>\n',
        c='<code class="docutils literal notranslate"><span class="pre">{}</span></code>',
        a='<a class="reference internal" href="{href}">{text}</a>', table='<table class="docutils align-default">\n{}</table>\n',
        ul='<ul class="simple">\n{}</ul>\n',
    )
    tree = "".join(
        f'<li class="toctree-l1"><a class="reference internal" href="{href}">{title}</a></li>\n' for title, _, href in page.teasers(60, "front")
    )
    headings = [part for part in article.blocks if part[0] == "h"]
    contents = "".join(
        f'<li><a class="reference internal" href="#{slug(block_text(part))}">{escape(block_text(part))}</a></li>' for part in headings
    )
    neighbours = page.teasers(2)
    before, after = (neighbours * 2)[:2]
    return f"""<!DOCTYPE html>
<html class="writer-html5" lang="{site.language}">
<head>
{meta(page)}<link rel="stylesheet" href="../_static/theme.css?v={page.site.kilobytes}">
<script src="../_static/doctools.js"></script><style>{site.assets.css}</style>
</head>
<body class="wy-body-for-nav">
<div class="wy-grid-for-nav">
<nav data-toggle="wy-nav-shift" class="wy-nav-side"><div class="wy-side-scroll"><div class="wy-side-nav-search"><a href="../index.html" class="icon icon-home"> {escape(site.title)}</a>
<div class="version">{page.rng("date").randint(2, 9)}.{page.rng("date").randint(0, 20)}</div>
<div role="search"><form id="rtd-search-form"><input type="text" name="q" placeholder="{label["search"]}"></form></div></div>
<div class="wy-menu wy-menu-vertical" role="navigation"><p class="caption"><span class="caption-text">Contents</span></p><ul>
{tree}</ul></div></div></nav>
<section data-toggle="wy-nav-shift" class="wy-nav-content-wrap"><div class="wy-nav-content"><div class="rst-content">
<div role="navigation" aria-label="Page navigation"><ul class="wy-breadcrumbs"><li><a href="../index.html">{label["home"]}</a></li><li class="breadcrumb-item active">{escape(article.title)}</li>
<li class="wy-breadcrumbs-aside"><a href="../_sources/{slug(article.title)}.txt">View page source</a></li></ul><hr></div>
<div role="main" class="document"><div>
<section id="{slug(article.title)}">
<h1>{escape(article.title)}<a class="headerlink" href="#{slug(article.title)}">¶</a></h1>
<div class="contents local topic"><ul class="simple">{contents}</ul></div>
{html.body(style, article.blocks)}</section>
</div></div>
<footer><div class="rst-footer-buttons" role="navigation" aria-label="Footer"><a href="{before[2]}" class="btn btn-neutral float-left" rel="prev">{label["previous"]}: {before[0]}</a>
<a href="{after[2]}" class="btn btn-neutral float-right" rel="next">{label["next"]}: {after[0]}</a></div><hr>
<div role="contentinfo"><p>{page.footer_text()} Last updated on {page.updated()}. {page.count(90)} people found this page helpful.</p></div>
Built with a documentation generator. <div class="ethical-ad">{page.ad_box("ethical-text")}</div></footer>
</div></div></section></div>
<script>{site.assets.script}</script>
</body>
</html>
"""


def wiki(page):
    """An encyclopaedia: infobox, contents, references, categories, links to other languages."""
    site, article, label = page.site, page.article, page.label
    style = html.Style(
        heading='<div class="mw-heading"><h{level} id="{id}">{text}</h{level}><span class="mw-editsection">[<a href="/edit?s={id}">edit</a>]</span></div>\n',
        a='<a href="/wiki/{href}" class="mw-redirect">{text}</a>', table='<table class="wikitable"><tbody>\n{}</tbody></table>\n',
    )
    story = page.rng("story")
    facts = [
        ("Type", site.menu[1]), ("Introduced", page.published()), ("Maintained by", page.author()), ("Licence", story.choice(["Free", "Mixed", "Proprietary"])),
        ("Status", story.choice(["Active", "Final", "Draft"])), ("Website", f"www.{slug(article.title)[:18]}.example"),
    ]
    infobox = "".join(f'<tr><th scope="row" class="infobox-label">{name}</th><td class="infobox-data">{escape(value)}</td></tr>' for name, value in facts)
    headings = [part for part in article.blocks if part[0] == "h"]
    contents = "".join(
        f'<li class="toclevel-1"><a href="#{slug(block_text(part))}"><span class="tocnumber">{at}</span> <span class="toctext">{escape(block_text(part))}</span></a></li>'
        for at, part in enumerate(headings, 1)
    )
    references = "".join(
        f'<li id="cite_note-{at}"><span class="mw-cite-backlink">^</span> <cite>{name}. “{escape(title)}”. {date}.</cite></li>'
        for at, (name, title, date) in enumerate(
            (page.author(), page.others[story.randrange(len(page.others))][0], page.published()) for _ in range(story.randint(2, 8))
        )
    )
    languages = "".join(
        f'<li class="interlanguage-link"><a href="https://{code}.{site.host}/" lang="{code}">{name}</a></li>'
        for code, name in page.rng("navigation").sample(
            [("de", "Deutsch"), ("fr", "Français"), ("es", "Español"), ("ja", "日本語"), ("ru", "Русский"), ("pl", "Polski"), ("sv", "Svenska"), ("zh", "中文")], 6
        )
    )
    return f"""<!DOCTYPE html>
<html class="client-nojs" lang="{site.language}" dir="ltr">
<head>
{meta(page)}<script>document.documentElement.className="client-js";RLCONF={{"wgRequestId":"{page.token(12)}","wgPageName":"{slug(article.title)}","wgRevisionId":{page.rng("date").randint(10**8, 10**9)}}};</script>
<style>{site.assets.css}</style>
</head>
<body class="mediawiki ltr ns-0 skin-vector">
<div id="siteNotice"><div class="frb">{page.ad()[1]}</div></div>
<div id="content" class="mw-body" role="main"><a id="top"></a>
<h1 id="firstHeading" class="firstHeading">{escape(article.title)}</h1>
<div id="bodyContent"><div id="siteSub">From {escape(site.title)}</div>
<div id="mw-content-text"><div class="mw-parser-output">
<table class="infobox"><tbody><tr><th colspan="2" class="infobox-above">{escape(article.title)}</th></tr>{infobox}</tbody></table>
{html.body(style, article.blocks[:1])}
<div id="toc" class="toc" role="navigation"><div class="toctitle"><h2>Contents</h2></div><ul>{contents}</ul></div>
{html.body(style, article.blocks[1:])}
<div class="mw-heading"><h2 id="References">References</h2></div><div class="reflist"><ol class="references">{references}</ol></div>
<div role="navigation" class="navbox"><table><tbody><tr><th class="navbox-title">{label["related"]}</th></tr><tr><td>{page.teaser_list(12, '<a href="{href}">{title}</a> · ')}</td></tr></tbody></table></div>
</div></div>
<div id="catlinks" class="catlinks">Categories: <ul>{"".join(f'<li><a href="/wiki/Category:{each}">{each}</a></li>' for each in site.menu[2:6])}</ul></div>
</div></div>
<div id="mw-navigation"><h2>Navigation menu</h2>
<div id="p-personal"><ul><li>Not logged in</li><li>Talk</li><li>Contributions</li><li>{label["register"]}</li><li>{label["login"]}</li></ul></div>
<div id="p-navigation"><ul>{page.menu_links()}</ul></div><div id="p-lang"><h3>In other languages</h3><ul>{languages}</ul></div></div>
<footer id="footer"><ul><li id="footer-info-lastmod">This page was last edited on {page.updated()}.</li><li>Page views in the last month: {page.count()}</li>
<li>Text is available under a free licence; additional terms may apply. {" ".join(page.notices(1))} {page.footer_text()}</li></ul></footer>
<script>{site.assets.script}</script>
<!-- NewPP limit report: Parsed by w{page.rng("fetch").randint(1000, 2000)}, cached time {page.token(6)}, CPU time usage {page.rng("fetch").random():.3f} seconds -->
</body>
</html>
"""


def mailing_list(page):
    """An archive of a mailing list: the article is preformatted, all else is a few links."""
    site, article = page.site, page.article
    text = "\n\n".join(_wrapped(block_text(part)) for part in article.blocks)
    subject = escape(article.title)
    author = page.author()
    before, after = (page.teasers(2) * 2)[:2]
    headline, _, address = page.ad()
    links = (
        f'<ul><li>Previous message (by thread): <a href="{before[2]}">{before[0]}</a></li><li>Next message (by thread): '
        f'<a href="{after[2]}">{after[0]}</a></li><li><b>Messages sorted by:</b> <a href="date.html">[ date ]</a> '
        f'<a href="thread.html">[ thread ]</a> <a href="subject.html">[ subject ]</a></li></ul>'
    )
    charset = f'<META http-equiv="Content-Type" content="text/html; charset={page.charset_in_meta}">' if page.charset_in_meta else ""
    return f"""<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2//EN">
<HTML>
 <HEAD>
   <TITLE> [{escape(site.title)}] {subject}</TITLE>
   {charset}
 </HEAD>
 <BODY BGCOLOR="#ffffff">
   <H1>[{escape(site.title)}] {subject}</H1>
    <B>{author}</B> <A HREF="mailto:list@{site.host}">{author.split()[0].lower()} at {site.host}</A><BR>
    <I>{page.published()}</I>
    <P>{links}
    <HR>
<!--beginarticle-->
<PRE>{escape(text, quote=False)}
</PRE>
<!--endarticle-->
    <HR>
    <P>{links}
<hr>
<address>Archive generated on {page.today()}, {page.count(20000)} messages. sponsored by <a href="{address}" rel="sponsored">{headline}</a></address>
<a href="/mailman/listinfo">More information about the {escape(site.title)} mailing list</a>
</body></html>
"""


def _wrapped(text):
    """A paragraph, wrapped as mails are."""
    return "\n".join(part for each in text.split("\n") for part in (textwrap.wrap(each, 72, break_long_words=False) or [""]))


def institution(page):
    """The site of an authority: one form around the whole page, with a large hidden state."""
    site, article, label = page.site, page.article, page.label
    style = html.Style(p='<p class="MsoNormal"><span style="font-size:11pt">{}</span></p>\r\n', a='<a href="{href}" target="_blank">{text}</a>')
    state = page.token(max(site.kilobytes, 4) * 380)
    return f"""<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">\r
<html xmlns="http://www.w3.org/1999/xhtml" lang="{site.language}" xml:lang="{site.language}">\r
<head id="ctl00_Head1">{meta(page)}<style type="text/css">{site.assets.css}</style></head>\r
<body>\r
<form name="aspnetForm" method="post" action="./page.aspx?id={page.number}" id="aspnetForm">\r
<div><input type="hidden" name="__VIEWSTATE" id="__VIEWSTATE" value="{state}" />\r
<input type="hidden" name="__EVENTVALIDATION" value="{page.token(200)}" /></div>\r
<script type="text/javascript">//<![CDATA[\r
{site.assets.script}\r
//]]></script>\r
<div id="wrapper">\r
<div id="ctl00_header"><div class="logo"><a href="/">{escape(site.title)}</a></div><div class="tools">{page.today()} | <a href="#">A-</a> <a href="#">A+</a> | <a href="/sitemap">Sitemap</a> | <a href="/contact">{label["contact"]}</a></div></div>\r
<div id="ctl00_menu" class="AspNet-Menu-Horizontal"><ul class="AspNet-Menu">{page.menu_links("", '<li class="AspNet-Menu-Leaf"><a href="{href}" class="AspNet-Menu-Link">{text}</a></li>')}</ul></div>\r
<div id="ctl00_left"><div class="box"><div class="boxhead">Quick links</div><ul>{page.front_list(12)}</ul></div><div class="box">{page.ad_box("campaign")}</div></div>\r
<div id="ctl00_ContentPlaceHolder1_content" class="content">\r
<span id="ctl00_SiteMapPath1">{label["home"]} &gt; {site.menu[0]} &gt; {site.menu[3]}</span>\r
<h2 class="pagetitle">{escape(article.title)}</h2>\r
<div class="ms-rtestate-field">{html.body(style, article.blocks)}</div>\r
<div class="doctools"><a href="javascript:print()">Print this page</a> | Last reviewed: {page.updated()} | Visits: {page.count()}</div>\r
</div>\r
<div id="ctl00_footer"><p>{page.footer_text()} | <a href="/privacy">{label["privacy"]}</a> | <a href="/accessibility">Accessibility statement</a> | <a href="/foi">Freedom of information</a></p><p>{"</p><p>".join(page.notices(2))}</p></div>\r
</div></form>\r
</body></html>\r
"""
