"""Reads edited files with the program and with independent readers, which must see the same documents: Python's csv and json,
warcio, pyarrow; for the words that pages of HTML and XHTML show, justhtml, Python's expat and the rules of html_shown.py.

Usage: readers_agree.py PROGRAM [FORMAT...] [--files N | --seconds N] [--seed N]

Where the independent reader refuses a file, or docs/formats.md has a rule of its own, the program may say what it likes, but it
ends with a known exit code. The first file on which they differ is kept, and its path printed; at the end, why pages were not
compared. $DEDUP_JOB_TEST_CRAWLS may name a directory with more pages.
"""

import argparse
import collections
import csv
import io
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from warcio.archiveiterator import ArchiveIterator

import html_edits
import html_shown

WORDS = ["fox", "the quick", "naïve", "Лиса", "狐狸", "a,b", "x;y", "tab\there", "it's", "“quoted”", "\u00ad", "🦊", "7", "", "null", "  ",
         "back\\slash", "e\u0301", "<p>", "&amp;", "two\nlines", "\u2028", "=1+1", "#", "'", "-", "id", "text"]
INSERTED = [b",", b";", b"\t", b"|", b'"', b'""', b"\n", b"\r", b"\r\n", b"\\", b"\\u00e9", b"\\ud83d\\ude00", b"{", b"}", b"[", b"]", b":",
            b" ", b"null", b"1e5", b"-0", b"0", b"\xef\xbb\xbf", b"\xc3\xa9", b"'", b"id", b"text", b"#", b"/", b"\x0b", b"\xc2\xa0"]


def text_of(rng, most=12):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(most)))


def edited(rng, data):
    """With some pieces inserted, removed, repeated and exchanged."""
    data = bytearray(data)
    for _ in range(rng.choice([0, 0, 1, 1, 2, 4])):
        at, length = rng.randrange(len(data) + 1), rng.choice([1, 1, 2, 5, 40])
        match rng.randrange(4):
            case 0:
                data[at:at] = rng.choice(INSERTED)
            case 1:
                del data[at : at + length]
            case 2:
                data[at:at] = data[at : at + length]
            case _:
                data[at : at + 1] = rng.choice(INSERTED)
    return bytes(data)


def decoded(data):
    """The text of bytes that are UTF-8 without doubt."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\ufeff" in text or "\0" in text else text


def make_csv(rng):
    delimiter, quoting = rng.choice(",;\t|"), rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    out = io.StringIO()
    rows = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=rng.choice(["\n", "\r\n", "\r"]))
    columns = ["id", "text"] + [f"c{number}" for number in range(rng.randrange(3))]
    rng.shuffle(columns)
    rows.writerow(columns)
    for number in range(rng.randrange(1, 12)):
        rows.writerow([f"d{number}" if name == "id" else text_of(rng) for name in columns])
    return ".csv", edited(rng, out.getvalue().encode())


def expected_csv(data):
    text = decoded(data)
    # The quotes of these files are found by the number of fields.
    if text is None or '\\"' in text:
        return None
    header = next(iter(io.StringIO(text, newline="")), "")
    outside = header.split('"')[::2]
    counts = {delimiter: sum(part.count(delimiter) for part in outside) for delimiter in ",;\t|"}
    delimiter = max(counts, key=counts.get)
    if list(counts.values()).count(counts[delimiter]) > 1 or (delimiter == "\t" and '"' in text):
        return None
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if row]
    except csv.Error:
        return None
    header, *rows = rows
    if sorted(header) != sorted(set(header)) or not {"id", "text"} <= set(header) or {"fp"} & set(header) or not rows:
        return None
    if any(len(row) != len(header) for row in rows):
        return None
    id, text = header.index("id"), header.index("text")
    return None if any(not row[id] for row in rows) else [(row[id], row[text]) for row in rows]


def make_jsonl(rng):
    lines, id = [], rng.choice([int, "d{}".format, "0{}".format, lambda number: -number])
    for number in range(rng.randrange(1, 12)):
        fields = {"id": id(number), "text": text_of(rng)}
        for other in range(rng.randrange(3)):
            fields[f"c{other}"] = rng.choice([1, 1.5, None, True, [1, {"x": "]"}], {"text": "inner", "id": 3}, text_of(rng)])
        items = list(fields.items())
        rng.shuffle(items)
        separators = rng.choice([(",", ":"), (", ", ": "), (" ,\t", " : ")])
        lines.append(json.dumps(dict(items), ensure_ascii=rng.random() < 0.5, separators=separators))
    return ".jsonl", edited(rng, rng.choice(["\n", "\r\n"]).join(lines).encode())


def expected_jsonl(data):
    text = decoded(data)
    if text is None or text.lstrip(" \t\r\n").startswith("["):
        return None
    rows, kinds = [], set()
    for line in text.split("\n"):
        if not line.strip(" \t\r"):
            continue
        try:
            row = json.loads(line, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            return None
        if not isinstance(row, dict) or not isinstance(row.get("text"), str) or isinstance(row.get("id"), bool):
            return None
        if not isinstance(row.get("id"), (str, int)) or (isinstance(row["id"], int) and not -(2**63) <= row["id"] < 2**63):
            return None
        # If the first id is an integer, the others must be, too.
        kinds.add(re.fullmatch(r"-?(0|[1-9][0-9]{,18})", str(row["id"])) is None)
        rows.append((str(row["id"]), row["text"]))
    # Half of a pair becomes other characters.
    if any("\ud800" <= letter <= "\udfff" for row in rows for cell in row for letter in cell):
        return None
    return rows if len(kinds) == 1 and all(id for id, _ in rows) else None


def make_warc(rng):
    out = io.BytesIO()
    version = rng.choice(["1.0", "1.1"])

    def header(name, value):
        name = rng.choice([name, name, name.lower(), name.upper()])
        return f"{name}:{rng.choice([' ', '', '  ', chr(9)])}{value}{rng.choice(['', '', ' '])}\r\n"

    for number in range(rng.randrange(1, 8)):
        kind = rng.choice(["response", "response", "request", "metadata", "warcinfo", "resource", "revisit", "conversion"])
        status = rng.choice(["200 OK", "200", "200 ", "404 Not Found", "301 Moved"])
        body = text_of(rng).encode()
        if kind in ("response", "revisit"):
            fields = [header("Content-Type", rng.choice(["text/plain", "text/plain; charset=utf-8", "TEXT/PLAIN"]))]
            if rng.random() < 0.3:
                at = rng.randrange(len(body) + 1)
                pieces = [piece for piece in (body[:at], body[at:]) if piece]
                body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
                fields.append(header("Transfer-Encoding", "chunked"))
            else:
                fields.append(header("Content-Length", len(body)))
            rng.shuffle(fields)
            block = f"HTTP/1.1 {status}\r\n{''.join(fields)}\r\n".encode() + body
            kind_of_block = "application/http; msgtype=response"
        else:
            block, kind_of_block = body, rng.choice(["text/plain", "application/warc-fields"])
        fields = [
            header("WARC-Type", kind),
            header("WARC-Record-ID", f"<urn:uuid:{rng.getrandbits(128):032x}>"),
            header("WARC-Target-URI", f"https://site.example/{number}"),
            header("WARC-Date", "2026-01-30T10:00:00Z"),
            header("Content-Type", kind_of_block),
            header("Content-Length", len(block)),
        ]
        rng.shuffle(fields)
        out.write(f"WARC/{version}\r\n{''.join(fields)}\r\n".encode() + block + b"\r\n\r\n")
    return ".warc", out.getvalue()


def expected_warc(data):
    rows = []
    for record in ArchiveIterator(io.BytesIO(data)):
        id = record.rec_headers.get_header("WARC-Record-ID").strip("<>")
        if record.rec_type == "response":
            if record.http_headers.get_statuscode() != "200":
                continue
        elif record.rec_type not in ("resource", "conversion") or record.content_type != "text/plain":
            continue
        text = record.content_stream().read().decode()
        if text.strip(" \t\r\n"):
            rows.append((id, text))
    return rows or None


def make_parquet(rng):
    rows = rng.randrange(1, 300)
    ids = rng.choice([pa.string(), pa.large_string(), pa.string_view(), pa.int64(), pa.int32(), pa.uint32(), pa.int16()])
    texts = [None if rng.random() < 0.1 else text_of(rng) for _ in range(rows)]
    numbers = range(rows)
    id = pa.array([str(number) + "x" for number in numbers], ids) if "string" in str(ids) else pa.array(numbers, ids)
    text = pa.array(texts, rng.choice([pa.string(), pa.large_string(), pa.string_view()]))
    if rng.random() < 0.3 and text.type != pa.string_view():
        text = text.dictionary_encode()
    columns = {"id": id, "text": text, "other": pa.array([[number] * (number % 3) for number in numbers])}
    names = list(columns)
    rng.shuffle(names)
    out = io.BytesIO()
    pq.write_table(
        pa.table({name: columns[name] for name in names}), out, row_group_size=rng.choice([1, 7, 100, 1000]),
        data_page_version=rng.choice(["1.0", "2.0"]), version=rng.choice(["1.0", "2.4", "2.6"]),
        compression=rng.choice(["none", "snappy", "zstd", "gzip", "brotli", "lz4"]), use_dictionary=rng.random() < 0.5,
        data_page_size=rng.choice([16, 1000, 1 << 20]), write_statistics=rng.random() < 0.5,
        write_page_index=rng.random() < 0.5, write_page_checksum=rng.random() < 0.5, store_schema=rng.random() < 0.5,
    )
    return ".parquet", out.getvalue()


def expected_parquet(data):
    table = pq.read_table(io.BytesIO(data), columns=["id", "text"])
    return list(zip(map(str, table["id"].to_pylist()), table["text"].to_pylist()))


def same_rows(found, expected):
    return sorted((id, text or "") for id, text in found) == sorted((id, text or "") for id, text in expected)


PAGES = html_edits.found()
# By the name in the Encoding Standard, that in Python.
ENCODINGS = {"windows-1252": "cp1252", "windows-1251": "cp1251", "koi8-r": "koi8-r", "shift_jis": "cp932", "gb18030": "gb18030"}
DECLARED = re.compile(rb"<meta charset=([\w-]+)>")


def make_html(rng):
    page = html_edits.edited(rng, html_edits.cut(rng, rng.choice(PAGES)))
    page = page.replace("\n", rng.choice(["\n", "\n", "\n", "\r\n", "\r"]))
    if rng.random() < 0.1:
        name = rng.choice(list(ENCODINGS))
        page = f"<!doctype html><!--{' ' * rng.choice([0, 2000])}--><meta charset={name}>{page}"
        return ".html", page.encode(ENCODINGS[name], "xmlcharrefreplace")
    if rng.random() < 0.1:
        return ".html", ("\ufeff" + page).encode(rng.choice(["utf-8", "utf-16-le", "utf-16-be"]))
    return ".html", page.encode()


def make_xhtml(rng):
    page = html_edits.cut(rng, rng.choice(PAGES))
    return ".xhtml", html_edits.edited_xml(rng, html_shown.tree(page)[0]).encode(rng.choice(["utf-8", "utf-8", "utf-8-sig"]))


def expected_html(data):
    for mark, encoding in [(b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")]:
        if data.startswith(mark):
            return html_shown.html_words(data[len(mark) :].decode(encoding))
    declared = DECLARED.search(data)
    return html_shown.html_words(data.decode(ENCODINGS[declared[1].decode()] if declared else "utf-8"))


def expected_xhtml(data):
    return html_shown.xhtml_words(data.decode("utf-8-sig")), False


def same_words(found, expected):
    ((_, text),), (words, moved) = found, expected
    text = html_shown.words(text or "")
    if sorted(text) == sorted(words):
        return True
    if moved:
        # Words may have met others.
        return sorted("".join(text)) == sorted("".join(words))
    # Tags that the standard ignores end words.
    ends, expected_ends = (set(itertools.accumulate(map(len, every))) for every in (text, words))
    return "".join(text) == "".join(words) and expected_ends <= ends


READERS = {
    "csv": (make_csv, expected_csv, same_rows),
    "jsonl": (make_jsonl, expected_jsonl, same_rows),
    "warc": (make_warc, expected_warc, same_rows),
    "parquet": (make_parquet, expected_parquet, same_rows),
    "html": (make_html, expected_html, same_words),
    "xhtml": (make_xhtml, expected_xhtml, same_words),
}


def read(program, path):
    """What the program reads, and what it says."""
    command = [program, "sql", "select id, text from t", "--table", f"t={path}", "--json", "--quiet", "--threads", "1"]
    ended = subprocess.run(command, capture_output=True)
    if ended.returncode:
        return None, f"exit code {ended.returncode}: {ended.stderr.decode()}"
    rows = map(json.loads, ended.stdout.decode().split("\n")[:-1])
    # A column of which all values are null is left out.
    return [(str(row["id"]).strip("<>"), row.get("text")) for row in rows], ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--files", type=int, default=1 << 60)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("formats", nargs="*", default=list(READERS))
    args = parser.parse_args()
    rng, end = random.Random(args.seed), time.monotonic() + args.seconds
    counts = dict.fromkeys(args.formats, 0)
    compared, reasons = dict(counts), collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        while sum(counts.values()) < args.files and time.monotonic() < end:
            name = rng.choice(list(counts))
            make, expect, same_as = READERS[name]
            ending, data = make(rng)
            path = Path(scratch) / f"x{ending}"
            path.write_bytes(data)
            try:
                expected = expect(data)
            except html_shown.NotComparable as reason:
                expected = None
                reasons[f"{name}, {reason}"] += 1
            found, said = read(args.program, path)
            counts[name] += 1
            known = not said or any(f"exit code {code}:" in said for code in (64, 65))
            same = expected is None or (found is not None and same_as(found, expected))
            compared[name] += expected is not None
            if not (known and same):
                kept = Path(tempfile.mkdtemp()) / path.name
                os.rename(path, kept)
                print(f"{kept}: {said}\nfound:    {found}\nexpected: {expected}")
                sys.exit(1)
    print(", ".join(f"{name}: {counts[name]} files, {compared[name]} compared" for name in counts))
    for reason, count in reasons.most_common():
        print(f"{count} not compared: {reason}")


main()
