"""Templates of page frameworks and of portals."""

import random
from html import escape

from .. import assets, html
from .press import meta


def framework(page):
    """A page that a framework rendered: classes without meaning, and the article once more in its state."""
    site, article, label = page.site, page.article, page.label
    names = random.Random(f"classes {site.host}")
    c = [f"css-{assets.name(names, 6).lower()}" for _ in range(14)].__getitem__
    style = html.Style(
        p=f'<p class="{c(0)}" data-testid="paragraph">{{}}</p>', heading=f'<h{{level}} class="{c(1)}" id="{{id}}">{{text}}</h{{level}}>',
        ul=f'<ul class="{c(2)}">{{}}</ul>', li=f'<li class="{c(3)}"><div>{{}}</div></li>', a=f'<a class="{c(4)}" href="{{href}}">{{text}}</a>',
        pre=f'<div class="{c(5)}"><pre>{{}}</pre></div>',
    )
    card = f'<div class="{c(6)}"><a href="{{href}}"><div class="{c(7)}">{{title}}</div><div class="{c(8)}">{{summary}}</div></a></div>'
    state = assets.json_state(page.rng("fetch"), article, site.kilobytes * 300)
    links = page.menu_links("", f'<a class="{c(9)}" href="{{href}}">{{text}}</a>')
    return (
        f'<!DOCTYPE html><html lang="{site.language}"><head>{meta(page)}'
        f'<style data-emotion="css">{site.assets.css}</style>'
        + "".join(f'<link rel="preload" as="script" href="/_next/static/chunks/{at}-{site.assets.logo[30:44]}.js">' for at in range(12))
        + f'</head><body><div id="__next"><div class="{c(10)}"><div class="{c(11)}"><a href="/" aria-label="{escape(site.title)}">{page.icon(0)}</a>'
        f'<div role="navigation" class="{c(12)}">{links}</div><button>{label["login"]}</button><button>{label["subscribe"]}</button></div>'
        f'<div class="{c(13)}"><div><h1 class="{c(1)}">{escape(article.title)}</h1>'
        f'<div class="{c(8)}"><span>{page.author()}</span><span>{page.published()}</span><span>{page.count(900)} {label["views"]}</span>'
        f'<button aria-label="{label["share"]}">{page.icon(3)} {page.count(400)}</button></div>{page.picture()}</div>'
        f'<div class="{c(10)}"><section>{html.body(style, article.blocks, [page.ad_frame(), page.ad_frame()])}</section></div>{page.ad_box(c(6))}'
        f'<div class="{c(8)}">{label["updated"]} {page.updated()}</div></div>'
        f'<div class="{c(12)}"><div class="{c(1)}">{label["related"]}</div>{page.teaser_list(4, card)}{page.front_list(6, card)}</div>'
        f'<div class="{c(11)}"><div>{links}</div><div>{page.newsletter_text()}</div><div>{" ".join(page.notices(2))}</div><div>{page.footer_text()} {label["privacy"]} {label["terms"]}</div></div></div></div>'
        f'<div id="portal"><div role="alertdialog" class="{c(6)}"><div>{page.cookie_text()}</div><button>{label["accept"]}</button><button>{label["reject"]}</button></div></div>'
        f'<script id="__NEXT_DATA__" type="application/json">{state}</script>'
        f'<script>self.__f=self.__f||[];self.__f.push([0,"{page.token(90)}"])</script><script>{site.assets.script}</script></body></html>'
    )


def portal(page):
    """A portal as they are in East Asia: long bars of links, boxes of headlines, registrations in the footer."""
    site, article, label = page.site, page.article, page.label
    style = html.Style(p="<p>　　{}</p>\n", heading="<p><strong>{text}</strong></p>\n", pre="<pre class=\"brush\">{}</pre>\n")
    bar = page.menu_links(" | ", '<a href="{href}" target="_blank">{text}</a>')
    box = '<li><em class="dot">·</em><a href="{href}" target="_blank" title="{title}">{title}</a></li>\n'
    charset = f'<meta http-equiv="Content-Type" content="text/html; charset={page.charset_in_meta}" />\n' if page.charset_in_meta else ""
    remarks = "".join(f'<div class="cmt-item"><span class="nick">{name}</span><span class="tm">{date}</span><div class="cmt-c">{escape(text)}</div><a>{label["reply"]}({page.count(30)})</a></div>' for name, date, text in page.remarks(4))
    registration = {"zh": "京ICP备{n}号-1 京公网安备{n}号 违法和不良信息举报电话：010-{n}", "ja": "登録番号 第{n}号", "ko": "등록번호: 서울 아{n} | 사업자등록번호: 101-81-{n} | 청소년보호책임자"}
    number = 10000000 + sum(map(ord, site.host)) * 977
    return f"""<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">
<html xmlns="http://www.w3.org/1999/xhtml" lang="{site.language}">
<head>
{charset}<title>{escape(article.title)}_{site.menu[0]}_{escape(site.title)}</title>
<meta name="keywords" content="{",".join(site.menu)}" />
<script type="text/javascript">{site.assets.scripts[0]}</script>
<style type="text/css">{site.assets.css}</style>
</head>
<body>
<div class="topbar"><div class="w1000"><span>{page.today()}</span> <a href="#">{label["login"]}</a> <a href="#">{label["register"]}</a> {bar}</div></div>
<div class="head w1000"><div class="logo"><a href="/"><img src="/images/logo.gif" alt="{escape(site.title)}" /></a></div><div class="topad">{page.ad()[0]}</div><form class="so"><input name="wd" /><input type="submit" value="{label["search"]}" /></form></div>
<div class="nav w1000"><ul>{page.menu_links()}</ul></div>
<div class="w1000 clearfix">
<div class="left">
<div class="crumb"><a href="/">{label["home"]}</a> &gt; <a href="/a/">{site.menu[0]}</a> &gt; <a href="/b/">{site.menu[1]}</a></div>
<h1>{escape(article.title)}</h1>
<div class="info">{label["published"]}：{page.published()}　{label["by"]}：{page.author()}　<span id="hits">{page.count()}</span> {label["views"]}　<a href="#cmt">{label["comments"]}({page.count(400)})</a></div>
<div class="content" id="endText">
{html.body(style, article.blocks, [page.ad_box("gg"), page.ad_frame()])}</div>
<div class="page"><a>{label["previous"]}</a> {page.teaser_list(1, '<a href="{href}">{title}</a>')} <a>{label["next"]}</a> {page.teaser_list(1, '<a href="{href}">{title}</a>')}</div>
<div class="share"><span>{label["share"]}：</span><a class="s1" title="1"></a><a class="s2" title="2"></a></div>
<div class="rel"><h3>{label["related"]}</h3><ul>{page.teaser_list(10, box)}</ul></div>
<div class="cmt" id="cmt"><h3>{label["comments"]}</h3>{remarks}</div>
</div>
<div class="right">{page.ad_box("gg300")}<div class="box"><h3>{label["popular"]}</h3><ul>{page.front_list(12, box)}</ul></div>{page.ad_frame()}<div class="box"><h3>{label["more"]}</h3><ul>{page.front_list(10, box)}</ul></div></div>
</div>
<div class="foot"><p>{bar}</p><p>{label["about"]} | {label["contact"]} | {label["terms"]} | {label["privacy"]} | {label["help"]}</p><p>{page.footer_text()}</p><p>{registration.get(site.language, "").format(n=number)}</p><p>{"</p><p>".join(page.notices(2))}</p><p>{page.cookie_text()}</p></div>
<script type="text/javascript">{site.assets.scripts[1]}var _hm="{page.token(12)}";</script>
</body>
</html>
"""
