"""Looks fingerprints up with another program (a peer): lookup_peers.py METHOD K FINGERPRINTS QUERIES ANSWERS.

FINGERPRINTS and QUERIES are files of little-endian 64-bit numbers. Prints a line of JSON: latencies of one query at a time
by one thread, after a pass over the same queries; the mean when all come in one call; the memory that the index takes; the
number of answers. ANSWERS becomes a file of pairs of such numbers: the query's index, and a fingerprint within K bits of it.

METHOD is hammingbird, faiss-multi-hash, or faiss-multi-hash:NHASH,B,NFLIP with settings other than the best known.
"""

import json
import sys
import time

import numpy as np


def resident_bytes():
    """The memory of this process that is in use now."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def bytes_of(fingerprints):
    """A row of eight bytes for each fingerprint, as both libraries want them."""
    return fingerprints.view("u1").reshape(-1, 8)


def multi_hash_settings(k, count):
    """Number of hash tables, bits of a key, and bits that may be flipped in a key: the fastest of those that were tried.

    Of `nhash` keys without common bits, one differs from the query's in at most k // nhash bits: with as many flips, all
    answers are found. With about 16 times as many keys as fingerprints, most of the buckets that are visited are empty.
    """
    return 2, min(int(np.log2(count)) + 5, 32), k // 2


def available_bytes():
    """The memory that a process can still take."""
    with open("/proc/meminfo") as meminfo:
        line = next(line for line in meminfo if line.startswith("MemAvailable:"))
    return int(line.split()[1]) * 1024


class MultiHash:
    """FAISS IndexBinaryMultiHash, on one thread."""

    @staticmethod
    def bytes_each(settings):
        """About what it takes for a fingerprint at 10 million and more."""
        return 8 + 90 * settings[0] if settings[2] else 75

    def __init__(self, k, count, settings):
        import faiss

        faiss.omp_set_num_threads(1)
        self.version = faiss.__version__
        self.radius = k + 1  # Finds distances below it.
        nhash, bits, flips = settings = settings or multi_hash_settings(k, count)
        if nhash * (flips + 1) <= k or nhash * bits > 64:
            sys.exit(f"{nhash} keys of {bits} bits with {flips} flips miss answers at k = {k}")
        self.settings = {"nhash": nhash, "b": bits, "nflip": flips}
        needed = count * self.bytes_each(settings)
        if needed > available_bytes():
            reason = f"needs about {needed >> 20} MiB"
            print(json.dumps({"method": sys.argv[1], "settings": self.settings, "skipped": reason}))
            sys.exit()
        self.index = faiss.IndexBinaryMultiHash(64, nhash, bits)
        self.index.nflip = flips

    def add(self, fingerprints):
        self.index.add(bytes_of(fingerprints))

    def queries(self, queries):
        return [queries[at : at + 1] for at in range(len(queries))]

    def find(self, query):
        return self.index.range_search(query, self.radius)

    def find_all(self, queries):
        self.index.range_search(queries, self.radius)

    def rows(self, found):
        return found[2]


class Hammingbird:
    """The class Index of hammingbird."""

    def __init__(self, k, count, settings):
        import hammingbird

        self.version = hammingbird.__version__
        self.settings = {}
        self.index = hammingbird.Index(8, k)

    def add(self, fingerprints):
        # In parts, because it copies what it is given before it inserts.
        for start in range(0, len(fingerprints), 1 << 20):
            self.index.add_batch(bytes_of(fingerprints[start : start + (1 << 20)]))

    def queries(self, queries):
        return list(queries)

    def find(self, query):
        return self.index.query(query)

    def find_all(self, queries):
        self.index.query_batch(queries)

    def rows(self, found):
        return [row for row, _ in found]


def latencies(peer, queries):
    """Nanoseconds of each query."""
    taken = np.empty(len(queries), dtype="i8")
    for at, query in enumerate(queries):
        begin = time.perf_counter_ns()
        peer.find(query)
        taken[at] = time.perf_counter_ns() - begin
    return taken


def main():
    method, k, fingerprint_file, query_file, answer_file = sys.argv[1:]
    name, _, settings = method.partition(":")
    settings = tuple(map(int, settings.split(","))) if settings else None
    peers = {"faiss-multi-hash": MultiHash, "hammingbird": Hammingbird}
    if name not in peers:
        sys.exit(f"unknown method {method}")
    k = int(k)
    fingerprints = np.fromfile(fingerprint_file, dtype="<u8")
    query_rows = bytes_of(np.fromfile(query_file, dtype="<u8"))

    # What a call from Python takes when there is nothing to find.
    empty = peers[name](k, len(fingerprints), settings)
    empty.add(~np.fromfile(query_file, dtype="<u8", count=1))
    call = np.median(latencies(empty, empty.queries(query_rows[:1000])))

    before = resident_bytes()
    begin = time.perf_counter()
    peer = peers[name](k, len(fingerprints), settings)
    peer.add(fingerprints)
    build_seconds = time.perf_counter() - begin
    memory = resident_bytes() - before

    queries = peer.queries(query_rows)
    with open(answer_file, "wb") as answers:
        count = 0
        for at, query in enumerate(queries):
            rows = np.asarray(peer.rows(peer.find(query)), dtype="i8")
            pairs = np.stack([np.full(len(rows), at, dtype="<u8"), fingerprints[rows]], axis=1)
            pairs.tofile(answers)
            count += len(rows)
    begin = time.perf_counter()
    peer.find_all(query_rows)
    mean = (time.perf_counter() - begin) / len(queries)
    taken = np.sort(latencies(peer, queries)) / 1e3
    percentile = lambda share: float(taken[min(int(share * len(taken)), len(taken) - 1)])
    print(
        json.dumps(
            {
                "method": name,
                "version": peer.version,
                "settings": peer.settings,
                "build_seconds": build_seconds,
                "memory_bytes": memory,
                "answers": count,
                "call_us": float(call) / 1e3,
                "in_one_call_us": mean * 1e6,
                "p50_us": percentile(0.5),
                "p90_us": percentile(0.9),
                "p99_us": percentile(0.99),
                "p99.9_us": percentile(0.999),
                "max_us": float(taken[-1]),
            }
        )
    )


main()
