"""The speed of the peers' fingerprints on one core: features.py DOCS.parquet METHOD...

The texts are in memory beforehand, in the peer's own form. Prints a line of JSON for each method: the best seconds of
three runs, and the documents and bytes of text of a run; peers in Python get the first 5 MB.
"""

import importlib.metadata
import json
import os
import sys
import time

# Before any peer counts the cores.
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import quality

LIMIT = 5_000_000
RUNS = 3


def clickhouse(function):
    def prepare(texts):
        from chdb.session import Session

        session = Session()
        corpus = pa.table({"text": texts})
        # Every session of the process has the same tables.
        session.query("DROP TABLE IF EXISTS t")
        session.query("CREATE TABLE t (text String) ENGINE = Memory")
        session.query("INSERT INTO t SELECT text FROM Python(corpus)")
        return lambda: session.query(f"SELECT sum({function}(text)) FROM t SETTINGS max_threads = 1")

    return prepare


def daft(texts):
    import daft

    frame = daft.from_arrow(pa.table({"text": texts})).collect()
    return lambda: frame.select(daft.col("text").simhash()).collect()


def python(function):
    def prepare(texts):
        strings = texts.to_pylist()
        # The import is in the first call.
        function(strings[:1])
        return lambda: function(strings)

    return prepare


# Package, how its run is prepared, whether it gets all the documents.
METHODS = {
    "clickhouse-wordShingleSimHash": ("chdb-core", clickhouse("wordShingleSimHash"), True),
    "clickhouse-wordShingleSimHashUTF8": ("chdb-core", clickhouse("wordShingleSimHashUTF8"), True),
    "clickhouse-ngramSimHash": ("chdb-core", clickhouse("ngramSimHash"), True),
    "daft-simhash": ("daft", daft, True),
    "simhash-pybind": ("simhash-pybind", python(quality.simhash_pybind), False),
    "text-dedup": ("text-dedup", python(quality.text_dedup), False),
    "datasketch-minhash-128": ("datasketch", python(quality.minhashes), False),
}


def first(texts):
    """The documents before the one that passes the limit, at least one."""
    total, count = 0, 0
    for size in pc.binary_length(texts).to_pylist():
        total += size
        if total > LIMIT:
            break
        count += 1
    return texts.slice(0, max(1, count))


def measure(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


documents = pq.read_table(sys.argv[1], columns=["text"])["text"].fill_null("")
for method in sys.argv[2:]:
    package, prepare, everything = METHODS[method]
    texts = documents if everything else first(documents)
    run = prepare(texts)
    result = {
        "method": method,
        "version": importlib.metadata.version(package),
        "seconds": min(measure(run) for _ in range(RUNS)),
        "documents": len(texts),
        "bytes": pc.sum(pc.binary_length(texts)).as_py(),
    }
    print(json.dumps(result), flush=True)
