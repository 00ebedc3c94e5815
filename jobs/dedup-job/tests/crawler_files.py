"""Writes the same two pages as each crawler writes them: its headers, codings and records of its own. Usage:
crawler_files.py DIRECTORY

DIRECTORY/NAME.warc.gz, or NAME.warc.wet.gz, for each crawler, and expected.json: by file name, how many records are no documents, by
reason. Written from the crawlers' sources and files, by hand: no library puts right what is odd in them.
"""

import base64
import gzip
import hashlib
import json
import sys
import uuid
from pathlib import Path

directory = Path(sys.argv[1])
SITE = "https://site.example"
ARTICLE = " ".join(f"word{number} of the article" for number in range(80))
PAGES = {
    f"{SITE}/fox": f"<!doctype html><html><head><title>Fox</title><meta charset=utf-8>"
    f"<script>write(\"<script src='x'/>\"); hidden()</script></head><body><p>Füchse: {ARTICLE}</p></body></html>",
    f"{SITE}/owl": f"<html><head><title>Owl</title></head><body><h1>Eulen</h1><p>{ARTICLE[::-1]}</p></body></html>",
}
REVISIT = "http://netpreserve.org/warc/{}/revisit/identical-payload-digest"


def base32(data):
    return f"sha1:{base64.b32encode(hashlib.sha1(data).digest()).decode()}"


def hexadecimal(data):
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def chunked(body):
    middle = len(body) // 2
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (body[:middle], body[middle:])) + b"0\r\n\r\n"


def lines(*fields):
    return "".join(field + "\r\n" for field in fields)


def http(body, *headers, status="HTTP/1.1 200 OK"):
    return lines(status, *headers, "").encode() + body


class Warc:
    """A file, of which each record is a gzip member."""

    def __init__(self, version, brackets=False, digest=base32):
        self.version, self.brackets, self.digest = version, brackets, digest
        self.members, self.reasons, self.count = [], {}, 0

    def record(self, kind, url, content_type, block, *headers, reason=None, date="2026-01-30T10:00:00Z"):
        self.count += 1
        id = uuid.uuid5(uuid.NAMESPACE_URL, f"{self.version} {self.count} {url}")
        uri = [f"WARC-Target-URI: <{url}>" if self.brackets else f"WARC-Target-URI: {url}"] if url else []
        fields = [f"WARC-Type: {kind}", f"WARC-Record-ID: <urn:uuid:{id}>", f"WARC-Date: {date}", *uri, *headers,
                  f"WARC-Block-Digest: {self.digest(block)}", f"Content-Type: {content_type}", f"Content-Length: {len(block)}"]
        head = lines(f"WARC/{self.version}", *fields, "").encode()
        self.members.append(gzip.compress(head + block + b"\r\n\r\n", mtime=0))
        if reason:
            self.reasons[reason] = self.reasons.get(reason, 0) + 1

    def warcinfo(self, software, *fields):
        block = lines(f"software: {software}", f"format: WARC File Format {self.version}", *fields).encode()
        self.record("warcinfo", None, "application/warc-fields", block, "WARC-Filename: crawl.warc.gz", reason="warcinfo")

    def request(self, url, *headers):
        path = url.removeprefix(SITE)
        block = lines(f"GET {path} HTTP/1.1", "Host: site.example", "User-Agent: crawler", "").encode()
        self.record("request", url, "application/http; msgtype=request", block, *headers, reason="request")

    def write(self, name, reasons):
        (directory / name).write_bytes(b"".join(self.members))
        reasons[name] = self.reasons


def browsertrix():
    """Bodies without their codings, whose headers have other names; records about each page."""
    warc = Warc("1.1", digest=hexadecimal)
    warc.warcinfo("Browsertrix-Crawler 1.7.0 (with warcio.js 2.4.4)")
    for number, (url, page) in enumerate(PAGES.items()):
        body, date = page.encode(), "2026-01-30T10:00:00.123Z"
        about = [f"WARC-Page-ID: {number}", "WARC-Resource-Type: document", 'WARC-JSON-Metadata: {"ipType":"Public"}']
        block = http(body, "content-type: text/html; charset=utf-8", "x-orig-content-encoding: br", "x-orig-transfer-encoding: chunked",
                     f"content-length: {len(body)}", status="HTTP/1.1 200")
        warc.record("response", url, "application/http; msgtype=response", block, f"WARC-Payload-Digest: {hexadecimal(body)}", *about,
                    date=date)
        warc.request(url, *about)
        shown = ARTICLE.encode()
        for kind, content_type, content in [("pageinfo", "application/json", b'{"pageid":"1","urls":{}}'), ("text", "text/plain", shown),
                                            ("textFinal", "text/plain", shown), ("view", "image/png", b"\x89PNG\r\n\x1a\n" + bytes(40)),
                                            ("thumbnail", "image/jpeg", b"\xff\xd8\xff\xe0" + bytes(40))]:
            warc.record("resource", f"urn:{kind}:{url}", content_type, content, *about, reason="of the crawler", date=date)
    warc.record("resource", "urn:fullPage:" + SITE, "image/png", b"\x89PNG\r\n\x1a\n" + bytes(40), reason="of the crawler")
    return warc


def heritrix():
    """Bodies as they came; names that were looked up, robots.txt, and metadata of each fetch."""
    warc = Warc("1.0")
    warc.warcinfo("Heritrix/3.4.0 http://crawler.archive.org", "isPartOf: basic", "robots: obey")
    warc.record("response", "dns:site.example", "text/dns", b"20260130100000\nsite.example.\t60\tIN\tA\t192.0.2.1\n",
                "WARC-IP-Address: 192.0.2.53", reason="DNS or whois")
    robots = b"User-agent: *\nAllow: /\n"
    warc.record("response", f"{SITE}/robots.txt", "application/http; msgtype=response",
                http(robots, "Content-Type: text/plain", f"Content-Length: {len(robots)}"), reason="robots.txt")
    for url, page in PAGES.items():
        body = chunked(gzip.compress(page.encode(), mtime=0))
        block = http(body, "Server: nginx", "Content-Type: text/html; charset=UTF-8", "Transfer-Encoding: chunked", "Content-Encoding: gzip")
        warc.record("response", url, "application/http; msgtype=response", block, f"WARC-Payload-Digest: {base32(body)}",
                    "WARC-IP-Address: 192.0.2.1")
        warc.request(url, "WARC-Concurrent-To: <urn:uuid:6f41b8a4-0000-4000-8000-000000000000>")
        fields = lines(f"via: {SITE}/", "hopsFromSeed: L", "fetchTimeMs: 47", f"outlink: {SITE}/owl L a/@href")
        warc.record("metadata", url, "application/warc-fields", fields.encode(), reason="metadata")
    warc.record("revisit", f"{SITE}/fox?again", "application/http; msgtype=response", http(b"", "Content-Type: text/html"),
                f"WARC-Profile: {REVISIT.format('1.0')}", "WARC-Truncated: length", reason="revisit")
    return warc


def warcprox():
    """The response before its request; with brozzler, screenshots, thumbnails and the formats of videos."""
    warc = Warc("1.0")
    warc.warcinfo("warcprox 2.6.1", "hostname: crawler")
    for url, page in PAGES.items():
        body = gzip.compress(page.encode(), mtime=0)
        block = http(body, "Content-Type: text/html", "Content-Encoding: gzip", f"Content-Length: {len(body)}")
        warc.record("response", url, "application/http;msgtype=response", block, "WARC-IP-Address: 192.0.2.1",
                    f"WARC-Payload-Digest: {base32(body)}")
        warc.request(url)
        for kind, content in [("screenshot", b"\xff\xd8\xff\xe0" + bytes(40)), ("thumbnail", b"\xff\xd8\xff\xe0" + bytes(20))]:
            warc.record("resource", f"{kind}:{url}", "image/jpeg", content, reason="of the crawler")
        warc.record("metadata", f"youtube-dl:00001:{url}", "application/vnd.youtube-dl_formats+json;charset=utf-8", b'{"entries": []}',
                    reason="metadata")
    return warc


def wget():
    """URLs in angle brackets; chunks that are joined under a header that still names them; its own log and arguments."""
    warc = Warc("1.0", brackets=True)
    warc.warcinfo("Wget/1.21.3 (linux-gnu)", 'wget-arguments: "--warc-file=crawl"', "robots: classic")
    for url, page in PAGES.items():
        warc.request(url, "WARC-IP-Address: 192.0.2.1")
        body = page.encode()
        block = http(body, "Content-Type: text/html; charset=utf-8", "Transfer-Encoding: chunked", "Connection: keep-alive")
        warc.record("response", url, "application/http;msgtype=response", block, "WARC-IP-Address: 192.0.2.1",
                    f"WARC-Payload-Digest: {base32(body)}")
    of_wget = "metadata://gnu.org/software/wget/warc"
    warc.record("metadata", f"{of_wget}/MANIFEST.txt", "text/plain", b"<urn:uuid:6f41b8a4-0000-4000-8000-000000000000>\n", reason="metadata")
    for name in ["wget_arguments.txt", "wget.log"]:
        warc.record("resource", f"{of_wget}/{name}", "text/plain", ARTICLE.encode(), reason="of the crawler")
    return warc


def pywb():
    """Bodies as they came; revisits of pages that it has."""
    warc = Warc("1.0")
    warc.warcinfo("pywb 2.8.3", 'json-metadata: {"type": "recording", "title": "A collection"}')
    for url, page in PAGES.items():
        body = gzip.compress(page.encode(), mtime=0)
        block = http(body, "Content-Type: text/html", "Content-Encoding: gzip", f"Content-Length: {len(body)}")
        warc.record("response", url, "application/http; msgtype=response", block, f"WARC-Payload-Digest: {base32(body)}",
                    "WARC-IP-Address: 192.0.2.1", 'WARC-JSON-Metadata: {"snapshot": "html"}')
        warc.request(url)
        warc.record("revisit", url, "application/http; msgtype=response", http(b"", "Content-Type: text/html"),
                    f"WARC-Profile: {REVISIT.format('1.0')}", f"WARC-Refers-To-Target-URI: {url}", "WARC-Refers-To-Date: 2026-01-30T10:00:00Z",
                    reason="revisit")
    return warc


def archivebot():
    """wpull: pages as a browser left them, under names of its own, and its log."""
    warc = Warc("1.0")
    warc.warcinfo("ArchiveBot/20260101 wpull/2.0.3", "robots: off")
    for url, page in PAGES.items():
        warc.request(url)
        body = page.encode()
        warc.record("response", url, "application/http;msgtype=response", http(chunked(body), "Content-Type: text/html;charset=utf-8",
                    "transfer-encoding: chunked", status="HTTP/1.1 200"), f"WARC-Payload-Digest: {base32(chunked(body))}")
        warc.record("resource", f"urn:X-wpull:snapshot?url={url}", "text/html", body, reason="of the crawler")
    warc.record("resource", "urn:X-wpull:log", "text/plain", ARTICLE.encode(), reason="of the crawler")
    return warc


def scoop():
    """Bodies without their codings, and what it made of the page as responses of files."""
    warc = Warc("1.1", digest=hexadecimal)
    warc.warcinfo("Scoop @ Harvard Library Innovation Lab: 0.6.0")
    for url, page in PAGES.items():
        body = page.encode()
        block = http(body, "content-type: text/html; charset=utf-8", f"content-length: {len(body)}")
        warc.record("response", url, "application/http; msgtype=response", block)
        warc.request(url)
    for name in ["dom-snapshot.html", "provenance-summary.html"]:
        block = http(PAGES[url].encode(), "content-type: text/html")
        warc.record("response", f"file:///{name}", "application/http; msgtype=response", block, reason="of the crawler")
    return warc


def common_crawl():
    """Bodies without their codings, whose headers begin with X-Crawler-; types that are guessed from the bytes."""
    warc = Warc("1.0")
    warc.warcinfo("Apache Nutch 1.21 (modified, https://github.com/commoncrawl/nutch/)", "isPartOf: CC-MAIN-2026-05", "robots: checked via crawler-commons")
    for (url, page), identified in zip(PAGES.items(), ["application/xhtml+xml", "text/x-php"]):
        warc.request(url, "WARC-IP-Address: 192.0.2.1")
        body = page.encode()
        block = http(body, "Content-Type: text/html; charset=UTF-8", "X-Crawler-Transfer-Encoding: chunked",
                     "X-Crawler-Content-Encoding: gzip", f"Content-Length: {len(body)}", status="HTTP/1.1 200 ")
        warc.record("response", url, "application/http; msgtype=response", block, "WARC-IP-Address: 192.0.2.1",
                    f"WARC-Payload-Digest: {base32(body)}", f"WARC-Identified-Payload-Type: {identified}")
        fields = lines("fetchTimeMs: 310", "charset-detected: UTF-8", 'languages-cld2: {"reliable":true}')
        warc.record("metadata", url, "application/warc-fields", fields.encode(), reason="metadata")
    return warc


def common_crawl_wet():
    """The text of each page."""
    warc = Warc("1.0")
    warc.warcinfo("ia-web-commons.1.1.10-SNAPSHOT-20260101000000", "Software-Info: ia-web-commons")
    for url, text in zip(PAGES, [f"Fox\nFüchse: {ARTICLE}", f"Owl\nEulen\n{ARTICLE[::-1]}"]):
        warc.record("conversion", url, "text/plain", text.encode(), "WARC-Refers-To: <urn:uuid:6f41b8a4-0000-4000-8000-000000000000>",
                    "WARC-Identified-Content-Language: eng,deu")
    return warc


def main():
    reasons = {}
    for crawler in [browsertrix, heritrix, warcprox, wget, pywb, archivebot, scoop, common_crawl]:
        crawler().write(f"{crawler.__name__}.warc.gz", reasons)
    common_crawl_wet().write("common_crawl.warc.wet.gz", reasons)
    (directory / "expected.json").write_text(json.dumps(reasons))


main()
