"""Measures the module beside the command and beside other packages: bench.py OUT.json [--texts N] [--new N] [--base N].

    fingerprint   N texts from pyarrow, beside `dedup-job fingerprint` on the same texts in Parquet
    pairs         N new fingerprints against N archived ones, beside `dedup-job run` on the same in Parquet
    peers         fewer texts, one core: rensa, datasketch, simhash-pybind and Daft, where they are installed

Rates are texts or fingerprints a second, the best of three. The answers' counts stand beside the times.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import tempfile
import time

import numpy
import pyarrow
import pyarrow.parquet

import dedup_job
from dedup_job._process import command

RUNS = 3
PEER_TEXTS = 20_000
WORDS = 200


def best(work):
    """The result of work, and its least seconds."""
    seconds = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - begin)
    return result, min(seconds)


def make_texts(count, random):
    """Texts of words by Zipf's law, a tenth of them near-copies."""
    vocabulary = numpy.array([f"w{number:x}" for number in range(50_000)])
    ranks = random.zipf(1.3, size=(count, WORDS)) % len(vocabulary)
    copies = random.integers(0, count, count // 10)
    ranks[: len(copies)] = ranks[copies]
    ranks[: len(copies), 0] = 7
    return [" ".join(words) for words in vocabulary[ranks]]


def run(*arguments):
    done = subprocess.run([*command(), "--json", *map(str, arguments)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def bench_fingerprint(count, random, directory):
    parts = [make_texts(min(100_000, count - start), random) for start in range(0, count, 100_000)]
    texts = pyarrow.chunked_array([pyarrow.array(part, pyarrow.large_string()) for part in parts])
    path = directory / "texts.parquet"
    table = pyarrow.table({"id": numpy.arange(count), "text": texts})
    pyarrow.parquet.write_table(table, path, row_group_size=100_000)
    made, seconds = best(lambda: dedup_job.fingerprint(texts))
    output = directory / "fingerprints.parquet"
    _, of_command = best(lambda: run("fingerprint", "--input", path, "--output", output))
    stored = pyarrow.parquet.read_table(output).sort_by("id")["fp"].to_numpy().astype(numpy.int64)
    assert (stored.view(numpy.uint64) == made.data).all()
    return {
        "texts": count,
        "bytes": texts.nbytes,
        "module": count / seconds,
        "command": count / of_command,
        "ratio": of_command / seconds,
    }


def bench_pairs(new_count, base_count, random, directory):
    base = random.integers(0, 2**64, base_count, dtype=numpy.uint64)
    new = random.integers(0, 2**64, new_count, dtype=numpy.uint64)
    near = new_count // 10
    new[:near] = base[:near] ^ (numpy.uint64(1) << random.integers(0, 64, near, dtype=numpy.uint64))
    for name, values in [("new", new), ("base", base)]:
        table = pyarrow.table({"id": numpy.arange(len(values)), "fp": numpy.sort(values.view(numpy.int64))})
        pyarrow.parquet.write_table(table, directory / f"{name}.parquet")
    pairs, seconds = best(lambda: dedup_job.pairs(new, base, 3))
    paths = ["--new", directory / "new.parquet", "--base", directory / "base.parquet"]
    summary, of_command = best(lambda: run("run", *paths, "--no-within", "--output", directory / "hits.parquet"))
    assert len(pairs) == summary["hits"]
    return {
        "new": new_count,
        "base": base_count,
        "pairs": len(pairs),
        "module": base_count / seconds,
        "command": base_count / of_command,
        "ratio": of_command / seconds,
    }


def shingles(text):
    words = text.split()
    return [" ".join(words[at : at + 3]) for at in range(len(words) - 2)]


def of_rensa(texts):
    import rensa

    made = []
    for text in texts:
        minhash = rensa.RMinHash(num_perm=128, seed=42)
        minhash.update(shingles(text))
        made.append(minhash.digest())
    return made


def of_datasketch(texts):
    import datasketch

    made = []
    for text in texts:
        minhash = datasketch.MinHash(num_perm=128)
        minhash.update_batch([shingle.encode() for shingle in shingles(text)])
        made.append(minhash)
    return made


def of_simhash_pybind(texts):
    import simhash

    return [simhash.compute([simhash.unsigned_hash(s.encode()) for s in shingles(text)]) for text in texts]


def of_daft(texts):
    import daft

    frame = daft.from_pydict({"text": texts})
    return frame.select(frame["text"].minhash(num_hashes=128, ngram_size=3, seed=42)).collect()


PEERS = {"rensa": of_rensa, "datasketch": of_datasketch, "simhash-pybind": of_simhash_pybind, "daft": of_daft}


def bench_peers(random):
    """Texts a second from a list of str to signatures, on one thread where that can be set."""
    texts = make_texts(PEER_TEXTS, random)
    rows = {}
    for name, work in [
        ("dedup-job, fingerprint", lambda texts: dedup_job.fingerprint(texts, threads=1)),
        ("dedup-job, fingerprint and sketch", lambda texts: dedup_job.sketch(texts, bits=128, threads=1)),
        *PEERS.items(),
    ]:
        try:
            _, seconds = best(lambda: work(texts))
        except ImportError as error:
            rows[name] = {"missing": str(error)}
            continue
        version = dedup_job.__version__ if name.startswith("dedup-job") else importlib.metadata.version(name)
        rows[name] = {"version": version, "texts_per_second": len(texts) / seconds}
        print(f"{name:36} {len(texts) / seconds:12,.0f} texts/s")
    return {"texts": PEER_TEXTS, "words": WORDS, "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--new", type=int, default=1_000_000)
    parser.add_argument("--base", type=int, default=10_000_000)
    asked = parser.parse_args()
    random = numpy.random.default_rng(1)
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        record = {
            "date": time.strftime("%Y-%m-%d"),
            "machine": platform.processor() or platform.machine(),
            "cores": len(os.sched_getaffinity(0)),
            "python": platform.python_version(),
            "fingerprint": bench_fingerprint(asked.texts, random, directory),
            "pairs": bench_pairs(asked.new, asked.base, random, directory),
            "peers": bench_peers(random),
        }
    print(json.dumps({name: record[name] for name in ("fingerprint", "pairs")}, indent=2))
    asked.out.write_text(json.dumps(record, indent=2) + "\n")


main()
