"""Finds near-duplicate source files: code_copies.py PROGRAM DIRECTORY.

The files of DIRECTORY (Rust, C, assembly, JavaScript, Python), such as the sources of the packages in cargo's registry, hold copies of
other packages, versions of one, and what generators wrote. The truth is the exact Jaccard similarity of the sets of three consecutive
tokens: words, numbers, and each sign. Half the files are also there with other operators, and nothing else changed. Prints which
share of the pairs from .8, .9 and .95 on the tokenizers find, by the settings of a run without options, which share of their pairs
is from .8 on, and how many changed files below .8 they take for the file.
"""

import collections
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile

KINDS = {".rs", ".c", ".h", ".cc", ".cpp", ".S", ".js", ".mjs", ".py", ".ts"}
# What stands for each operator in the changed files.
OTHER = {"+": "-", "-": "+", "*": "/", "/": "*", "<": ">", ">": "<", "&": "|", "|": "&", "==": "!=", "!=": "=="}
OPERATOR = re.compile(r"(?<=[\w)\]] )(==|!=|[-+*/<>&|])(?= [\w(\[])")
TOKEN = re.compile(r"\w+|[^\w\s]")
LEAST = 0.8


def shingles(text):
    tokens = TOKEN.findall(text)
    return {" ".join(tokens[at:at + 3]) for at in range(max(1, len(tokens) - 2))}


def truth(texts):
    """The pairs from LEAST on: two such sets share an element of their prefixes (Bayardo, Ma and Srikant, WWW 2007)."""
    counts = collections.Counter(shingle for text in texts for shingle in shingles(text))
    number = {shingle: at for at, (shingle, _) in enumerate(sorted(counts.items(), key=lambda each: (each[1], each[0])))}
    sets = [sorted(number[shingle] for shingle in shingles(text)) for text in texts]
    holders, pairs = collections.defaultdict(list), {}
    for a, elements in enumerate(sets):
        whole, near = set(elements), set()
        for element in elements[:len(elements) - int(-(-LEAST * len(elements) // 1)) + 1]:
            near.update(holders[element])
            holders[element].append(a)
        for b in near:
            shared = len(whole.intersection(sets[b]))
            similarity = shared / (len(whole) + len(sets[b]) - shared)
            if similarity >= LEAST:
                pairs[b, a] = similarity
    return pairs


def main():
    program, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    paths = sorted(path for path in directory.rglob("*") if path.suffix in KINDS and path.is_file())
    texts = {}
    for path in paths:
        text = path.read_bytes()
        # A file of a few lines says nothing; equal ones are one case.
        if 500 <= len(text) <= 200_000:
            texts.setdefault(text.decode("utf-8", "replace"), path)
    texts = list(texts)
    halves = texts[::2]
    changed = [OPERATOR.sub(lambda found: OTHER[found[0]], text) for text in halves]
    originals = len(texts)
    changed = {2 * at: text for at, text in enumerate(changed) if text != halves[at]}
    texts += changed.values()
    of_file = set(zip(changed, range(originals, len(texts))))
    pairs = truth(texts)
    far = {pair for pair in of_file if pair not in pairs}
    print(f"{originals:,} files, {len(changed):,} with other operators, {len(far):,} of them far; {len(pairs):,} pairs")
    print(f"{'tokenizer':<24} {'R.8':>6} {'R.9':>6} {'R.95':>6} {'P.8':>6} {'far':>6}")
    with tempfile.TemporaryDirectory() as scratch:
        documents, found = f"{scratch}/files.jsonl", f"{scratch}/pairs.csv"
        with open(documents, "w", encoding="utf-8") as lines:
            lines.writelines(json.dumps({"id": at, "text": text}) + "\n" for at, text in enumerate(texts))
        for tokenizer in ["words+cjk-grams", "code"]:
            subprocess.run(
                [program, "run", documents, "--tokenizer", tokenizer, "--output", found, "--overwrite", "--quiet"], check=True)
            with open(found, newline="") as rows:
                ours = {tuple(sorted((int(row["new_id"]), int(row["base_id"])))) for row in csv.DictReader(rows)}
            recall = [
                sum(pair in ours for pair, is_at in pairs.items() if is_at >= level)
                / max(1, sum(is_at >= level for is_at in pairs.values()))
                for level in [LEAST, 0.9, 0.95]
            ]
            precision = sum(pair in pairs for pair in ours) / max(1, len(ours))
            figures = " ".join(f"{figure:>6.3f}" for figure in [*recall, precision])
            print(f"{tokenizer:<24} {figures} {len(far & ours):>6,}")


main()
