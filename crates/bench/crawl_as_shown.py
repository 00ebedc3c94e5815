"""Compares the visible text of each page of a crawl with what a browser shows: crawl_as_shown.py [--program PATH]
[--worst N] [--pages N] FILE.warc.gz...

Needs `chromium`, and the packages of requirements-crawl.txt. The browser has the page and its headers alone: scripts are on, so
that `<noscript>` is hidden, but none runs, and nothing else is loaded. What it shows is the body's
`innerText`. Words are runs of letters and digits, of East Asian scripts each character; recall is the share of the browser's
words that the program has, too, precision that of the program's which the browser shows, each by its number of times. Prints both
for each host, their means over the pages, and the pages that are worst.
"""

import argparse
import base64
import collections
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import select
import subprocess
import tempfile

import brotli
import zstandard
from warcio.archiveiterator import ArchiveIterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORD = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]|[^\W_\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]+")
# As the browser gets them; lengths and codings are of the file.
DROPPED = {"content-encoding", "transfer-encoding", "content-length", "content-security-policy", "content-disposition",
           "refresh", "link", "x-frame-options"}
# Which warcio lacks.
DECODERS = {"br": brotli.decompress, "zstd": lambda body: zstandard.ZstdDecompressor().decompressobj().decompress(body)}
TEXT = "(document.body ?? document.documentElement).innerText"
# Seconds in which a page must be there.
PATIENCE = 5
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def browser_module():
    """`.ci/browser`, which speaks to the browser."""
    loader = importlib.machinery.SourceFileLoader("browser", str(ROOT / ".ci" / "browser"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("browser", loader))
    loader.exec_module(module)
    return module


def responses(path):
    """The record id, URL, headers and body of each page of HTML."""
    with open(path, "rb") as file:
        for record in ArchiveIterator(file):
            headers = record.http_headers
            if record.rec_type != "response" or headers is None or headers.get_statuscode() != "200":
                continue
            if not (headers.get_header("Content-Type") or "").lower().startswith(("text/html", "application/xhtml+xml")):
                continue
            kept = [(name, value) for name, value in headers.headers if name.lower() not in DROPPED]
            decode = DECODERS.get(headers.get_header("Content-Encoding"), bytes)
            if decode is not bytes:
                headers.remove_header("Content-Encoding")
            body = decode(record.content_stream().read())
            url = record.rec_headers.get_header("WARC-Target-URI").strip("<>")
            yield record.rec_headers.get_header("WARC-Record-ID").strip("<>"), url, kept, body


class Shown:
    """A tab in which each page is opened."""

    def __init__(self, browser):
        self.browser = browser
        browser.call("Fetch.enable", patterns=[{"urlPattern": "*"}])

    def text(self, url, headers, body):
        """The text of a page; none if it does not load."""
        self.tell("Page.navigate", url=url)
        given = [{"name": name, "value": value} for name, value in [*headers, ("Content-Security-Policy", POLICY)]]
        page = {"responseCode": 200, "responseHeaders": given, "body": base64.b64encode(body).decode()}
        if not self.wait_for(lambda event: event.get("method") == "Page.loadEventFired", page):
            return None
        asked = self.tell("Runtime.evaluate", expression=TEXT, returnByValue=True)
        answer = self.wait_for(lambda event: event.get("id") == asked)
        return answer and answer.get("result", {}).get("result", {}).get("value")

    def tell(self, method, **parameters):
        """Sends a call, and returns its number."""
        self.browser.last += 1
        self.browser.send({"id": self.browser.last, "method": method, "params": parameters, "sessionId": self.browser.session})
        return self.browser.last

    def wait_for(self, is_it, page=None):
        """The message that is waited for; none if it does not come. The first request gets the page, all others nothing."""
        while self.browser.rest or select.select([self.browser.answers], [], [], PATIENCE)[0]:
            event = self.browser.receive()
            if event.get("method") == "Fetch.requestPaused":
                request = event["params"]["requestId"]
                if page:
                    self.tell("Fetch.fulfillRequest", requestId=request, **page)
                else:
                    self.tell("Fetch.failRequest", requestId=request, errorReason="Aborted")
                    if event["params"]["resourceType"] == "Document":
                        # The page goes to another one.
                        return None
                page = None
            elif is_it(event) and not page:
                return event
        return None


def words(text):
    return collections.Counter(WORD.findall(text.casefold()))


def own_texts(program, path):
    """What the program reads, by record."""
    command = [program, "sql", "select id, text from pages", "--table", f"pages={path}", "--json", "--quiet"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {row["id"].strip("<>"): row["text"] or "" for row in map(json.loads, lines)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default=str(ROOT / "target/release/dedup-job"))
    parser.add_argument("--worst", type=int, default=5)
    parser.add_argument("--pages", type=int, default=1 << 60)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    module = browser_module()
    rows = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = module.Browser(profile)
        try:
            module.attach(browser)
            shown = Shown(browser)
            for path in args.files:
                own = own_texts(args.program, path)
                for id, url, headers, body in responses(path):
                    if len(rows) == args.pages:
                        break
                    text = shown.text(url, headers, body)
                    if text is None or id not in own:
                        print(f"{'not read' if text else 'not shown'}: {url}")
                        continue
                    theirs, ours = words(text), words(own[id])
                    both = sum((theirs & ours).values())
                    if sum(theirs.values()):
                        recall = both / sum(theirs.values())
                        precision = both / max(1, sum(ours.values()))
                        rows.append((url, recall, precision, theirs - ours, ours - theirs))
        finally:
            browser.process.kill()
            browser.process.wait()
    hosts = collections.defaultdict(list)
    for row in rows:
        hosts[row[0].split("/")[2]].append(row)
    hosts["all"] = rows
    print(f"{'pages':>6} {'recall':>7} {'precision':>9}  host")
    for host, pages in hosts.items():
        recall, precision = (sum(page[at] for page in pages) / len(pages) for at in (1, 2))
        print(f"{len(pages):>6} {recall:>7.4f} {precision:>9.4f}  {host}")
    for at, name, rest in (1, "recall", 3), (2, "precision", 4):
        print(f"\nleast {name}:")
        for page in sorted(rows, key=lambda page: page[at])[: args.worst]:
            print(f"{page[at]:.4f} {page[0]}\n       {' '.join(word for word, _ in page[rest].most_common(12))}")


if __name__ == "__main__":
    main()
