"""The HTTP response of a page: its charset and encodings, as servers send them."""

import dataclasses
import gzip
import random
import zlib

import brotli
import zstandard
from resiliparse.parse.encoding import bytes_to_str, detect_encoding

#: Transfer and content encodings, and the share of pages that have them. Most crawlers keep what the server sent; others, such
#: as that of Common Crawl, keep it decoded.
ENCODINGS = {
    ("", ""): 0.80,
    ("chunked", "gzip"): 0.10,
    ("", "gzip"): 0.04,
    ("chunked", ""): 0.03,
    ("", "br"): 0.015,
    ("", "zstd"): 0.01,
    ("", "deflate"): 0.005,
}
#: Where a page declares its charset.
DECLARED = {"header": 0.35, "both": 0.35, "meta": 0.25, "bom": 0.02, "nowhere": 0.03}


@dataclasses.dataclass
class Response:
    """A response, and the page's text that a reader should get from it."""

    headers: list
    body: bytes
    text: str


def prepare(page):
    """Decides where the page declares its charset; before it is rendered."""
    rng = random.Random(f"charset {page.site.host} {page.number}")
    where = rng.choices(list(DECLARED), DECLARED.values())[0]
    if page.site.charset != "utf-8" and where in ("bom", "nowhere"):
        where = "meta"
    page.declared = where
    page.charset_in_meta = page.site.charset if where in ("both", "meta") else None


def respond(page):
    """Renders the page, and encodes it."""
    prepare(page)
    rng = random.Random(f"response {page.site.host} {page.number}")
    text = page.render()
    encoded = text.encode(page.site.charset, errors="xmlcharrefreplace")
    text = encoded.decode(page.site.charset)
    if page.declared == "bom":
        encoded = b"\xef\xbb\xbf" + encoded
    charset = (
        f"; charset={rng.choice([str.lower, str.upper])(page.site.charset)}" if page.declared in ("header", "both") else ""
    )
    transfer, content = rng.choices(list(ENCODINGS), ENCODINGS.values())[0]
    body = _compressed(content, encoded)
    headers = [
        ("Date", "Fri, 20 Nov 2026 10:00:00 GMT"),
        ("Server", rng.choice(["nginx", "Apache/2.4.62", "cloudfront", "Microsoft-IIS/10.0"])),
        ("Content-Type", "text/html" + charset),
    ]
    if content:
        headers.append(("Content-Encoding", content))
    if transfer:
        headers.append(("Transfer-Encoding", transfer))
        body = _chunked(body, rng)
    else:
        headers.append(("Content-Length", str(len(body))))
    headers += [
        ("Vary", "Accept-Encoding"),
        ("Cache-Control", f"max-age={rng.randint(0, 3600)}"),
        ("ETag", f'"{rng.getrandbits(64):x}"'),
        ("Set-Cookie", f"sid={rng.getrandbits(96):x}; Path=/; HttpOnly; Secure"),
        ("X-Request-Id", f"{rng.getrandbits(64):016x}"),
    ]
    return Response(headers, body, text)


def _compressed(encoding, body):
    if encoding == "gzip":
        return gzip.compress(body, 6, mtime=0)
    if encoding == "deflate":
        return zlib.compress(body, 6)
    if encoding == "br":
        return brotli.compress(body, quality=5)
    if encoding == "zstd":
        return zstandard.ZstdCompressor(level=3).compress(body)
    return body


def _chunked(body, rng):
    parts, at = [], 0
    while at < len(body):
        length = rng.choice([1024, 4096, 8192, 16384, rng.randint(1, 20_000)])
        chunk = body[at : at + length]
        parts.append(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        at += length
    return b"".join([*parts, b"0\r\n\r\n"])


def plain_response(body):
    """The response of a file, whose server knows no charset."""
    charset = detect_encoding(body, from_html_meta=True) or "utf-8"
    headers = [("Content-Type", "text/html"), ("Content-Length", str(len(body)))]
    return Response(headers, body, bytes_to_str(body, charset, errors="replace"))
