"""Writes files for the tests of WARC files, by warcio: an independent writer. Usage: warc_files.py DIRECTORY

pages.warc.gz, pages.warc: a crawl with pages, and records that are no documents
next.warc.gz: the same pages, of the next day
pages.wet.gz: texts of the pages
pages.jsonl: the same pages, as a reader of the crawl sees them: id, url, html
"""

import gzip
import io
import json
import sys
from pathlib import Path

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

directory = Path(sys.argv[1])

ARTICLE = " ".join(f"word{number} of the article" for number in range(60))
OTHER = " ".join(f"other{number} thing entirely" for number in range(60))


def page(article, advert, day):
    return (
        f"<!doctype html><html><head><title>News</title><script>if (a < b) {{ track('{advert}') }}</script></head><body>"
        f"<nav><a href='/'>Home {advert}</a></nav><main><h1>News &amp; more</h1><p>{article}</p></main>"
        f"<footer>{day} visited {len(advert) * 7} times</footer></body></html>"
    )


pages = [
    ("https://a.example/1", page(ARTICLE, "shoes", "Monday")),
    ("https://b.example/1", page(ARTICLE, "a house by the sea with many rooms", "Tuesday")),
    ("https://a.example/2", page(OTHER, "shoes", "Monday")),
    ("https://c.example/ü", page(ARTICLE.replace("word", "wörd"), "cars", "Friday")),
]


def write(path, compressed, date="2026-01-30T10:00:00Z"):
    documents = []
    with open(path, "wb") as file:
        writer = WARCWriter(file, gzip=compressed)

        def record(kind, uri, payload, status="200 OK", headers=(), **options):
            http = StatusAndHeaders(status, list(headers), protocol="HTTP/1.1") if kind in ("response", "revisit") else None
            made = writer.create_warc_record(uri, kind, payload=io.BytesIO(payload), http_headers=http, **options)
            made.rec_headers.replace_header("WARC-Date", date)
            writer.write_record(made)
            return made.rec_headers.get_header("WARC-Record-ID").strip("<>")

        writer.write_record(writer.create_warcinfo_record("x.warc.gz", {"software": "test"}))
        html = ("Content-Type", "text/html; charset=utf-8")
        for number, (url, text) in enumerate(pages):
            record("request", url, b"GET / HTTP/1.1\r\n\r\n", warc_content_type="application/http; msgtype=request")
            payload, headers = text.encode(), [html]
            if number == 1:
                payload = gzip.compress(payload)
                headers.append(("Content-Encoding", "gzip"))
                half = len(payload) // 2
                chunks = [payload[:half], payload[half:], b""]
                payload = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
                headers.append(("Transfer-Encoding", "chunked"))
            if number == 3:
                payload = text.encode("iso-8859-1")
                headers = [("Content-Type", "text/html; charset=iso-8859-1")]
            record_id = record("response", url, payload, headers=headers)
            documents.append({"id": record_id, "url": url, "text": text})
        record("response", "https://a.example/old", b"", "301 Moved", [("Location", "/1")])
        record("response", "https://a.example/gone", b"<p>gone", "404 Not Found", [html])
        record("response", "https://a.example/robots.txt", b"User-agent: *", headers=[("Content-Type", "text/plain")])
        record("response", "https://a.example/x.png", b"\x89PNG\0\0", headers=[("Content-Type", "image/png")])
        record("resource", "dns:a.example", b"a.example. 1.2.3.4", warc_content_type="text/dns")
        record("revisit", "https://a.example/1", b"", headers=[html])
    return documents


write(directory / "pages.warc", False)
write(directory / "next.warc.gz", True, "2026-01-31T00:00:00Z")
documents = write(directory / "pages.warc.gz", True)
(directory / "pages.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")

with open(directory / "pages.wet.gz", "wb") as file:
    writer = WARCWriter(file, gzip=True)
    for number, text in enumerate([ARTICLE, ARTICLE + " if a<b", OTHER]):
        payload = io.BytesIO(text.encode())
        uri = f"https://a.example/{number}"
        writer.write_record(writer.create_warc_record(uri, "conversion", payload=payload, warc_content_type="text/plain"))
