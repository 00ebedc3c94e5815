"""Measures how fast other programs (peers) fingerprint texts on one core: features.py DOCS.parquet METHOD...

Texts are in memory beforehand, in the form that the peer takes. Prints a line of JSON for each method: the seconds of
the fastest of three runs, and the documents and bytes of text. Peers written in Python get only the first 5 MB.
"""

import importlib.metadata
import json
import os
import sys
import time

# Before a peer is imported and counts the cores.
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import run_peers

LIMIT = 5_000_000
RUNS = 3


def clickhouse(function):
    def prepare(texts):
        from chdb.session import Session

        session = Session()
        corpus = pa.table({"text": texts})
        # All sessions of a process share their tables.
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
        # The first call imports the peer.
        function(strings[:1])
        return lambda: function(strings)

    return prepare


# Package; function that prepares a run; whether it gets all documents.
METHODS = {
    "clickhouse-wordShingleSimHash": ("chdb-core", clickhouse("wordShingleSimHash"), True),
    "clickhouse-wordShingleSimHashUTF8": ("chdb-core", clickhouse("wordShingleSimHashUTF8"), True),
    "clickhouse-ngramSimHash": ("chdb-core", clickhouse("ngramSimHash"), True),
    "daft-simhash": ("daft", daft, True),
    "simhash-pybind": ("simhash-pybind", python(run_peers.simhash_pybind), False),
    "text-dedup": ("text-dedup", python(run_peers.text_dedup), False),
    "datasketch-minhash-128": ("datasketch", python(run_peers.minhashes), False),
}


def first_documents(texts):
    """Returns the first documents, at most LIMIT bytes of them but at least one document."""
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
    package, prepare, gets_all = METHODS[method]
    texts = documents if gets_all else first_documents(documents)
    run = prepare(texts)
    result = {
        "method": method,
        "version": importlib.metadata.version(package),
        "seconds": min(measure(run) for _ in range(RUNS)),
        "documents": len(texts),
        "bytes": pc.sum(pc.binary_length(texts)).as_py(),
    }
    print(json.dumps(result), flush=True)
