"""Makes a crawl with planted near-duplicates: crawl_pages.py --corpora DIR --out DIR [--pages N] [--seed N] [--samples N].

Needs the packages of requirements-crawl.txt. The articles are those of the corpora peps.parquet, rust-book-zh.parquet and
unrelated.parquet; the pages around them, made by the modules in the folder crawl, are those of 24 sites with 14 templates.
Equal arguments make equal pages.

Writes to --out:

- pages.warc.gz: the crawl, as warcio writes it; pages.warc.zst and pages-dictionary.warc.zst: the same records in Zstandard
  frames;
- pages.wet.gz: the visible text of each page, as a conversion record;
- pages.parquet: the same pages; `id` is the id of the response record, `html` the page in UTF-8;
- articles.jsonl: the article of each page without all that stands around it, which no extractor sees: `id` is the page's
  address;
- truth.jsonl: the pairs of pages with the same article, `reason` being what differs: url_a, url_b, id_a, id_b, reason, edits;
- counts.json: the number of records by kind, and of bytes;
- samples/: with --samples N, the first N pages of each site as files, to look at.
"""

import argparse
import collections
import json
import pathlib

from crawl import articles, files, http, plan


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpora", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--pages", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=int, default=0)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    pages = plan.plan(args.pages, articles.load(args.corpora, args.seed), args.seed)
    ids, seen = {}, collections.Counter()
    crawl = files.Files(args.out, args.seed)
    with open(args.out / "articles.jsonl", "w") as texts:
        for each in pages:
            page = each.page
            response = http.respond(page)
            ids[page.number] = crawl.add(page.url, response, page.site.language)
            crawl.add_beside()
            texts.write(json.dumps({"id": page.url, "text": page.article.text}, ensure_ascii=False) + "\n")
            seen[page.site.host] += 1
            if seen[page.site.host] <= args.samples:
                folder = args.out / "samples"
                folder.mkdir(exist_ok=True)
                (folder / f"{page.site.host}-{seen[page.site.host]}.html").write_bytes(response.text.encode(page.site.charset))
    counts = crawl.close()
    reasons = collections.Counter()
    with open(args.out / "truth.jsonl", "w") as lines:
        for a, b, reason, edits in plan.truth(pages):
            reasons[reason] += 1
            pair = {
                "url_a": a.url,
                "url_b": b.url,
                "id_a": ids[a.number],
                "id_b": ids[b.number],
                "reason": reason,
                "edits": edits,
            }
            lines.write(json.dumps(pair) + "\n")
    assert len({each.page.url for each in pages}) == len(pages), "two pages with one address"
    # Written last: its presence says that all files are complete.
    counts |= {"pairs": dict(reasons), "pages_by_site": dict(seen), "seed": args.seed, "pages": args.pages}
    (args.out / "counts.json").write_text(json.dumps(counts, indent=1) + "\n")


main()
