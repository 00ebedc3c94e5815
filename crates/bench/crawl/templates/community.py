"""Templates of forums, questions and answers, shops, and pages of the last century."""

from html import escape

from .. import html
from .press import meta


def _parts(blocks, most):
    """The blocks in up to `most` runs of about the same number."""
    count = max(1, min(most, len(blocks) // 3))
    length = -(-len(blocks) // count)
    return [blocks[at : at + length] for at in range(0, len(blocks), length)]


def forum(page):
    """A thread of a forum: the article is spread over posts, each with its author's figures."""
    site, article, label = page.site, page.article, page.label
    style = html.Style(
        p="{}<br />\n<br />\n", heading="<b>{text}</b><br />\n<br />\n", ul="<ul>{}</ul>\n", b="<b>{}</b>", i="<i>{}</i>", c="<tt>{}</tt>",
        pre='<div class="codebox"><p>Code: <a href="#">Select all</a></p><pre><code>{}</code></pre></div>\n', a='<a href="{href}" class="postlink">{text}</a>',
    )
    story = page.rng("story")
    posts = []
    for at, part in enumerate(_parts(article.blocks, 5)):
        name = page.author()
        posts.append(
            f"""<div id="p{page.number * 10 + at}" class="post has-profile bg{at % 2 + 1}"><div class="inner">
<dl class="postprofile"><dt><a href="/memberlist?u={story.randint(2, 9999)}" class="username">{name}</a></dt><dd class="profile-rank">{story.choice(["Member", "Senior member", "Moderator", "New here"])}</dd>
<dd class="profile-posts"><strong>Posts:</strong> {page.count(9000)}</dd><dd class="profile-joined"><strong>Joined:</strong> {page.published()}</dd><dd class="profile-location"><strong>Location:</strong> {story.choice(["Leeds", "Porto", "Oslo", "Riga", "Turin"])}</dd></dl>
<div class="postbody"><h3><a href="#p{at}">{"Re: " * (at > 0)}{escape(article.title)}</a></h3>
<p class="author">by <strong>{name}</strong> » {page.published()}</p>
<div class="content">{html.body(style, part)}</div>
<div class="signature">{escape(story.choice(["Read the rules before you post.", "Sent from a very old machine", "-- ", "There are no stupid questions.", ""]))}</div></div>
<div class="back2top"><a href="#wrap">{label["top"]}</a></div></div></div>
"""
        )
        if at == 0:
            posts.append(f'<div class="post bg3">{page.ad_box("content")}</div>\n')
    topics = page.teaser_list(6, '<li class="row"><a href="{href}" class="topictitle">{title}</a></li>\n')
    return f"""<!DOCTYPE html>
<html dir="ltr" lang="{site.language}">
<head>
{meta(page)}<style>{site.assets.css}</style>
</head>
<body id="phpbb" class="nojs notouch section-viewtopic">
<div id="wrap"><div id="page-header"><div class="headerbar"><div id="site-description"><a id="logo" href="/">{escape(site.title)}</a><p>Discussion boards since 2003</p></div></div>
<div class="navbar"><ul class="linklist"><li><a href="/faq">FAQ</a></li>{page.menu_links()}<li><a href="/register">{label["register"]}</a></li><li><a href="/ucp?sid={page.token(12)}">{label["login"]}</a></li></ul>
<ul class="navlinks"><li>Board index ‹ {site.menu[0]} ‹ {site.menu[1]}</li></ul></div></div>
<div id="page-body"><h2 class="topic-title"><a href="?t={page.number}">{escape(article.title)}</a></h2>
<div class="action-bar"><a href="/posting">Post reply</a><div class="pagination">{len(posts)} posts • Page <strong>1</strong> of <strong>1</strong> • {page.count()} {label["views"]}</div></div>
{"".join(posts)}
<div class="jumpbox">Jump to: {page.menu_links(", ", '<a href="{href}">{text}</a>')}</div>
<h3>Similar topics</h3><ul class="topiclist">{topics}</ul>
<div class="stat-block online-list"><h3>Who is online</h3><p>Users browsing this forum: {page.count(9)} registered users, {page.count(200)} guests. Most users ever online was {page.count(5000)}.</p></div><div class="rules"><p>{"</p><p>".join(page.notices(2))}</p></div></div>
<div id="page-footer"><ul><li>All times are UTC</li><li>It is currently {page.today()}</li><li><a href="/delete_cookies">Delete cookies</a></li></ul><div class="copyright">{page.footer_text()}<br />Time: {page.rng("counter").random():.3f}s | Queries: {page.count(60)}</div></div></div>
<script>{site.assets.script}</script>
</body>
</html>
"""


def questions(page):
    """Questions and answers: votes, comments, a list of hot questions."""
    site, article, label = page.site, page.article, page.label
    style = html.Style(pre='<pre class="lang-sh s-code-block"><code class="hljs">{}</code></pre>\n')
    story = page.rng("story")
    answers = []
    for at, part in enumerate(_parts(article.blocks, 4)):
        remarks = "".join(
            f'<li class="comment"><span class="comment-score">{page.count(40)}</span><span class="comment-copy">{escape(text)}</span> – '
            f'<a class="comment-user" href="/users/{story.randint(1, 9999)}">{name}</a> <span class="relativetime-clean">{date}</span></li>'
            for name, date, text in page.remarks(2)
        )
        answers.append(
            f"""<div class="{"question" if at == 0 else "answer"}" data-score="{page.count(900)}"><div class="post-layout">
<div class="votecell"><button aria-label="Up vote">{page.icon(1)}</button><div class="js-vote-count">{page.count(900)}</div><button aria-label="Down vote">{page.icon(2)}</button></div>
<div class="postcell"><div class="s-prose js-post-body">{html.body(style, part)}</div>
<div class="post-signature"><div class="user-action-time">{"asked" if at == 0 else "answered"} {page.published()}</div><div class="user-details"><a href="#">{page.author()}</a> <span class="reputation-score">{page.count(99999)}</span></div></div>
<ul class="comments-list">{remarks}</ul><a class="js-add-link">Add a comment</a></div></div></div>
"""
        )
        if at == 0:
            answers.append(f'<div class="js-zone-container zone-container-main">{page.ad_box("zone-promo")}</div><div id="answers-header"><h2>{page.count(20)} Answers</h2></div>')
    return f"""<!DOCTYPE html>
<html class="html__responsive" lang="{site.language}">
<head>
{meta(page)}<style>{site.assets.css}</style><script>{site.assets.scripts[0]}</script>
</head>
<body class="question-page unified-theme">
<header class="s-topbar"><a class="s-topbar--logo" href="/">{escape(site.title)}</a><ol class="s-navigation">{page.menu_links()}</ol><a href="/users/login">{label["login"]}</a><a href="/users/signup">Sign up</a></header>
<div class="container"><div id="left-sidebar"><nav><ol>{page.menu_links()}</ol></nav></div>
<div id="content"><div id="question-header"><h1 itemprop="name"><a class="question-hyperlink" href="/q/{page.number}">{escape(article.title)}</a></h1><a href="/ask">Ask Question</a></div>
<div class="flex--item">Asked {page.published()} Modified {page.updated()} Viewed {page.count()} times</div>
<div id="mainbar">{"".join(answers)}<h2>Your Answer</h2><form id="post-form"><textarea></textarea><p>By clicking “Post Your Answer”, you agree to our <a href="/terms">terms of service</a> and acknowledge you have read our <a href="/privacy">privacy policy</a>.</p></form></div>
<div id="sidebar"><div class="s-sidebarwidget"><div class="s-sidebarwidget--header">The blog</div><ul>{page.front_list(4)}</ul></div>{page.ad_frame()}
<div class="module sidebar-related"><h4>Related</h4>{page.teaser_list(8, '<div class="spacer"><a href="{href}"><div class="answer-votes">·</div></a><a class="question-hyperlink" href="{href}">{title}</a></div>')}</div>
<div id="hot-network-questions"><h4>Hot Network Questions</h4><ul>{page.front_list(22)}</ul></div></div></div></div>
<footer id="footer"><nav>{page.menu_links(" ", '<a href="{href}">{text}</a>')}</nav><p>{page.footer_text()} User contributions licensed under a free licence. rev {page.updated()}</p></footer>
<div class="js-consent-banner"><p>Your privacy</p><p>{page.cookie_text()}</p><button>{label["accept"]}</button><button>Customize settings</button></div>
<script>{site.assets.scripts[1]}</script>
</body>
</html>
"""


def shop(page):
    """A page of a shop: price, offers, specifications, reviews; the article is the description."""
    site, article, label = page.site, page.article, page.label
    style = html.Style(li='<li class="feature-bullet"><span class="a-list-item">{}</span></li>\n', p='<p class="desc-p">{}</p>\n')
    story = page.rng("story")
    card = '<li class="carousel-card"><a href="{href}"><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" alt=""><span class="a-truncate">{title}</span></a><span class="price">€ 19.99</span></li>'
    specification = "".join(
        f'<tr><th class="prodDetSectionEntry">{name}</th><td>{value}</td></tr>'
        for name, value in [
            ("Item number", story.randint(10**6, 10**8)), ("Publisher", page.author()), ("First available", page.published()),
            ("Weight", f"{story.randint(90, 4000)} g"), ("Pages", story.randint(40, 900)),
        ]
    )
    reviews = "".join(
        f'<div class="review" data-hook="review"><span class="a-profile-name">{name}</span><i class="a-icon-star">{story.randint(2, 5)}.0 out of 5 stars</i>'
        f'<span class="review-date">Reviewed on {date}</span><div class="review-text">{escape(text)}</div><span class="helpful">{page.count(90)} people found this helpful</span></div>\n'
        for name, date, text in page.remarks(5)
    )
    return f"""<!doctype html><html lang="{site.language}" class="a-no-js"><head>
{meta(page)}<style>{site.assets.css}</style>
<script>{site.assets.scripts[0]}</script></head>
<body class="a-m-gb"><div id="a-page">
<script type="a-state" data-a-state="{{&quot;key&quot;:&quot;csrf&quot;}}">{{"token":"{page.token(60)}"}}</script>
<header id="navbar"><div id="nav-logo"><a href="/">{escape(site.title)}</a></div><div id="nav-search"><form><select>{page.menu_links("", "<option>{text}</option>")}</select><input type="text"></form></div>
<div id="nav-tools">Hello, sign in | Returns &amp; Orders | Basket <span id="nav-cart-count">0</span></div><div id="nav-xshop">{page.menu_links(" ", '<a class="nav-a" href="{href}">{text}</a>')}</div></header>
<div class="deal-strip">{page.ad()[0]} · {page.today()}</div>
<div id="dp-container"><div id="wayfinding-breadcrumbs">{site.menu[0]} › {site.menu[1]} › {site.menu[2]}</div>
<div id="leftCol"><div id="imageBlock">{page.picture()}</div></div>
<div id="centerCol"><h1 id="title"><span id="productTitle">{escape(article.title)}</span></h1>
<div id="averageCustomerReviews">{story.randint(30, 50) / 10} out of 5 stars <a href="#reviews">{page.count(20000)} ratings</a> | <span>{page.count(900)}+ bought in past month</span></div>
<div id="corePrice">€ {story.randint(5, 120)}.{story.randint(10, 99)}<span class="vat"> including VAT</span></div>
<div id="productDescription">{html.body(style, article.blocks, [page.ad_frame()])}</div></div>
<div id="rightCol"><div id="buybox"><p>FREE delivery <b>{page.updated()}</b>. Order within {page.count(12)} hrs {page.count(59)} mins.</p><p>Only {page.count(15)} left in stock.</p><button>Add to basket</button><button>Buy now</button>
<p>Dispatched and sold by {escape(site.title)}. Returnable within 30 days of receipt.</p></div>{page.ad_box("ad-feedback")}</div>
<div id="sims" class="carousel"><h2>Customers who viewed this item also viewed</h2><ol>{page.teaser_list(10, card)}</ol></div>
<div id="prodDetails"><h2>Product information</h2><table>{specification}</table></div>
<div id="reviews"><h2>Top reviews</h2>{reviews}</div>
<div id="sp" class="carousel"><h2>{label["sponsored"]}</h2><ol>{"".join(f'<li>{page.ad_box("sp-item")}</li>' for _ in range(4))}</ol></div></div>
<footer id="navFooter"><a id="navBackToTop" href="#nav-top">{label["top"]}</a><div class="navFooterColumns"><ul>{page.menu_links()}</ul><ul><li>Careers</li><li>Investor relations</li><li>Sell on {escape(site.title)}</li><li>Track packages</li><li>{label["help"]}</li></ul></div>
<div>{label["terms"]} {label["privacy"]} {page.footer_text()}</div>{"".join(f"<p>{each}</p>" for each in page.notices(3))}</footer>
<script>{site.assets.scripts[1]}</script></div></body></html>
"""


def tables(page):
    """A page of the last century: nested tables, capitals, elements that are never closed, a visitor counter."""
    site, article, label = page.site, page.article, page.label
    style = html.Style(
        p="<P><FONT FACE=\"Verdana, Arial\" SIZE=2>{}</FONT>\n", heading="<P><FONT FACE=\"Arial\" SIZE=4 COLOR=#800000><B>{text}</B></FONT>\n", ul="<UL>\n{}</UL>\n",
        ol="<OL>\n{}</OL>\n", li="<LI><FONT FACE=\"Verdana, Arial\" SIZE=2>{}</FONT>\n", pre="<PRE>{}</PRE>\n", table="<TABLE BORDER=1 CELLPADDING=3>{}</TABLE>\n",
        b="<B>{}</B>", i="<I>{}</I>", c="<TT>{}</TT>", a='<A HREF="{href}">{text}</A>',
    )
    menu = page.menu_links("", '<TR><TD BGCOLOR=#336699><IMG SRC="/img/dot.gif" WIDTH=8 HEIGHT=8><A HREF="{href}"><FONT COLOR=#FFFFFF SIZE=1>{text}</FONT></A></TD></TR>\n')
    headline, text, address = page.ad()
    charset = f'<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset={page.charset_in_meta}">\n' if page.charset_in_meta else ""
    return f"""<HTML>
<HEAD>
{charset}<TITLE>{escape(article.title)} - {escape(site.title)}</TITLE>
<META NAME="keywords" CONTENT="{", ".join(site.menu)}">
<SCRIPT LANGUAGE="JavaScript"><!--
{site.assets.script}
//--></SCRIPT>
</HEAD>
<BODY BGCOLOR=#FFFFFF TEXT=#000000 LINK=#0000CC TOPMARGIN=0>
<CENTER><TABLE WIDTH=760 BORDER=0 CELLSPACING=0 CELLPADDING=0>
<TR><TD COLSPAN=3 BGCOLOR=#003366><IMG SRC="/img/logo.gif" ALT="{escape(site.title)}"><FONT COLOR=#FFFFFF SIZE=1>{page.today()}</FONT></TD></TR>
<TR><TD COLSPAN=3 ALIGN=center><A HREF="{address}"><IMG SRC="/banner/{page.rng("ad").randint(1, 999)}.gif" WIDTH=468 HEIGHT=60 ALT="{headline}"></A></TD></TR>
<TR><TD WIDTH=140 VALIGN=top><TABLE WIDTH=140 CELLPADDING=2>{menu}</TABLE>
<TABLE WIDTH=140 BORDER=1><TR><TD><FONT SIZE=1><B>{label["sponsored"]}</B><BR>{headline}<BR>{text}</FONT></TD></TR></TABLE></TD>
<TD WIDTH=10>&nbsp;</TD>
<TD VALIGN=top><FONT FACE="Arial" SIZE=5><B>{escape(article.title)}</B></FONT><BR>
<FONT SIZE=1>{label["by"]} {page.author()}, {page.published()}</FONT><HR NOSHADE SIZE=1>
{html.body(style, article.blocks)}
<HR NOSHADE SIZE=1>
<FONT SIZE=1><B>{label["related"]}</B><BR>{page.front_list(8, '· <A HREF="{href}">{title}</A><BR>')}</FONT>
<P ALIGN=center><FONT SIZE=1>You are visitor number <B>{int(page.count(10**6).replace(",", "")):07}</B> since 1998.<BR>
Best viewed at 800 x 600. {label["updated"]}: {page.updated()}.<BR><A HREF="/">{label["home"]}</A> | <A HREF="/guestbook.cgi">Guestbook</A> | <A HREF="mailto:webmaster@{site.host}">Webmaster</A><BR>{page.footer_text()}</FONT>
</TD></TR></TABLE></CENTER>
</BODY>
</HTML>
"""
