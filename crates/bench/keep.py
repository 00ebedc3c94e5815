"""Deduplicates a corpus by another program: keep.py text-dedup|datatrove CORPUS.parquet OUT_DIR.

Writes the numbers of the documents that it keeps, one on a line, from 0 in the order of the corpus (kept.txt), and its
package and settings (peer.json). Both programs run with their default settings.
"""

import importlib.metadata
import json
import pathlib
import subprocess
import sys
import time

import pyarrow.parquet as pq


def text_dedup(texts, scratch):
    import datasets

    numbered = datasets.Dataset.from_dict({"number": list(range(len(texts))), "text": texts})
    numbered.save_to_disk(str(scratch / "in"))
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "text_dedup.minhash", "--path", str(scratch / "in"), "--local", "--column", "text",
         "--output", str(scratch / "out"), "--num_proc", "2", "--cache_dir", str(scratch / "cache")],
        check=True, cwd=scratch,
    )
    seconds = time.perf_counter() - begin
    kept = datasets.load_from_disk(str(scratch / "out"))["number"]
    return list(kept), "text-dedup", "MinHash, 250 permutations, shingles of 5, threshold .7", seconds


def datatrove(texts, scratch):
    from datatrove.data import Document
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import (
        MinhashConfig, MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature,
    )

    config = MinhashConfig()

    class Read:
        """Hands over the documents."""

        def __call__(self, data=None, rank=0, world_size=1):
            for number, text in enumerate(texts):
                yield Document(text=text, id=str(number))

    kept = []

    class Keep:
        def __call__(self, data, rank=0, world_size=1):
            for document in data:
                kept.append(int(document.id))
                yield document

    def run(pipeline, tasks=1):
        logs = str(scratch / f"logs-{len(list(scratch.iterdir()))}")
        # One worker runs in this process, so that `kept` is filled.
        LocalPipelineExecutor(pipeline=pipeline, tasks=tasks, workers=1, logging_dir=logs).run()

    begin = time.perf_counter()
    run([Read(), MinhashDedupSignature(output_folder=str(scratch / "signatures"), config=config)])
    run([MinhashDedupBuckets(input_folder=str(scratch / "signatures"), output_folder=str(scratch / "buckets"), config=config)],
        tasks=config.num_buckets)
    run([MinhashDedupCluster(input_folder=str(scratch / "buckets"), output_folder=str(scratch / "removed"), config=config)])
    run([Read(), MinhashDedupFilter(input_folder=str(scratch / "removed")), Keep()])
    settings = f"MinHash, {config.num_buckets} buckets of {config.hashes_per_bucket}, shingles of {config.n_grams}"
    return kept, "datatrove", settings, time.perf_counter() - begin


def main():
    method, corpus, out = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    texts = [text or "" for text in pq.read_table(corpus, columns=["text"]).column("text").to_pylist()]
    scratch = out / "scratch"
    scratch.mkdir(parents=True)
    methods = {"text-dedup": text_dedup, "datatrove": datatrove}
    kept, package, settings, seconds = methods[method](texts, scratch)
    (out / "kept.txt").write_text("".join(f"{number}\n" for number in sorted(kept)))
    peer = {
        "package": f"{package} {importlib.metadata.version(package)}", "settings": settings, "seconds": seconds,
    }
    (out / "peer.json").write_text(json.dumps(peer))


main()
