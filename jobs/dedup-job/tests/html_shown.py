"""What a page of HTML or XHTML shows, by the documents: an independent parser makes the tree (justhtml, which makes that of the
standard and of browsers; Python's expat for XHTML), and the rules here say which of it is text that a reader sees.

Rules of ours, which browsers do not have, or have otherwise (docs/choosing-settings.md, "Pages"):
- scripts are on, none runs, and style sheets are not read: only attributes hide;
- options of `select` are left out, `details` are open, the text of `textarea` counts;
- drawings, formulas, and what stands in for a picture, film or program are left out;
- what `html` and `body` say of themselves hides nothing;
- a hidden element that is never closed is shown; all are if there are more than three;
- text that attributes hide counts if it is 400 bytes or more, and twice as many as the visible text; so does a declarative shadow
  root;
- words end at tags of all elements but those of running text, also at tags that the standard ignores, and at hidden elements;
- a table ends a paragraph, also in a page without a document type;
- text stays where it was written, when the standard moves it out of a table.
"""

import collections
import re
from html.entities import html5
from xml.parsers import expat

from justhtml.parser.engine import ParseEngine, compile_raw_engine_plan

# What programs call white space here: that of HTML, and the no-break space.
SPACE = re.compile("[ \t\n\f\r\u00a0]+")
# Elements of running text, and those that are nowhere on the page.
INLINE = set("a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr output q rb rp rt ruby s samp "
             "slot small span strike strong sub sup time tt u var wbr meta link base basefont bgsound param source track area col "
             "colgroup script style noscript template datalist html head body #document".split())
# Their content is never on the page.
NOWHERE = set("title script style noscript iframe noembed noframes".split())
# What the element itself hides.
HIDDEN = set("template datalist select object applet video audio canvas svg math rp meter progress".split())
TABLE = set("table caption colgroup tbody thead tfoot tr td th".split())
FORMATTING = set("a b big code em font i nobr s small strike strong tt u".split())
# Elements of drawings and formulas that no element of HTML is called like.
FOREIGN = set("svg math g path circle text rect mrow mfrac".split())
# Where the program is known to hide something else than browsers, most of it by ending a hidden element elsewhere, by what the page
# has.
KNOWN = {name: re.compile(pattern, re.I | re.S) for name, pattern in {
    "ends of drawings and formulas": r"<(svg|math)\b.*(<!.cdata|<\?)",
    "the end of a template": r"<template.*<(select|col)\b|<template((?!</template).)*</t|<template(?!.*</template).*<(t|caption)",
    "a form in a table": r"<table((?!</table).)*<form",
    "a dialog that is not closed": r"<dialog((?!</).)*(</(?!dialog)|<(li|dt|dd)\b)",
    "a link in a link": r"<(a|nobr)\b((?!</\1).)*<\1\b",
    "raw text that is hidden": r"<(textarea|xmp|plaintext)\b[^>]*(hidden|display|visibility|popover)",
}.items()}
# What these elements of XHTML may have inside, so that HTML does not end them.
CONTENTS = dict.fromkeys(NOWHERE | {"textarea"}, set()) | dict.fromkeys(["svg", "math"], FOREIGN | {"title"}) | {
    "p": INLINE | {"br", "img", "input"}}
# Where justhtml, but no browser, ends an end tag or a comment elsewhere.
JUSTHTML = re.compile(r"</[^>]*['\"]|<!--!>|---!>")
# What may hide something.
HIDES = re.compile(rf"hidden|display|visibility|popover|<({'|'.join(HIDDEN)}|dialog)\b", re.I)


class NotComparable(Exception):
    """Why a page has no text that can be compared."""


class Engine(ParseEngine):
    """Tells whether something was moved out of a table."""

    moved = False

    def _foster_parent_for(self, parent, **of):
        place = super()._foster_parent_for(parent, **of)
        self.moved |= place is not None
        return place


def words(text):
    return [word for word in SPACE.split(text) if word]


def declarations(style):
    """The values of the properties that a style declares: the last important one, or else the last."""
    declared = {}
    for declaration in style.lower().split(";"):
        property, _, value = declaration.partition(":")
        value, important, _ = value.partition("!important")
        before = declared.get(property.strip())
        if value.strip() and (important or not (before and before[1])):
            declared[property.strip()] = value.strip(), bool(important)
    return {property: value for property, (value, _) in declared.items()}


def hides(element, outer=None):
    """What hides an element: "itself", its "attributes", or, with its place left empty, its "visibility"; `outer` is what hides
    the element around it."""
    attributes = element.attrs or {}
    if element.name in ("html", "body"):
        return outer
    style = declarations(attributes.get("style") or "")
    is_shadow = element.name == "template" and (attributes.get("shadowrootmode") or "").lower() in ("open", "closed")
    is_closed = "open" not in attributes if element.name == "dialog" else "popover" in attributes
    displayed = style.get("display")
    if outer == "itself" or element.name in HIDDEN and not is_shadow or is_closed and displayed in (None, "none"):
        return "itself"
    if outer == "attributes" or displayed == "none" or ("hidden" in attributes and not displayed):
        return "attributes"
    return {"hidden": "visibility", "collapse": "visibility", "visible": None}.get(style.get("visibility"), outer)


def children(element):
    return (getattr(element, "template_content", None) or element).children or ()


def texts(element, hidden_by, shown):
    """The texts inside, each with what hides it; None stands for the end of a word."""
    for child in children(element):
        if child.name == "#text":
            yield child.data or "", hidden_by
        elif not child.name.startswith(("#", "!")):
            within = hidden_by if shown(child, hidden_by) else hides(child, hidden_by)
            gap = child.name not in INLINE and hidden_by in (None, "visibility")
            if gap:
                yield None, None
            if child.name not in NOWHERE or child.namespace != "html":
                yield from texts(child, within, shown)
            # The parser does not say it of raw text.
            if gap and (child._end_tag_present or child.name in NOWHERE | {"textarea", "xmp"}):
                yield None, None


def within(element, names):
    """Whether the element is in one of these."""
    while element := element.parent:
        if element.name in names:
            return True
    return False


def elements(element):
    for child in children(element):
        if not child.name.startswith(("#", "!")):
            yield child
            yield from elements(child)


def shown_words(root, unclosed=()):
    """The words of the text that a page shows."""
    every = list(elements(root))
    if any(element.name == "frameset" and element.namespace == "html" for element in every):
        raise NotComparable("frameset")
    hidden = [element for element in every if hides(element)]
    # The program does not open elements again, as the standard does with these: see crates/simhash/src/normalize/html/open.rs.
    seen = [element for element in every if element in hidden or "visibility" in str(element.attrs)]
    if any(element.name in FORMATTING or not element._end_tag_present and within(element, FORMATTING) for element in seen):
        raise NotComparable("hidden formatting")
    unclosed = [element for element in unclosed if element in hidden]
    everything = len(unclosed) > 3

    def found(veiled):
        def shown(element, outer):
            return everything or any(element is other for other in unclosed) or (
                veiled and hides(element, outer) in ("attributes", "visibility"))

        return list(texts(root, None, shown))

    parts = found(False)
    sizes = collections.Counter()
    for part, by in parts:
        sizes[by] += len((part or "").strip().encode())
    veiled, visible = sizes["attributes"] + sizes["visibility"], sizes[None]
    # The lengths are those of the source, so some are too near to tell.
    if 300 < veiled < 600 and veiled > visible or veiled >= 400 and visible < veiled < 4 * visible:
        raise NotComparable("about as much hidden as the rule wants")
    if veiled >= 400 and veiled >= 2 * visible:
        parts = found(True)
    return words("".join(" " if part is None else part for part, by in parts if by is None))


def tree(page):
    """The tree of a page of HTML, and the parser."""
    engine = Engine(page, fragment=False, scripting_enabled=True, plan=compile_raw_engine_plan(False, True), iframe_srcdoc=True)
    engine._quirks_mode = "no-quirks"
    return engine.parse(), engine


def html_words(page):
    """The words that a page of HTML shows, and whether they come in another order than in the page."""
    root, engine = tree(page)
    every = list(elements(root))
    if HIDES.search(page):
        known = next((name for name, pattern in KNOWN.items() if pattern.search(page)), None)
        if not known and any(element.name == "select" and not element._end_tag_present for element in every):
            known = "in a select"
        parts = [element for element in every if element.name in TABLE]
        if not known and engine.moved and any(hides(part) or "visibility" in str(part.attrs) for part in parts):
            known = "misplaced in a table"
        if known:
            raise NotComparable(known)
    foreign = {element.name for element in every if element.namespace != "html"}
    if foreign - FOREIGN or {element.name for element in every} & {"desc", "foreignobject", "mi", "mo", "mn", "ms", "mtext", "annotation-xml"}:
        raise NotComparable("ends of drawings and formulas")
    if any(element.name in ("option", "optgroup") and not within(element, {"select", "datalist"}) for element in every):
        raise NotComparable("an option alone")
    if JUSTHTML.search(page):
        raise NotComparable("what justhtml reads otherwise")
    if re.search(r"<(textarea|xmp|plaintext|svg|math)\b.*\0", page, re.I | re.S):
        raise NotComparable("zeros in raw text and drawings")
    return shown_words(root, engine._stack), engine.moved


class Node:
    """An element of XHTML, or a text."""

    namespace, _end_tag_present = "html", True

    def __init__(self, name, attrs=None, data=None):
        self.name, self.attrs, self.data, self.children = name, attrs, data, []


def xhtml_words(page):
    """The words that a page of XHTML shows."""
    open_elements = [Node("#document")]

    def start(name, attributes):
        element = Node(name, attributes)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def text(data):
        open_elements[-1].children.append(Node("#text", data=data))

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler, parser.CharacterDataHandler = start, text
    parser.EndElementHandler = lambda _: open_elements.pop()
    # XHTML's document type declares the names of HTML.
    parser.SkippedEntityHandler = lambda name, _: text(html5[name + ";"])
    try:
        parser.Parse(page.encode(), True)
    except (expat.ExpatError, KeyError) as error:
        raise NotComparable("not XML") from error
    for element in elements(open_elements[0]):
        inside = [child.name for child in elements(element)]
        allowed = CONTENTS.get(element.name)
        if allowed is not None and not set(inside) <= allowed:
            raise NotComparable("nested otherwise than in HTML")
    return shown_words(open_elements[0])
