"""Measures another program (a peer) on the files of a crawl, on one core: crawl_peers.py METHOD FILE [--runs N] [--pages N].

Prints a line of JSON: the seconds of the fastest of N runs, bytes of the file and of what was read from it, MB/s of both,
counts, the version, and the peak memory of this process. Files are read from the page cache: they are read once beforehand.
The time begins when the file is opened; starting Python and importing packages is left out.

METHOD:

- records: fastwarc iterates over all records, of every type, and parses the HTTP headers of none (records-http: of all);
- payloads: fastwarc reads the HTML of all pages and decodes encodings and charset, and nothing else happens;
- plain, main: the same, then resiliparse's extract_plain_text without and with main_content; the texts are dropped, nothing
  is hashed;
- trafilatura: the same, then trafilatura.extract, on --pages pages that are evenly spread over the file (200 by default);
  `seconds_of_all` extrapolates by the characters of HTML;
- inflate-zlib, inflate-gzip, inflate-fastwarc: only decompress the file, by zlib's objects, the module gzip, and fastwarc's
  GzipReader. The rate of decompressing WET against which dedup-job is measured is the fastest of the three;
- wet: fastwarc iterates over all records of a WET file and decodes their texts, and nothing else happens.
"""

import argparse
import gzip
import importlib.metadata
import io
import json
import os
import time
import zlib

# Before a peer is imported and counts the cores.
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

CHUNK = 1 << 20
#: Pages for trafilatura by default.
TRAFILATURA_PAGES = 200


def records(path, parse_http=False):
    from fastwarc.warc import ArchiveIterator

    count = size = 0
    for record in ArchiveIterator(path, parse_http=parse_http):
        count += 1
        size += record.content_length
    return {"records": count, "bytes_read": size}


def html_pages(path):
    """The HTML of each page, as text: responses with the status 200 and an HTML type."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    # fastwarc 2.0.1 decodes with auto_decode="all", but the iteration ends, without an error, after a response that is both
    # chunked and gzip-compressed. So bodies are decoded here, by libraries in C and Rust.
    for record in ArchiveIterator(path, record_types=WarcRecordType.response, parse_http=False):
        if not record.is_http:
            continue
        record.parse_http()
        headers = record.http_headers
        if headers.status_code != 200 or not (record.http_content_type or "").startswith("text/html"):
            continue
        body = record.reader.read()
        if (headers.get("Transfer-Encoding") or "").lower() == "chunked":
            body = dechunked(body)
        body = decoded(headers.get("Content-Encoding"), body)
        charset = record.http_charset or detect_encoding(body, from_html_meta=True)
        yield bytes_to_str(body, charset or "utf-8", errors="replace")


def dechunked(body):
    from fastwarc.stream_io import ChunkedReader

    return ChunkedReader(io.BytesIO(body)).read()


def decoded(encoding, body):
    if not encoding:
        return body
    if encoding in ("gzip", "deflate"):
        return zlib.decompress(body, 47)
    if encoding == "br":
        import brotli

        return brotli.decompress(body)
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj().decompress(body)


def extract(path, function):
    count = size = text_size = without = 0
    for html in html_pages(path):
        text = function(html)
        count += 1
        size += len(html)
        text_size += len(text)
        without += not text
    return {"pages": count, "characters_read": size, "characters_of_text": text_size, "without_text": without}


def plain(path, **options):
    from resiliparse.extract.html2text import extract_plain_text

    return extract(path, lambda html: extract_plain_text(html, **options))


def trafilatura(path, wanted):
    import trafilatura

    sizes = [len(html) for html in html_pages(path)]
    step = max(1, len(sizes) // wanted)
    some = [html for at, html in enumerate(html_pages(path)) if at % step == 0][:wanted]
    total, measured = sum(sizes), sum(map(len, some))
    begin = time.perf_counter()
    without = sum(not trafilatura.extract(html) for html in some)
    seconds = time.perf_counter() - begin
    return {
        "pages": len(some),
        "pages_of_file": len(sizes),
        "characters_read": measured,
        "without_text": without,
        "seconds": seconds,
        "seconds_of_all": seconds * total / measured,
    }


def inflate_zlib(path):
    size = 0
    with open(path, "rb") as file:
        member, left = zlib.decompressobj(31), b""
        # Small parts, because what follows a member is copied for each member.
        while chunk := left or file.read(1 << 16):
            size += len(member.decompress(chunk))
            left = member.unused_data
            if member.eof:
                member = zlib.decompressobj(31)
    return {"bytes_read": size}


def inflate(file):
    size = 0
    while chunk := file.read(CHUNK):
        size += len(chunk)
    return {"bytes_read": size}


def inflate_gzip(path):
    with gzip.open(path) as file:
        return inflate(file)


def inflate_fastwarc(path):
    from fastwarc.stream_io import GzipReader

    return inflate(GzipReader(path, buffer_size=CHUNK))


def wet(path):
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    count = size = 0
    for record in ArchiveIterator(path, record_types=WarcRecordType.conversion, parse_http=False):
        count += 1
        size += len(record.reader.read().decode())
    return {"records": count, "characters_read": size}


METHODS = {
    "records": ("fastwarc", records),
    "records-http": ("fastwarc", lambda path: records(path, parse_http=True)),
    "payloads": ("fastwarc", lambda path: extract(path, lambda html: html)),
    "plain": ("resiliparse", plain),
    "main": ("resiliparse", lambda path: plain(path, main_content=True)),
    "inflate-zlib": (None, inflate_zlib),
    "inflate-gzip": (None, inflate_gzip),
    "inflate-fastwarc": ("fastwarc", inflate_fastwarc),
    "wet": ("fastwarc", wet),
    "trafilatura": ("trafilatura", None),
}


def peak_memory():
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("file")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--pages", type=int, default=TRAFILATURA_PAGES)
    args = parser.parse_args()
    package, run = METHODS[args.method]
    with open(args.file, "rb") as file:
        while file.read(CHUNK):
            pass
    best = None
    if args.method == "trafilatura":
        # One run: it takes as long as all others together.
        best = trafilatura(args.file, args.pages)
    else:
        for _ in range(args.runs):
            begin = time.perf_counter()
            result = run(args.file)
            result["seconds"] = time.perf_counter() - begin
            best = min(best or result, result, key=lambda each: each["seconds"])
    seconds = best.get("seconds_of_all", best["seconds"])
    size = os.path.getsize(args.file)
    best |= {
        "method": args.method,
        "version": package and f"{package} {importlib.metadata.version(package)}",
        "file_bytes": size,
        "file_megabytes_per_second": size / 1e6 / seconds,
        "peak_memory_bytes": peak_memory(),
    }
    if "bytes_read" in best:
        best["megabytes_per_second"] = best["bytes_read"] / 1e6 / seconds
    print(json.dumps(best))


main()
