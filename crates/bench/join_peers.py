"""Joins with another program (a peer): join_peers.py METHOD K THREADS BATCH ARCHIVE PAIRS.

Prints the seconds of the join, without building the tables of the batch and loading the data, which favours the peer.
Writes its pairs: row in the batch, index in the archive, distance.
"""

import sys
import time

import numpy as np

method, k, threads, batch_file, archive_file, pairs_file = sys.argv[1:]
k, threads = int(k), int(threads)
batch = np.fromfile(batch_file, dtype="<u8")
archive = np.fromfile(archive_file, dtype="<u8")


def duckdb_blocks():
    """Joins on each of k + 1 blocks: fingerprints within k bits agree on one of them."""
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    b = {"fp": batch, "i": np.arange(len(batch), dtype="u4")}
    f = {"fp": archive, "i": np.arange(len(archive), dtype="u4")}
    connection.execute("create table b as select * from b")
    connection.execute("create table f as select * from f")
    del b, f
    bits = 64 // (k + 1)
    joins = [
        f"""select b.i as new, f.i as base, bit_count(xor(b.fp, f.fp)) as distance from f join b
            on (f.fp >> {bits * block}) & {2**bits - 1} = (b.fp >> {bits * block}) & {2**bits - 1}
            where bit_count(xor(b.fp, f.fp)) <= {k}"""
        for block in range(k + 1)
    ]
    begin = time.perf_counter()
    found = connection.execute(" union ".join(joins)).fetchnumpy()
    seconds = time.perf_counter() - begin
    return seconds, (found["new"], found["base"], found["distance"])


def faiss_range_search(index):
    """Indexes the batch, and searches it with every fingerprint of the archive."""
    import faiss

    faiss.omp_set_num_threads(threads)
    index.add(batch.view("u1").reshape(-1, 8))
    queries = archive.view("u1").reshape(-1, 8)
    begin = time.perf_counter()
    # Finds distances below the radius, which is exclusive.
    limits, distances, labels = index.range_search(queries, k + 1)
    seconds = time.perf_counter() - begin
    base = np.repeat(np.arange(len(archive)), np.diff(limits.astype("i8")))
    return seconds, (labels, base, distances)


def run():
    if method == "duckdb":
        return duckdb_blocks()
    import faiss

    if method == "faiss-multi-hash":
        return faiss_range_search(faiss.IndexBinaryMultiHash(64, k + 1, 64 // (k + 1)))
    if method == "faiss-flat":
        return faiss_range_search(faiss.IndexBinaryFlat(64))
    sys.exit(f"unknown method {method}")


seconds, columns = run()
np.stack([np.asarray(column).astype("<u4") for column in columns], axis=1).tofile(pairs_file)
print(seconds)
