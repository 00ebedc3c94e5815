"""The blocks of an article: parses Markdown and reStructuredText into them, and gives their text.

A block is a tuple: ("p", line), ("h", level, line), ("ul" or "ol", [line, …]), ("pre", text), ("table", [[line, …], …]). A
line is a list of spans: (kind, text) with the kinds t (plain), b, i and c (code), or ("a", text, href).
"""

import re

_SPAN = re.compile(
    r"``(?P<rst_code>[^`]+)``"
    r"|:[a-z:-]+:`(?P<role>[^`<]+?)(?:\s*<[^>]*>)?`"
    r"|`(?P<rst_link>[^`<]+?)\s*<(?P<rst_href>[^>`]+)>`__?"
    r"|`(?P<code>[^`]+)`_{0,2}"
    r"|!?\[(?P<link>[^\]\[]+)\](?:\((?P<href>[^)\s]*)[^)]*\)|\[[^\]]*\])"
    r"|\*\*(?P<bold>[^*\n]+)\*\*"
    r"|\*(?P<italic>[^*\n\s][^*\n]*)\*"
)
_TAG = re.compile(r"</?(?:br|span|p|a|b|i|code|sup|sub|div|img|em|strong|kbd)\b[^<>]*>")


def spans(text):
    """The spans of a line of Markdown or reStructuredText."""
    text = re.sub(r"\s+", " ", _TAG.sub(" ", text).replace("\\\n", " ")).strip()
    line, at = [], 0
    for match in _SPAN.finditer(text):
        if match.start() > at:
            line.append(("t", text[at : match.start()]))
        at = match.end()
        group = match.lastgroup if match.lastgroup not in ("href", "rst_href") else "link"
        if group == "link":
            label = match["link"] or match["rst_link"]
            line.append(("a", label.replace("`", ""), match["href"] or match["rst_href"] or "#"))
        else:
            kind = {"bold": "b", "italic": "i"}.get(group, "c" if "code" in group else "i")
            line.append((kind, match[group]))
    if at < len(text):
        line.append(("t", text[at:]))
    return line


def line_text(line):
    """The text of a line, without marks."""
    return "".join(span[1] for span in line)


def block_text(block):
    """The text of a block: a line for each of its parts."""
    kind = block[0]
    if kind == "pre":
        return block[1]
    if kind in ("ul", "ol"):
        return "\n".join(map(line_text, block[1]))
    if kind == "table":
        return "\n".join(" ".join(map(line_text, row)) for row in block[1])
    return line_text(block[-1])


def size(text):
    """Number of words; a Chinese, Japanese or Korean character counts half."""
    return (
        len(re.findall(r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+", text))
        + len(re.findall(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]", text)) // 2
    )


def markdown(text):
    """The title, if it has one, and the blocks of a Markdown document."""
    title, blocks = None, []
    if text.startswith("---"):
        matter, _, text = text[3:].partition("\n---")
        found = re.search(r'^title:\s*"?(.*?)"?\s*$', matter, re.MULTILINE)
        title = found and found[1]
    for part in re.split(r"(^```.*?^```[ \t]*$)", text, flags=re.MULTILINE | re.DOTALL):
        if part.startswith("```"):
            body = "\n".join(part.splitlines()[1:-1])
            if body.strip() and "{{#" not in body:
                blocks.append(("pre", body))
            continue
        for paragraph in re.split(r"\n[ \t>]*\n", part):
            _markdown_paragraph(paragraph.strip("\n"), blocks)
    if blocks and blocks[0][0] == "h":
        title = title or line_text(blocks[0][-1])
        del blocks[0]
    return title, blocks


def _markdown_paragraph(paragraph, blocks):
    paragraph = re.sub(r"^[ \t]*>[ \t]?", "", paragraph, flags=re.MULTILINE).strip("\n")
    heading = re.match(r"\s*(#+)\s+(.*)", paragraph)
    if heading:
        blocks.append(("h", min(len(heading[1]), 4), spans(heading[2].split("\n")[0].rstrip("# "))))
        rest = heading[2].partition("\n")[2]
        if rest.strip():
            _markdown_paragraph(rest, blocks)
        return
    if re.match(r"\s*\|.*\|\s*$", paragraph.split("\n")[0]):
        rows = [line.strip().strip("|").split("|") for line in paragraph.split("\n") if not re.fullmatch(r"[\s|:-]+", line)]
        blocks.append(("table", [[spans(cell) for cell in row] for row in rows]))
        return
    if re.match(r"\s*([-*+]|\d+\.)\s", paragraph):
        items = re.split(r"^\s*(?:[-*+]|\d+\.)\s+", paragraph, flags=re.MULTILINE)[1:]
        kind = "ol" if re.match(r"\s*\d", paragraph) else "ul"
        lines = [spans(item) for item in items if item.strip()]
        # A list whose items have empty lines between them is one list.
        if blocks and blocks[-1][0] == kind:
            blocks[-1][1].extend(lines)
        elif lines:
            blocks.append((kind, lines))
        return
    # Link definitions, directives and markers of other syntaxes are not text.
    if re.match(r"\s*(\[[^\]]+\]:|<!--|:::|\[!|<a |<br|commit [0-9a-f]{40})", paragraph):
        return
    line = spans(paragraph)
    if line_text(line).strip():
        blocks.append(("p", line))


def restructured(text):
    """The title, if it has one, and the blocks of a Python enhancement proposal."""
    header, _, body = text.partition("\n\n")
    found = re.search(r"^Title:\s*(.*)$", header, re.MULTILINE)
    title = found and found[1].strip()
    # Old proposals indent all but their headings.
    is_old = len(re.findall(r"^    \S", body, re.MULTILINE)) > len(re.findall(r"^\S", body, re.MULTILINE))
    blocks, literal = [], False
    for paragraph in re.split(r"\n[ \t]*\n", body):
        paragraph = paragraph.strip("\n")
        if not paragraph.strip():
            continue
        if is_old and not paragraph.startswith(" ") and "\n" not in paragraph:
            blocks.append(("h", 2, spans(paragraph)))
            continue
        if is_old:
            paragraph = re.sub(r"^ {1,4}", "", paragraph, flags=re.MULTILINE)
        lines = paragraph.split("\n")
        while lines and len(lines) > 1 and re.fullmatch(r"([=\-~^'\"*+.])\1{2,}\s*", lines[1]):
            blocks.append(("h", {"=": 2, "-": 3}.get(lines[1][0], 4), spans(lines[0])))
            lines = lines[2:]
        if not lines or (len(lines) == 1 and re.fullmatch(r"[=\-~.]{3,}\s*|\f", lines[0])):
            continue
        paragraph = "\n".join(lines)
        if (literal and lines[0].startswith(" ")) or lines[0].lstrip().startswith((">>>", "$ ")):
            blocks.append(("pre", _dedent(lines)))
            continue
        literal = paragraph.rstrip().endswith("::")
        if re.match(r"\s*(\.\. |Local Variables:|coding:|:[A-Za-z-]+:)", paragraph):
            literal = ".. code" in paragraph or ".. sourcecode" in paragraph
            continue
        items = re.split(r"^\s*(?:[-*+]|\d+\.|\(?[a-z\d]\))\s+", paragraph, flags=re.MULTILINE)
        if len(items) > 1 and not items[0].strip():
            kind = "ol" if re.match(r"\s*\(?[\da-z][.)]", paragraph) else "ul"
            new = [spans(item) for item in items[1:] if item.strip()]
            if blocks and blocks[-1][0] == kind:
                blocks[-1][1].extend(new)
            else:
                blocks.append((kind, new))
            continue
        line = spans(re.sub(r"::\s*$", ":", paragraph))
        if line_text(line).strip(" :"):
            blocks.append(("p", line))
    return title, blocks


def _dedent(lines):
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:] for line in lines)
