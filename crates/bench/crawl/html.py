"""Writes the blocks of an article as HTML, in the manner of a site."""

import dataclasses
from html import escape

from .page import slug


@dataclasses.dataclass
class Style:
    """How a site writes each kind of block."""

    p: str = "<p>{}</p>\n"
    heading: str = '<h{level} id="{id}">{text}</h{level}>\n'
    ul: str = "<ul>\n{}</ul>\n"
    ol: str = "<ol>\n{}</ol>\n"
    li: str = "<li>{}</li>\n"
    pre: str = "<pre><code>{}</code></pre>\n"
    table: str = "<table>\n{}</table>\n"
    b: str = "<strong>{}</strong>"
    i: str = "<em>{}</em>"
    c: str = "<code>{}</code>"
    a: str = '<a href="{href}">{text}</a>'
    #: Added to the level of a heading.
    deeper: int = 0


def line(style, spans):
    """A line of an article."""
    parts = []
    for kind, text, *href in spans:
        text = escape(text, quote=False)
        if kind == "t":
            parts.append(text)
        elif kind == "a":
            parts.append(style.a.format(text=text, href=escape(href[0])))
        else:
            parts.append(getattr(style, kind).format(text))
    return "".join(parts)


def block(style, part):
    """A block of an article."""
    kind = part[0]
    if kind == "p":
        return style.p.format(line(style, part[1]))
    if kind == "h":
        text = line(style, part[2])
        return style.heading.format(level=min(part[1] + style.deeper, 6), id=slug(text), text=text)
    if kind == "pre":
        return style.pre.format(escape(part[1], quote=False))
    if kind == "table":
        rows = ["".join(f"<{cell}>{line(style, each)}</{cell}>" for each in row) for cell, row in _cells(part[1])]
        return style.table.format("".join(f"<tr>{row}</tr>\n" for row in rows))
    items = "".join(style.li.format(line(style, item)) for item in part[1])
    return getattr(style, kind).format(items)


def _cells(rows):
    for at, row in enumerate(rows):
        yield ("th" if at == 0 else "td"), row


def body(style, blocks, between=()):
    """The blocks; after every fourth stands one of `between`, such as an advertisement."""
    between = list(between)
    parts = []
    for at, part in enumerate(blocks):
        parts.append(block(style, part))
        if at % 4 == 3 and between and at + 1 < len(blocks):
            parts.append(between.pop(0))
    return "".join(parts)
