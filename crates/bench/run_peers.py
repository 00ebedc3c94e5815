"""Runs other programs (peers) on a corpus, on one core: run_peers.py CORPUS.parquet OUT_DIR.

Writes the fingerprints of peers that make some (fingerprints.parquet), the pairs that MinHash LSH finds
(pairs.parquet), and last the package, settings and seconds of each method (peers.json). A peer whose package is missing
or too old is left out, and peers.json says why. Documents are numbered as in the corpus, from 0.
"""

import importlib.metadata
import json
import math
import os
import pathlib
import re
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq

CLICKHOUSE = [
    f"{features}SimHash{variant}"
    for features in ("wordShingle", "ngram")
    for variant in ("", "UTF8", "CaseInsensitive", "CaseInsensitiveUTF8")
]
THRESHOLDS = (0.7, 0.8, 0.9, 0.95)
PERMUTATIONS = 128
RUNS = 3
# Seconds after which a run is not repeated.
LONG = 10

FINGERPRINTS = pa.schema({"method": pa.string(), "row": pa.int32(), "fp": pa.uint64()})
PAIRS = pa.schema({"method": pa.string(), "a": pa.int32(), "b": pa.int32()})

# Kana and Han, but not Hangul, whose words are separated by spaces.
cjk = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def shingles(text, size):
    """Returns shingles of words, or of characters if the text has more CJK characters than words.

    A text shorter than a shingle is one shingle.
    """
    tokens, glue = text.split(), " "
    if len(cjk.findall(text)) > len(tokens):
        tokens, glue = text, ""
    return [glue.join(tokens[i : i + size]).encode() for i in range(max(1, len(tokens) - size + 1))]


def simhash_pybind(texts):
    import simhash

    # Its own hash (from MD5) and its own default shingle size of 4; its own shingles would need a list of words.
    return [simhash.compute([simhash.unsigned_hash(s) for s in shingles(text, 4)]) for text in texts]


def text_dedup(texts):
    from text_dedup.simhash import embed_func
    from text_dedup.utils import SimHashArgs, xxh3_64_digest

    rows = [
        embed_func(text, row, ngram=SimHashArgs.ngram, permutations=[], hash_func=xxh3_64_digest)
        for row, text in enumerate(texts)
    ]
    return [int.from_bytes(row["__signature__"], "big") for row in rows]


def minhashes(texts):
    from datasketch import MinHash

    return MinHash.bulk((set(shingles(text, 3)) for text in texts), num_perm=PERMUTATIONS)


def daft_simhash(corpus):
    import daft

    frame = daft.from_arrow(corpus)
    return frame.select("row", daft.col("text").simhash().alias("fp")).sort("row").to_arrow()["fp"]


def clickhouse(corpus, function, size):
    import chdb

    query = f"SELECT {function}(text, {size}) AS fp FROM Python(corpus) ORDER BY row SETTINGS max_threads = 1"
    return chdb.query(query, "ArrowTable")["fp"]


def minhash_pairs(signatures, threshold):
    from datasketch import MinHashLSH

    index = MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
    pairs = []
    for row, signature in enumerate(signatures):
        pairs += [(earlier, row) for earlier in index.query(signature)]
        index.insert(row, signature)
    return sorted(pairs)


def estimated(signatures, pairs, threshold):
    return [(a, b) for a, b in pairs if signatures[a].jaccard(signatures[b]) >= threshold]


def timed(function, *arguments):
    """Returns the result, and the seconds of the fastest of three runs, or of one that takes long."""
    best = math.inf
    for _ in range(RUNS):
        begin = time.perf_counter()
        result = function(*arguments)
        seconds = time.perf_counter() - begin
        best = min(best, seconds)
        if seconds > LONG:
            break
    return result, best


def write(tables, schema, file):
    pq.write_table(pa.concat_tables([schema.empty_table(), *tables]), file, compression="zstd")


def main():
    # Before a peer is imported and counts the cores.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    corpus_file, out = sys.argv[1], pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    text = pq.read_table(corpus_file, columns=["text"])["text"].fill_null("")
    corpus = pa.table({"row": pa.array(range(len(text)), pa.int32()), "text": text})
    texts = text.to_pylist()
    peers, fingerprints, pairs = [], [], []

    def starts(peer, package, function, *arguments):
        """Makes an untimed first call, which imports the package and starts its engine. Returns whether that works."""
        try:
            function(*arguments)
            importlib.metadata.version(package)
        except (ImportError, AttributeError) as error:
            peers.append({"peer": peer, "left_out": f"{package} is missing or too old: {error}"})
            return False
        return True

    def method(name, package, settings, seconds):
        version = importlib.metadata.version(package)
        entry = {"method": name, "package": package, "version": version, "settings": settings, "seconds": seconds}
        peers.append(entry)
        print(json.dumps(entry), flush=True)

    def fingerprint(name, package, settings, function, *arguments):
        column, seconds = timed(function, *arguments)
        method(name, package, settings, seconds)
        names = pa.array([name] * len(texts), pa.string())
        column = column if isinstance(column, pa.ChunkedArray) else pa.array(column, pa.uint64())
        fingerprints.append(pa.table([names, corpus["row"], column], schema=FINGERPRINTS))

    def pair(name, settings, found, seconds):
        method(name, "datasketch", settings, seconds)
        first, second = zip(*found) if found else ((), ())
        pairs.append(pa.table([[name] * len(found), list(first), list(second)], schema=PAIRS))

    if starts("ClickHouse", "chdb-core", clickhouse, corpus.slice(0, 1), CLICKHOUSE[0], 3):
        for function in CLICKHOUSE:
            words = function.startswith("word")
            for size in (3, 1, 2) if words else (3,):
                name = f"clickhouse-{function}" + ("" if size == 3 else f"-{size}")
                unit = "words of at least 4 bytes" if words else "characters" if "UTF8" in function else "bytes"
                case = "case ignored (bit 5 of all bytes set)" if "Case" in function else "case kept"
                settings = f"shingles of {size} {unit}, {case}, CRC-32C (32 bits, the upper 32 are 0)"
                fingerprint(name, "chdb-core", settings, clickhouse, corpus, function, size)
    if starts("Daft", "daft", daft_simhash, corpus.slice(0, 1)):
        settings = "its defaults: n-grams of 3 characters with their counts, xxHash3, case kept"
        fingerprint("daft-simhash", "daft", settings, daft_simhash, corpus)
    if starts("text-dedup", "text-dedup", text_dedup, texts[:1]):
        settings = "its defaults: set of the n-grams of 3 lower-cased characters, xxHash3; no features below 5 characters"
        fingerprint("text-dedup", "text-dedup", settings, text_dedup, texts)
    if starts("simhash-pybind", "simhash-pybind", simhash_pybind, texts[:1]):
        settings = "shingles of 4 words (its default), of 4 characters in texts mostly CJK, its hash (of MD5), case kept"
        fingerprint("simhash-pybind", "simhash-pybind", settings, simhash_pybind, texts)
    if starts("MinHash", "datasketch", minhashes, texts[:1]):
        signatures, signing = timed(minhashes, texts)
        for threshold in THRESHOLDS:
            settings = f"{PERMUTATIONS} permutations, shingles of 3 words, of 3 characters in texts mostly CJK, case kept"
            found, seconds = timed(minhash_pairs, signatures, threshold)
            name = f"minhash-lsh-{PERMUTATIONS}"
            pair(f"{name}@{threshold}", f"{settings}; pairs that share a band", found, signing + seconds)
            similar, more = timed(estimated, signatures, found, threshold)
            settings += f"; pairs that share a band and are estimated at {threshold} or more"
            pair(f"{name}-estimate@{threshold}", settings, similar, signing + seconds + more)

    write(fingerprints, FINGERPRINTS, out / "fingerprints.parquet")
    write(pairs, PAIRS, out / "pairs.parquet")
    (out / "peers.json").write_text(json.dumps(peers, indent=2) + "\n")


if __name__ == "__main__":
    main()
