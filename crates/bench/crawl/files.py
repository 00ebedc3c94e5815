"""Writes pages as crawlers do: WARC with one gzip member a record, or one Zstandard frame; WET; and Parquet.

The records are made by warcio. Besides the pages stand the other records that a crawl has: requests, metadata, redirects,
errors, robots.txt, DNS lookups, revisits, images, documents.
"""

import base64
import collections
import hashlib
import io
import random
import struct
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from resiliparse.extract.html2text import extract_plain_text
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

#: Records beside the pages, and how many there are for each page.
BESIDE = {
    "redirect": 0.05,
    "not_found": 0.03,
    "robots": 0.02,
    "dns": 0.02,
    "revisit": 0.03,
    "image": 0.03,
    "pdf": 0.005,
    "json": 0.01,
}
#: Rows of a row group of the Parquet file: some tens of megabytes.
GROUP_ROWS = 500
#: Bytes of the Zstandard dictionary.
DICTIONARY = 110_000


class Files:
    """The files of a crawl, in a directory."""

    def __init__(self, directory, seed):
        self.directory = directory
        self.rng = random.Random(f"records {seed}")
        self.date = 0
        self.counts = collections.Counter()
        self.gz = open(directory / "pages.warc.gz", "wb")
        self.wet = open(directory / "pages.wet.gz", "wb")
        self.zst = open(directory / "pages.warc.zst", "wb")
        self.writers = [WARCWriter(self.gz, gzip=True), WARCWriter(self.wet, gzip=True)]
        self.compressor = zstandard.ZstdCompressor(level=3)
        self.frames = []
        schema = pa.schema([("id", pa.string()), ("url", pa.string()), ("html", pa.large_string())])
        self.parquet = pq.ParquetWriter(directory / "pages.parquet", schema, compression="zstd")
        self.rows = []
        self.last = None
        for writer, name in zip(self.writers, ["pages.warc.gz", "pages.wet.gz"]):
            self._warcinfo(writer, name)

    def _id(self):
        return f"<urn:uuid:{uuid.UUID(int=self.rng.getrandbits(128), version=4)}>"

    def _now(self):
        self.date += self.rng.randint(0, 3)
        hours, seconds = divmod(36_000 + self.date, 3600)
        return f"2026-11-{20 + hours // 24:02}T{hours % 24:02}:{seconds // 60:02}:{seconds % 60:02}Z"

    def _warcinfo(self, writer, name):
        info = {"software": "warcio", "format": "WARC File Format 1.0", "isPartOf": "bench-crawl", "robots": "obey"}
        record = writer.create_warcinfo_record(name, info)
        record.rec_headers.replace_header("WARC-Record-ID", self._id())
        record.rec_headers.replace_header("WARC-Date", self._now())
        writer.write_record(record)
        self.counts["warcinfo"] += 1

    def _write(self, kind, url, record_type, headers, http=None, payload=b"", content_type=None):
        """Writes a record to the files .warc.gz and .warc.zst; `http` is a status line and headers."""
        record_id = headers.get("WARC-Record-ID") or self._id()
        headers = {"WARC-Record-ID": record_id, "WARC-Date": self._now()} | headers

        def make(writer):
            status = http and StatusAndHeaders(http[0], http[1], protocol=http[2] if len(http) > 2 else "HTTP/1.1")
            return writer.create_warc_record(
                url,
                record_type,
                payload=io.BytesIO(payload),
                warc_content_type=content_type or "",
                http_headers=status,
                warc_headers_dict=dict(headers),
            )

        self.writers[0].write_record(make(self.writers[0]))
        plain = io.BytesIO()
        writer = WARCWriter(plain, gzip=False)
        writer.write_record(make(writer))
        frame = self.compressor.compress(plain.getvalue())
        self.frames.append((self.zst.tell(), len(frame)))
        self.zst.write(frame)
        self.counts[kind] += 1
        self.counts["warc_bytes"] += len(plain.getvalue())
        return record_id

    def add(self, url, response, language="en"):
        """Adds a page: its request, response and metadata; its text to WET; its HTML to Parquet. Returns the response's id."""
        host, _, path = url.split("://", 1)[1].partition("/")
        record_id = self._id()
        about = {
            "WARC-Record-ID": record_id,
            "WARC-IP-Address": f"192.0.2.{self.rng.randint(1, 254)}",
            "WARC-Identified-Payload-Type": "text/html",
        }
        request = (
            "GET /" + path + " HTTP/1.1",
            [("Host", host), ("User-Agent", "bench-crawl/1.0"), ("Accept", "text/html"), ("Accept-Encoding", "br,gzip")],
            "",
        )
        self._write(
            "request", url, "request", {"WARC-Concurrent-To": record_id}, (request[0].split(" ", 1)[1], request[1], "GET")
        )
        self._write("page", url, "response", about, ("200 OK", response.headers), response.body)
        metadata = (
            f'fetchTimeMs: {self.rng.randint(20, 3000)}\r\nlanguages-cld2: {{"reliable":true,"languages":["{language}"]}}\r\n'
        )
        self._write(
            "metadata",
            url,
            "metadata",
            {"WARC-Concurrent-To": record_id},
            payload=metadata.encode(),
            content_type="application/warc-fields",
        )
        text = extract_plain_text(response.text).encode()
        wet = self.writers[1].create_warc_record(
            url,
            "conversion",
            payload=io.BytesIO(text),
            warc_content_type="text/plain",
            warc_headers_dict={
                "WARC-Record-ID": self._id(),
                "WARC-Date": self._now(),
                "WARC-Refers-To": record_id,
                "WARC-Identified-Content-Language": language,
            },
        )
        self.writers[1].write_record(wet)
        self.counts["wet_text_bytes"] += len(text)
        self.counts["html_bytes"] += len(response.text.encode())
        self.rows.append({"id": record_id, "url": url, "html": response.text})
        if len(self.rows) == GROUP_ROWS:
            self._flush()
        self.last = (url, record_id, response)
        return record_id

    def add_beside(self):
        """Adds the records that stand beside a page."""
        for kind, share in BESIDE.items():
            if self.rng.random() < share:
                getattr(self, "_" + kind)(*self.last)

    def _redirect(self, url, _, __):
        status = self.rng.choice(["301 Moved Permanently", "302 Found", "308 Permanent Redirect"])
        headers = [("Location", url), ("Content-Type", "text/html"), ("Content-Length", "41")]
        self._write(
            "redirect",
            url.replace("https:", "http:", 1),
            "response",
            {},
            (status, headers),
            b"<html><body>The page moved</body></html>\n",
        )

    def _not_found(self, url, _, response):
        body = b"<html><head><title>404</title></head><body><h1>Not found</h1><p>The page does not exist.</p></body></html>"
        headers = [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body)))]
        self._write("not_found", f"{url}/missing", "response", {}, ("404 Not Found", headers), body)

    def _robots(self, url, _, __):
        body = b"User-agent: *\r\nDisallow: /search\r\nCrawl-delay: 2\r\n"
        address = "/".join(url.split("/")[:3]) + "/robots.txt"
        self._write(
            "robots",
            address,
            "response",
            {},
            ("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))]),
            body,
        )

    def _dns(self, url, _, __):
        host = url.split("/")[2]
        self._write(
            "dns",
            f"dns:{host}",
            "response",
            {},
            payload=f"20261120100000\n{host}. 300 IN A 192.0.2.7\n".encode(),
            content_type="text/dns",
        )

    def _revisit(self, url, record_id, response):
        digest = base64.b32encode(hashlib.sha1(response.body).digest()).decode()
        headers = {
            "WARC-Profile": "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest",
            "WARC-Refers-To": record_id,
            "WARC-Refers-To-Target-URI": url,
            "WARC-Payload-Digest": f"sha1:{digest}",
        }
        self._write("revisit", url, "revisit", headers, ("200 OK", response.headers))

    def _image(self, url, _, __):
        body = b"\xff\xd8\xff\xe0\x00\x10JFIF" + self.rng.randbytes(self.rng.randint(4_000, 60_000))
        self._write(
            "image",
            f"{url}.jpg",
            "response",
            {},
            ("200 OK", [("Content-Type", "image/jpeg"), ("Content-Length", str(len(body)))]),
            body,
        )

    def _pdf(self, url, _, __):
        body = b"%PDF-1.7\n" + self.rng.randbytes(self.rng.randint(50_000, 300_000))
        headers = [("Content-Type", "application/pdf"), ("Content-Length", str(len(body) * 2))]
        self._write("pdf", f"{url}.pdf", "response", {"WARC-Truncated": "length"}, ("200 OK", headers), body)

    def _json(self, url, _, __):
        body = b'{"items":[' + b",".join(b'{"id":%d,"ok":true}' % self.rng.getrandbits(40) for _ in range(200)) + b"]}"
        self._write(
            "json",
            f"{url}?format=json",
            "response",
            {},
            ("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]),
            body,
        )

    def _flush(self):
        if self.rows:
            self.parquet.write_table(pa.Table.from_pylist(self.rows, schema=self.parquet.schema))
            self.rows = []

    def close(self):
        """Closes the files, writes .warc.zst with a dictionary, and returns the counts of records by kind."""
        self._flush()
        for each in (self.gz, self.wet, self.zst, self.parquet):
            each.close()
        self._with_dictionary()
        return dict(self.counts)

    def _with_dictionary(self):
        """Copies the .warc.zst to one with a dictionary, which stands in its first frame."""
        expand = zstandard.ZstdDecompressor()
        with (
            open(self.directory / "pages.warc.zst", "rb") as source,
            open(self.directory / "pages-dictionary.warc.zst", "wb") as target,
        ):

            def record(place):
                source.seek(place[0])
                return expand.decompress(source.read(place[1]))

            samples = [record(place) for place in self.frames[:: max(1, len(self.frames) // 400)]]
            dictionary = zstandard.train_dictionary(DICTIONARY, samples)
            compressed = zstandard.ZstdCompressor(level=10).compress(dictionary.as_bytes())
            target.write(struct.pack("<II", 0x184D2A5D, len(compressed)) + compressed)
            compressor = zstandard.ZstdCompressor(level=3, dict_data=dictionary)
            for place in self.frames:
                target.write(compressor.compress(record(place)))
