"""One peer's join: peers.py WAY K THREADS BATCH ARCHIVE PAIRS.

Prints the seconds of the join alone (tables of the batch built and data loaded beforehand, which is in the peer's
favour) and writes its pairs: batch row, archive index, distance.
"""

import sys
import time

import numpy as np

way, k, threads, batch_file, archive_file, pairs_file = sys.argv[1:]
k, threads = int(k), int(threads)
batch = np.fromfile(batch_file, dtype="<u8")
archive = np.fromfile(archive_file, dtype="<u8")


def duckdb_blocks():
    """Pigeonhole: within k = 3, one of four blocks of 16 bits is equal."""
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


def faiss_ranges(index):
    """The batch is indexed, the archive's fingerprints are the queries."""
    import faiss

    faiss.omp_set_num_threads(threads)
    index.add(batch.view("u1").reshape(-1, 8))
    queries = archive.view("u1").reshape(-1, 8)
    begin = time.perf_counter()
    # Distances below the radius.
    limits, distances, labels = index.range_search(queries, k + 1)
    seconds = time.perf_counter() - begin
    base = np.repeat(np.arange(len(archive)), np.diff(limits.astype("i8")))
    return seconds, (labels, base, distances)


def run():
    if way == "duckdb":
        return duckdb_blocks()
    import faiss

    if way == "faiss-multi-hash":
        return faiss_ranges(faiss.IndexBinaryMultiHash(64, k + 1, 64 // (k + 1)))
    if way == "faiss-flat":
        return faiss_ranges(faiss.IndexBinaryFlat(64))
    sys.exit(f"unknown way {way}")


seconds, columns = run()
np.stack([np.asarray(column).astype("<u4") for column in columns], axis=1).tofile(pairs_file)
print(seconds)
