"""Extracts the text of every page by another program: crawl_texts.py METHOD PAGES.parquet TEXTS.jsonl.

METHOD is resiliparse, resiliparse-main or trafilatura. Writes a line of JSON for each page: id (its address) and text. Prints
a line of JSON: seconds, pages, pages without text, and the package's version.
"""

import importlib.metadata
import json
import sys
import time

import pyarrow.parquet as pq


def resiliparse(**options):
    from resiliparse.extract.html2text import extract_plain_text

    return lambda html: extract_plain_text(html, **options)


def trafilatura():
    import trafilatura

    return lambda html: trafilatura.extract(html) or ""


METHODS = {
    "resiliparse": ("resiliparse", resiliparse),
    "resiliparse-main": ("resiliparse", lambda: resiliparse(main_content=True)),
    "trafilatura": ("trafilatura", trafilatura),
}


def main():
    method, pages, texts = sys.argv[1:]
    package, prepare = METHODS[method]
    extract = prepare()
    seconds, count, empty = 0.0, 0, 0
    with open(texts, "w") as out:
        for batch in pq.ParquetFile(pages).iter_batches(100, columns=["url", "html"]):
            for row in batch.to_pylist():
                begin = time.perf_counter()
                text = extract(row["html"])
                seconds += time.perf_counter() - begin
                count += 1
                empty += not text.strip()
                out.write(json.dumps({"id": row["url"], "text": text}, ensure_ascii=False) + "\n")
    about = {
        "method": method,
        "version": importlib.metadata.version(package),
        "seconds": seconds,
        "pages": count,
        "without_text": empty,
    }
    print(json.dumps(about))


main()
