"""Measures the module beside the command and beside other packages: bench.py OUT.json [OPTION...]; it prints a Markdown table.

    fingerprint   texts from pyarrow, beside `dedup-job fingerprint` on the same texts in Parquet
    pairs         new fingerprints against archived ones, ascending, beside `dedup-job run` on the same in Parquet
    signatures    some of the same texts, from a list of str: the module, rensa, simhash-pybind, Daft and datasketch, each in a
                  process of its own on one core, with one thread

Seconds are the best of three. The answers of module and command are compared. MB are those of texts in UTF-8, and of
fingerprints at 8 bytes.
"""

import argparse
import functools
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.parquet

import dedup_job
from dedup_job._process import command

RUNS = 3
WORDS = 200


def best(work):
    """The result of work, and its least seconds."""
    seconds = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - begin)
    return result, min(seconds)


def row(measured, program, threads, count, size, seconds):
    """A row of the table; `size` is in bytes."""
    return {
        "measured": measured,
        "program": program,
        "threads": threads,
        "count": count,
        "seconds": seconds,
        "per_second": count / seconds,
        "megabytes_per_second": size / seconds / 1e6,
    }


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


def bench_fingerprint(count, threads, random, path):
    """Writes the texts to `path`."""
    parts = [make_texts(min(100_000, count - start), random) for start in range(0, count, 100_000)]
    texts = pyarrow.chunked_array([pyarrow.array(part, pyarrow.large_string()) for part in parts])
    table = pyarrow.table({"id": numpy.arange(count), "text": texts})
    pyarrow.parquet.write_table(table, path, row_group_size=100_000)
    size = pyarrow.compute.sum(pyarrow.compute.binary_length(texts)).as_py()
    made, seconds = best(lambda: dedup_job.fingerprint(texts, threads=threads))
    output = path.with_name("fingerprints.parquet")
    arguments = ["fingerprint", "--threads", threads, "--input", path, "--output", output]
    _, of_command = best(lambda: run(*arguments))
    stored = pyarrow.parquet.read_table(output).sort_by("id")["fp"].to_numpy().astype(numpy.int64)
    assert (stored.view(numpy.uint64) == made.data).all()
    yield row("fingerprint", "module", threads, count, size, seconds)
    yield row("fingerprint", "command", threads, count, size, of_command)


def bench_pairs(new_count, base_count, threads, random, directory):
    base = random.integers(0, 2**64, base_count, dtype=numpy.uint64)
    new = random.integers(0, 2**64, new_count, dtype=numpy.uint64)
    near = new_count // 10
    new[:near] = base[:near] ^ (numpy.uint64(1) << random.integers(0, 64, near, dtype=numpy.uint64))
    # In the order of fingerprint files and archives.
    new, base = (numpy.sort(values.view(numpy.int64)).view(numpy.uint64) for values in (new, base))
    for name, values in [("new", new), ("base", base)]:
        table = pyarrow.table({"id": numpy.arange(len(values)), "fp": values.view(numpy.int64)})
        pyarrow.parquet.write_table(table, directory / f"{name}.parquet")
    pairs, seconds = best(lambda: dedup_job.pairs(new, base, 3, threads=threads))
    paths = ["--new", directory / "new.parquet", "--base", directory / "base.parquet", "--threads", threads]
    summary, of_command = best(lambda: run("run", *paths, "--no-within", "--output", directory / "hits.parquet"))
    assert len(pairs) == summary["hits"]
    measured = f"pairs with {new_count:,}"
    yield row(measured, "module", threads, base_count, 8 * base_count, seconds)
    yield row(measured, "command", threads, base_count, 8 * base_count, of_command)


def shingles(text):
    words = text.split()
    return [" ".join(words[at : at + 3]) for at in range(len(words) - 2)]


def rensa_minhash(texts, threads):
    import rensa

    made = []
    for text in texts:
        minhash = rensa.RMinHash(num_perm=128, seed=42)
        minhash.update(shingles(text))
        made.append(minhash.digest())
    return made


def datasketch_minhash(texts, threads):
    import datasketch

    made = []
    for text in texts:
        minhash = datasketch.MinHash(num_perm=128)
        minhash.update_batch([shingle.encode() for shingle in shingles(text)])
        made.append(minhash)
    return made


def pybind_simhash(texts, threads):
    import simhash

    return [simhash.compute([simhash.unsigned_hash(s.encode()) for s in shingles(text)]) for text in texts]


@functools.cache
def daft_with(threads):
    """Daft, which would take all cores, limited to this many threads: once in a process."""
    import daft

    daft.set_runner_native(num_threads=threads)
    return daft


def daft_simhash(texts, threads):
    daft = daft_with(threads)
    return daft.from_pydict({"text": texts}).select(daft.col("text").simhash()).collect()


#: What makes signatures of texts: the name in the table, the distribution, the function.
SIGNATURES = {
    "module, fingerprint": ("dedup-job", lambda texts, threads: dedup_job.fingerprint(texts, threads=threads)),
    "module, fingerprint and sketch": ("dedup-job", lambda texts, threads: dedup_job.sketch(texts, bits=128, threads=threads)),
    "rensa, minhash": ("rensa", rensa_minhash),
    "simhash-pybind": ("simhash-pybind", pybind_simhash),
    "Daft, simhash": ("daft", daft_simhash),
    "datasketch, minhash": ("datasketch", datasketch_minhash),
}


def measure_signatures(name, path, count):
    """Measures one of them in this process, and prints the result."""
    texts = pyarrow.parquet.read_table(path, columns=["text"])["text"].slice(0, count).to_pylist()
    distribution, make = SIGNATURES[name]
    try:
        version = importlib.metadata.version(distribution)
        _, seconds = best(lambda: make(texts, 1))
    except ImportError:
        print(json.dumps({"missing": distribution}))
        return
    size = sum(len(text.encode()) for text in texts)
    print(json.dumps(row("signatures", f"{name} {version}", 1, len(texts), size, seconds)))


def bench_signatures(path, count):
    """Each has one core to itself, and is told to use one thread, whatever it would start."""
    core = {min(os.sched_getaffinity(0))}
    one_thread = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS"], "1")
    for name in SIGNATURES:
        done = subprocess.run(
            [sys.executable, __file__, str(path), "--signatures-of", name, "--peer-texts", str(count)],
            stdout=subprocess.PIPE,
            check=True,
            env={**os.environ, **one_thread},
            preexec_fn=lambda: os.sched_setaffinity(0, core),
        )
        # Others may print, too.
        measured = json.loads(done.stdout.splitlines()[-1])
        if "missing" in measured:
            print(f"{measured['missing']} is not installed", file=sys.stderr)
        else:
            yield measured


def markdown(rows):
    """The table. The ratio is to the first row of the same measurement, which is the module's."""
    yield "| measured | program | threads | texts or fingerprints | seconds | a second | MB/s | time of the module |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    modules = {}
    for one in rows:
        module = modules.setdefault(one["measured"], one)
        yield (
            f"| {one['measured']} | {one['program']} | {one['threads']} | {one['count']:,} | {one['seconds']:.2f} "
            f"| {one['per_second']:,.0f} | {one['megabytes_per_second']:,.1f} "
            f"| {one['seconds'] / module['seconds']:.2f} × |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path, help="file for the rows (JSON)")
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--new", type=int, default=1_000_000)
    parser.add_argument("--base", type=int, default=10_000_000)
    parser.add_argument("--peer-texts", type=int, default=20_000, help="the texts for signatures, the first of --texts")
    parser.add_argument("--threads", type=int, help="threads, and cores, of module and command; all cores by default")
    parser.add_argument("--signatures-of", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.signatures_of:
        measure_signatures(asked.signatures_of, asked.out, asked.peer_texts)
        return
    cores = sorted(os.sched_getaffinity(0))
    threads = asked.threads or len(cores)
    # The command inherits them.
    os.sched_setaffinity(0, cores[:threads])
    random = numpy.random.default_rng(1)
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        texts = directory / "texts.parquet"
        rows = [
            *bench_fingerprint(asked.texts, threads, random, texts),
            *bench_pairs(asked.new, asked.base, threads, random, directory),
            *bench_signatures(texts, asked.peer_texts),
        ]
    record = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": platform.processor() or platform.machine(),
        "cores": len(cores),
        "python": platform.python_version(),
        "rows": rows,
    }
    print("\n".join(markdown(rows)))
    asked.out.write_text(json.dumps(record, indent=2) + "\n")


main()
