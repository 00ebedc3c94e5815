"""Scores decisions about the pages of crawl_sites.py by their truth: crawl_sites_score.py DIR --decisions FILE... [--json]
[--examples N].

Needs pyarrow. The files are those of `dedup-job run --decisions`, of one day each or of all days, or other Parquet files with
the columns `id`, `kept` and `duplicate_of`, the id of a kept page. Pages without a decision count as kept.

Prints for each scenario and in total:

- pages, and of them copies: the pages but one of each content;
- dropped: rightly, if the page that it is a duplicate of has the same content, or else wrongly;
- lost: contents of which no page is kept;
- missed: kept pages but one of each content that is kept.

The last rows are of the dropped pages that are of one host with the kept one, and of the others.

With --examples N, also the addresses of N pages of each scenario that were dropped wrongly, and of those they were dropped for.
"""

import argparse
import collections
import json
import pathlib
import sys

import pyarrow.parquet as pq

COLUMNS = ["pages", "copies", "dropped", "rightly", "wrongly", "lost", "missed"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--decisions", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--examples", type=int, default=0)
    args = parser.parse_args()
    pages, decisions = {}, {}
    for path in sorted(args.dir.glob("day-*.parquet")):
        table = pq.read_table(path, columns=["id", "content", "scenario", "url"])
        pages.update((row["id"], row) for row in table.to_pylist())
    for path in args.decisions:
        for row in pq.read_table(path, columns=["id", "kept", "duplicate_of"]).to_pylist():
            if row["id"] in decisions:
                sys.exit(f"{path}: there are two decisions about {row['id']}")
            if row["id"] not in pages or not row["kept"] and row["duplicate_of"] not in pages:
                sys.exit(f"{path}: {row} is not about pages of {args.dir}")
            decisions[row["id"]] = row
    if undecided := len(pages) - len(decisions):
        print(f"{undecided} pages have no decision and count as kept", file=sys.stderr)
    scores, pairs = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    contents, kept, examples = collections.defaultdict(set), collections.defaultdict(set), collections.defaultdict(list)
    for id, page in pages.items():
        name, decision = page["scenario"], decisions.get(id, {"kept": True})
        score = scores[name]
        score["pages"] += 1
        contents[name].add(page["content"])
        if decision["kept"]:
            score["missed"] += 1
            kept[name].add(page["content"])
            continue
        other = pages[decision["duplicate_of"]]
        if not decisions.get(other["id"], {"kept": True})["kept"]:
            sys.exit(f"{id} is a duplicate of {other['id']}, which is not kept")
        rightly = other["content"] == page["content"]
        score["dropped"] += 1
        score["rightly" if rightly else "wrongly"] += 1
        within = page["url"].split("/")[2] == other["url"].split("/")[2]
        for_pair = pairs["within one host" if within else "across hosts"]
        for_pair["dropped"] += 1
        for_pair["rightly" if rightly else "wrongly"] += 1
        if not rightly and len(examples[name]) < args.examples:
            examples[name].append((id, page["url"], other["id"], other["url"]))
    for name, score in scores.items():
        # No content is in two scenarios.
        score["copies"] = score["pages"] - len(contents[name])
        score["lost"] = len(contents[name] - kept[name])
        score["missed"] -= len(kept[name])
    rows = dict(sorted(scores.items())) | {"total": sum(scores.values(), collections.Counter())}
    rows |= dict(sorted(pairs.items()))
    columns = {name: COLUMNS[2:5] if name in pairs else COLUMNS for name in rows}
    rows = {name: {column: score[column] for column in columns[name]} for name, score in rows.items()}
    if args.json:
        print(json.dumps(rows | ({"examples": examples} if args.examples else {})))
        return
    print(f"{'':16}" + "".join(f"{column:>9}" for column in COLUMNS))
    for name, score in rows.items():
        print(f"{name:16}" + "".join(f"{score.get(column, ''):>9}" for column in COLUMNS))
    for name, found in examples.items():
        for id, url, other, address in found:
            print(f"{name}: {id} {url} was dropped for {other} {address}")


main()
