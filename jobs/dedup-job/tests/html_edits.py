"""Pages of HTML as they are found, with random faults."""

import os
import re
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator

ROOT = Path(__file__).resolve().parents[3]
TAG = re.compile(r"<[^<>]*>")

# Pieces that are put into pages, between `|` or line ends. `~` becomes a word.
PIECES = r"""
<p>~|</p>|<div>~|</div>|<b>~|</b>|<i>~|</i>|<a href=x>~|</a>|<span>~|</span>|<ul><li>~|<li>~|</li>|</ul>|<ol>|</ol>|<dl><dt>~<dd>~
</dl>|<h1>~|</h2>|<br>~|</br>|<hr>|<table>~|<table><tr><td>~|<tr>~|<td>~</td>|</td>~|</tr>~|</table>|<tbody>|</tbody>|<caption>~
<th>~|<col>~|<colgroup>~|</tr>|<thead>|<tfoot>|<form>~|</form>~|<button>~|</button>|<fieldset><legend>~</legend>~</fieldset>
<section>~|</section>|<article>|</article>|<main>|</main>|<nav>|</nav>|<center>|</center>|<blockquote>~|</blockquote>|<pre>\n~|</pre>
<x-y>~|</x-y>|<marquee>~|</marquee>|<details><summary>~</summary>~</details>|<ruby>~<rt>~</rt></ruby>|<nobr>~|<font>~|</font>|<u>|</u>
<body>|</body>~|</html>~|<head>|</head>|<html>|<!doctype html>|<img alt='~'>|<input value='~'>|<wbr>|<address>|</address>|<em>|</em>
<div hidden>~|<p hidden>~|<div hidden>~</div>~|<span hidden>~</span>~|<li hidden>~|<td hidden>~</td>|<tr hidden><td>~
<div style='display:none'>~</div>|<div style="color: red; Display : NONE !important;">~</div>|<p style=visibility:hidden>~</p>
<div style='display:none;display:block'>~</div>|<div style='x-display:none'>~</div>|<DIV HIDDEN=''>~</DIV>|<div hidden hidden=no>~</div>
<div style='display:none !important; display:block'>~</div>|<p hidden style='display: flex'>~</p>|<p style='display&colon;n&#111;ne'>~</p>
<div style='visibility:hidden'>~<p style='visibility:visible'>~</p>~</div>|<div style='visibility:collapse'>~|<p style='visibility:visible'>~
<div popover>~</div>|<dialog style='display:block'>~</dialog>|<dialog>~</dialog>|<dialog open>~</dialog>|<div data-hidden aria-hidden=true>~</div>|<section hidden><p>~</section>
<template>~</template>|<template><div hidden>~</template>|<template><tr><td>~</template>|<div><template shadowrootmode=open>~</template></div>
<template>|</template>|<noscript><p>~</noscript>|<noscript><!-- </noscript>~-->|<iframe>~</iframe>|<noembed>~</noembed>|<noframes>~</noframes>
<svg><text>~</text></svg>|<svg><title>~</title><path/></svg>~|<svg/>~|<svg><foreignObject><p>~</p></foreignObject></svg>|<svg><g><p>~
<svg><![CDATA[~ > ~]]></svg>~|<svg><desc><div>~</div></desc></svg>|<svg><style>~<b>~</style></svg>|<svg><script>~</script></svg>
<svg><a><circle/><b>~|<svg><font>~</font><font color=x>~|</svg>|<math><mi>~</mi></math>|<math><mtext><p>~</mtext></math>|<math>|</math>
<math><annotation-xml encoding='text/html'><p>~</p></annotation-xml></math>|<svg><br>~|</p>~|<svg></p>~|<![CDATA[~]]>|<![CDATA[~ > ~]]>
<object>~</object>|<object><param>~|</object>|<video>~</video>|<audio>~</audio>|<canvas>~</canvas>|<applet>~</applet>
<select><option>~<option>~</select>|<select><option>~|<select><div>~</div></select>|<select><option>~<input>~|</select>|<option>~</option>
<select><optgroup><option>~</optgroup><hr></select>|<datalist><option>~</datalist>|<optgroup>~|<select><table><tr><td>~</select>~
<textarea>~</textarea>|<textarea>\n~ <b> &amp; </textarea>|<title>~ <b> &lt;</title>|<title>~</title>|<textarea><!-- </textarea>~ -->
<xmp>~ <b> &amp; </xmp>|<listing>~</listing>|<plaintext>~|<style>~ <p> </style>|<style><!-- ~ </style>~|<script>~ < '<p>' </script>
<script><!-- <script> ~ </script> ~ --></script>~|<script><!-- ~ </script>~|<script><!--<script </script>~|<script><!-->~</script>~
<script>~</scripts></script >~|<script/>~</script>|<script></SCRIPT/>~|</script>|<textarea/>~</textarea>|<style/>~</style>|<title/>~</title>
<!-- ~ -->|<!-->~|<!--->~|<!-- ~ --!>~|<!-- > ~ -->|<!--~--->|<!----!>~|<!-- <!-- ~ --> ~|<!-- -- > ~ -->|<! ~ >|<!~>|<? ~ ?>|<?xml ~ > ~?>|</ ~ >|</3>~|</>~
<!-- ~ --|<!-|<!|<?|</|<|~ < ~|~<3|<3~|a<b|<a|<p\thidden\r\n>~</p>|<p =hidden>~</p>|<p hidden=>~</p>|<p/hidden>~</p>|<p title='>' hidden>~</p>
<p title=">">~|<p title='"' class="'">~|<p title=a"b>~|<p title='~|<p title="~|'|"|'>|">|/>|>|=|<br/>~|<div/>~|<p/>~</p>|<b/>~</b>|<a/href=x>~</a>
<P>~</P>|<DiV>~</dIv>|<TABLE><TR><TD>~</TD></TABLE>|<p\x00>~</p>|<p hid\x00den>~|<d\x00iv hidden>~</div>|~\x00~|<title>\x00~</title>|\x0c|\r|\r\n|\t
&amp;|&amp|&lt;p&gt;~|&ltp&gt|&nbsp;|&nbsp|&copy~|&copy;|&notin;|&notit;|&not|&nosuch;|&NOSUCH|&eacute|&eacutes|&AMP|&#39;|&#39|&#x41;|&#X41|&#128;
&#x80;|&#129;|&#150~|&#xd800;|&#xdfff|&#x110000;|&#99999999999;|&#0;|&#x0;|&#13;|&#10;|&#;|&#x;|&#xg|&|&;|&&amp;|&#8203;|&fjlig;|&NotEqualTilde;|&hearts|&apos
&quot|&ampamp;|&lt|&GT;|&Aacute|&ContourIntegral;|&CounterClockwiseContourIntegral;|&#xFFFE;|&#x1F98A;|&para|&part|&sect1|&times2;|&frac12~|&frac1
<a href='?a=1&copy=2'>~</a>|<a title='&gt;' hidden>~|<menu><li>~</menu>|<legend>~</legend>|<meter>~</meter>|<progress>~</progress>|<rp>~</rp>|<search>~</search>
<frameset>|<frame>|<image>~|<isindex>|<keygen>~|<embed>~|<area>|<param>|<source>|<track>|<base>|<link>|<meta>|<bgsound>|<basefont>|<figure><figcaption>~</figure>
""".strip().replace("\n", "|").replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t").replace("\\x00", "\0").replace("\\x0c", "\f").split("|")


def found():
    """Pages that people and servers made: two of this repository, and those of the crawls that other tests read."""
    pages = [(ROOT / name).read_text() for name in ("crates/simhash/tests/page.html", "crates/lookup/src/serve/page.html")]
    crawls = os.environ.get("DEDUP_JOB_TEST_CRAWLS")
    for name in ["example.warc.gz", "iana.warc.gz"] if crawls else []:
        with open(Path(crawls) / name, "rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type == "response" and "html" in (record.http_headers.get_header("Content-Type") or ""):
                    pages.append(record.content_stream().read().decode("utf-8", "ignore"))
    return [page for page in pages if len(page) > 300]


def cut(rng, page):
    """The page, or a part of it, so that elements lack their start tags or end tags."""
    if len(page) < 3000 or (len(page) < 20_000 and rng.random() < 0.2):
        return page
    begin = rng.choice([0, page.find("<body"), rng.randrange(len(page))])
    return page[begin : begin + rng.choice([100, 300, 1000, 3000])]


def edited(rng, page):
    """With tags added, removed, repeated and exchanged, and with other pieces inserted."""
    words = iter(f"{word}{number}" for number in range(1000) for word in [rng.choice(["fox", "naïve", "Лиса", "狐", "x"])])
    for _ in range(rng.choice([0, 1, 1, 2, 3, 4, 6, 10])):
        places = [place for tag in TAG.finditer(page) for place in tag.span()] or [0]
        at = rng.choice(places) if rng.random() < 0.7 else rng.randrange(len(page) + 1)
        piece = rng.choice(PIECES)
        while "~" in piece:
            piece = piece.replace("~", next(words), 1)
        tags = list(TAG.finditer(page))
        tag = rng.choice(tags) if tags else None
        match rng.randrange(12):
            case 0 if tag:
                page = page[: tag.start()] + page[tag.end() :]
            case 1 if tag:
                page = page[:at] + tag[0] + page[at:]
            case 2 if tag:
                page = page[: tag.start()] + tag[0].swapcase() + page[tag.end() :]
            case 3:
                page = page[:at] + page[at + rng.choice([1, 2, 5, 40]) :]
            case 4 if tag:
                to = rng.choice(tags).end()
                page = page[:at] + page[min(tag.start(), to) : max(tag.start(), to)][:300] + page[at:]
            case _:
                page = page[:at] + piece + page[at:]
    return page


# Pieces of XML.
XML_PIECES = r"""
<p>~</p>|<p/>|<p hidden='hidden'>~</p>|<div hidden=""/>~|<div style="display: none">~</div>|<div style='display:none'/>~|<b/>~|<a href='>'/>~
<title/>|<title>~</title>|<script/>~|<script>//<![CDATA[\nif (a < ~) "</script>"\n//]]></script>~|<script src='/>'/>|<style/>~|<iframe/>~
<style><!-- ~ </style> --></style>~|<script><!-- "</script>" ~ --></script>~|<textarea/>~|<textarea>~ &lt;b></textarea>|<noscript/>~
<noscript><p>~</p></noscript>|<br></br>~|<br/>|<hr></hr>|<img alt='~'></img>|<select/>~|<select><option>~</option></select>~|<object/>~
<svg xmlns='http://www.w3.org/2000/svg'><text>~</text><g/></svg>~|<math/>~|<video/>~|<template/>~|<template><p>~</p></template>~
<![CDATA[~ < ~ & ~ &amp; <p>]]>|<![CDATA[]]>|<![CDATA[]]]]>~|<!-- ~ -->|<!--> ~ -->|<!--->~ -->|<!---->|<!-- <p> ' -->
<!-- <![CDATA[ -->~|<?x ~?>|<?x ~ > ~ ?>|<?php echo "<p>~" ?>|<?x '?>~|&amp;|&lt;|&gt;|&quot;|&apos;|&eacute;|&nbsp;|&#65;|&#x42;|&#233;
<p title='a>b'>~</p>|<p title='/>'>~</p>|<p title="'/>">~</p>|<p\n/>~|<p title='a' />~|<dialog>~</dialog>|<ul><li>~</li><li/></ul>|<td/>
<table><tr><td>~</td><td/></tr></table>|<a name='x'/>~|<span/>~|<i/>|<em/>|<ins/>|<x-y/>|<x:y xmlns:x='a'/>~|<p hidden=''>~<br/></p>|> ~|]] ~
""".strip().replace("\n", "|").replace("\\n", "\n").split("|")
DOCTYPES = [
    "", "<!DOCTYPE html>", '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">',
    '<!DOCTYPE html [<!ENTITY a "b>"> <!-- ]> \' --> <?x ]> ?>]>', "<!DOCTYPE html SYSTEM 'x' [\n<!ATTLIST p a CDATA ']>'> ] >",
]
# What XML cannot say.
NOT_XML = re.compile("[\0-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")


def as_xml(rng, element):
    """The pieces of an element of HTML as XML writes it."""
    for child in element.children or ():
        if child.name == "#text":
            for part in re.split("( )", NOT_XML.sub("", child.data or "")):
                match rng.randrange(60):
                    case 0 if "]]>" not in part:
                        yield f"<![CDATA[{part}]]>"
                    case 1:
                        yield "".join(rng.choice([f"&#{ord(letter)};", f"&#x{ord(letter):x};"]) for letter in part)
                    case _:
                        yield part.replace("&", "&amp;").replace("<", "&lt;").replace(">", rng.choice(["&gt;", "&#62;"]))
        elif re.fullmatch(r"[a-z][a-z0-9-]*", child.name):
            attributes = ""
            for name, value in (child.attrs or {}).items():
                if re.fullmatch(r"[a-z][a-z-]*", name) and name != "xmlns":
                    value = NOT_XML.sub("", value or "").replace("&", "&amp;").replace("<", "&lt;")
                    quote = rng.choice("'\"")
                    attributes += f" {name}={quote}{value.replace(quote, '&#39;' if quote == chr(39) else '&quot;')}{quote}"
            if not child.children and child.name != "body" and rng.random() < 0.7:
                yield f"<{child.name}{attributes}{rng.choice(['', ' '])}/>"
            else:
                yield f"<{child.name}{attributes}>"
                yield from as_xml(rng, child)
                yield f"</{child.name}>"


def edited_xml(rng, root):
    """The page as XHTML, with other pieces of XML inserted."""
    words = iter(f"word{number}" for number in range(1000))
    pieces = list(as_xml(rng, root))
    body = pieces.index(next(piece for piece in pieces if piece.startswith("<body")))
    for _ in range(rng.choice([0, 1, 2, 4, 8])):
        piece = rng.choice(XML_PIECES)
        while "~" in piece:
            piece = piece.replace("~", next(words), 1)
        pieces.insert(rng.randrange(body + 1, len(pieces) - 1), piece)
    start = rng.choice(["", '<?xml version="1.0"?>', '<?xml version="1.0" encoding="UTF-8"?>\n'])
    return start + rng.choice(DOCTYPES) + "".join(pieces)
