"""Jobs: functions that run the program."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Union

from . import _native
from ._data import (
    Arrow,
    Fingerprints,
    Texts,
    are_paths,
    collect_paths,
    file_paths,
    fingerprint_array,
    is_path,
    open_data,
    run_reads,
    scratch_directory,
    write_batch,
)
from ._errors import UsageError
from ._functions import pairs_in_memory
from ._options import (
    ColumnOptions,
    CommonOptions,
    CompareOptions,
    DecideOptions,
    Path,
    RunOptions,
    SpecOptions,
    paths_to_list,
    to_arguments,
)
from ._process import call_json
from ._progress import ProgressOption, native_progress
from ._spec import to_spec
from ._split import split_for
from ._summary import Summary
from ._table import Table, table_of
from ._tuned import Tuned
from ._typing import Lazy, Unpack
from .executors import Executor, engine_for

if TYPE_CHECKING:
    import numpy
else:
    # `Fingerprints` names it.
    numpy = Lazy("numpy")

#: The file of a table, which the program read.
_BATCH_FILE = re.compile(r"'?\S*/dedup-job-[^/ ]*/batch\.parquet'?")
_SPEC_NAMES = frozenset(SpecOptions.__annotations__)
#: The options of `pairs` that `dedup-job fingerprint` takes, too.
_FINGERPRINT_NAMES = _SPEC_NAMES.union(ColumnOptions.__annotations__, CommonOptions.__annotations__)


class _SpecJobOptions(CommonOptions, ColumnOptions, SpecOptions, total=False):
    """Options of a job that makes fingerprints."""


class TuneOptions(_SpecJobOptions, total=False):
    """Options of `tune`: those of `dedup-job tune`.

    sample
        Number of documents in the sample, all pairs of which are compared (default 20,000).
    min_similarity
        Smallest similarity of a pair that should be found, from 0.5 to 1 (default 0.8).
    day_size
        Documents of a batch, to predict the cost (default 1,000,000).
    archive_size
        Documents of the archive, to predict the cost (default 1,000,000,000).
    base
        Path of an archive whose spec makes the fingerprints.
    source
        Column that says where a document is from, as for `run`.
    """

    sample: int
    min_similarity: float
    day_size: int
    archive_size: int
    base: Path
    source: str


def run(
    new: Union[Path, Iterable[Path], Arrow],
    base: Union[Path, Iterable[Path], None] = None,
    output: Union[Path, bool, None] = None,
    *,
    job: Path | None = None,
    executor: Executor | None = None,
    parts: int | None = None,
    part_options: CommonOptions | None = None,
    restart: bool = False,
    progress: ProgressOption = None,
    **options: Unpack[RunOptions],
) -> Summary:
    """Find the near-duplicates of a batch, exactly as the command `dedup-job run` does.

    The job is a process of its own: it has its own memory, Ctrl-C stops it, and it ends if this process ends. If an exception
    is raised, the archive and an earlier output are unchanged, unless the message says otherwise.

    Parameters
    ----------
    new
        Documents of the batch: paths of files or directories, patterns or URLs, one or several; or a table in memory (pyarrow,
        Polars, pandas, DuckDB, datasets), which is handed over as a Parquet file in `scratch`. A table without an id column
        gets the row numbers as ids, except with `append`. A list of str is one of paths. Of a table with texts and a
        column "fp", the texts are used, unless `fingerprint_column` names the fingerprints.
    base
        Path of the archive to compare the batch with; or of files of fingerprints or documents; or several. Without it, the
        batch is compared with itself only.
    output
        File for the pairs: .parquet, .csv or .jsonl. The default is hits.parquet in the current directory; with `decisions` or
        `kept`, no file.
    executor
        Let the workers of an engine share the work: see `dedup_job.executors`. The answer is the same.
    job
        With an executor: directory, or prefix in an object store, by which this process and the workers exchange what they
        need. It is of this run alone. A run that was interrupted goes on if it is called again with the same arguments; see
        also `Job.open` and `Job.run`.
    parts
        With an executor: see `split`.
    part_options
        With an executor: options of the workers' processes, such as `threads` and `memory_limit`; by default those of this
        call. The default limits are of a whole machine, so give them if a machine does several parts at the same time.
    restart
        With an executor: see `split`.
    progress
        A function that is called with a `Progress` several times a second; or True, to show a line on standard error; or
        False, to show nothing. By default, a line is shown in notebooks only.
    **options
        The options of the command, with underscores for dashes: see `RunOptions`. `k=3` is the largest distance of a pair, in
        bits.

    Returns
    -------
    Summary
        Among others: `hits`, the number of pairs; `new.documents`, the number of documents; `seconds.total`.

    Raises
    ------
    DedupJobError
        A subclass for each exit code, with the command's message.

    Examples
    --------
    >>> dedup_job.run("day.parquet", base="archive", append=True, day="2026-01-31", k=6).hits
    """
    if job is not None or executor is not None:
        if job is None or executor is None:
            raise UsageError("an executor needs a job, and a job an executor; or use split")
        engine, given = engine_for(executor), dict(options)
        metrics: Any = given.pop("metrics", None)
        begun = split_for(engine, new, base, output, job, parts, restart, progress, given)
        return begun.run(engine, part_options=part_options, metrics=metrics, progress=progress)
    if parts is not None or part_options is not None or restart:
        raise UsageError("parts, part_options and restart need an executor")
    with scratch_directory(options.get("scratch")) as directory:
        paths = file_paths(new, directory, options, run_reads(options), row_ids=not options.get("append"))
        return _run(paths, base, {"output": output, **options}, progress)


def decide(
    batch: Union[Path, Iterable["os.PathLike[str]"], Texts, Arrow],
    archive: Path | None = None,
    k: int | None = None,
    verify: str | None = None,
    *,
    progress: ProgressOption = None,
    **options: Unpack[DecideOptions],
) -> Table:
    """Decide which documents of a batch to keep, so that no two near-duplicates are left.

    Documents are visited in the order of `prefer`, by default the longest text first. A document is dropped if it has a pair
    with a document of the archive, or with one of the batch that is kept already.

    Parameters
    ----------
    batch
        A table in memory, a sequence of texts, a path, or a list of `pathlib.Path`. A batch in memory without an id column
        gets the row numbers as ids, except with `append`. A list of str is one of texts. Of a table with texts and a
        column "fp", the texts are used, unless `fingerprint_column` names the fingerprints.
    archive
        Path of the archive to compare with.
    k
        Largest distance of a pair, in bits, from 0 to 16; by default, as for `verify`, what the archive records; or without an
        archive 7 for texts, which decide ("jaccard"), and 3 for fingerprints.
    verify
        Compare the texts ("jaccard") or the sketches ("sketch") of each pair, and drop pairs below `min_similarity`; or "none".
    progress, **options
        See `run` and `DecideOptions`.

    Returns
    -------
    Table
        One row per document: id, kept, duplicate_of, duplicate_day, distance (bits), similarity (0 to 1), group_size, and the
        columns that the option `columns` names. The rows are in the order of a batch in memory, and sorted by id if the batch
        is read from files. `table.summary` is the summary of the run.

    Examples
    --------
    >>> clean = frame[dedup_job.decide(frame).to_numpy("kept")]
    """
    return _run_to_table("decisions", batch, archive, {"k": k, "verify": verify, **options}, progress)


def pairs(
    batch: Union[Path, Iterable["os.PathLike[str]"], Texts, Fingerprints, Arrow],
    archive: Union[Path, Texts, Fingerprints, Arrow, None] = None,
    k: int | None = None,
    verify: str | None = None,
    *,
    max_pairs: int | None = None,
    progress: ProgressOption = None,
    **options: Unpack[CompareOptions],
) -> Table:
    """Find every pair of near-duplicates: fingerprints that differ in at most k of 64 bits and, in a run, similar documents.

    Parameters
    ----------
    batch
        Fingerprints, as `fingerprint` returns them; a column or sequence of texts; a table with ids and texts, or with ids and
        fingerprints in a column "fp"; if it has both, the texts are used, unless `fingerprint_column` says otherwise; or a path.
    archive
        What to compare the batch with:

        - None: the batch is compared with itself.
        - a column or sequence of fingerprints or texts: each of them is compared with each of the batch, and neither set with
          itself.
        - a table: each of its rows, too; the rows of both sets are named by their ids.
        - the path of an archive: the batch is compared with it, and, unless `within=False`, with itself.
    k
        Largest distance of a pair, in bits, from 0 to 16; by default 3 where this process compares, else that of a run.
    verify, progress, **options
        See `decide`. `threads` is the number of threads, by default one per core. The options of columns and of specs apply to
        both tables.
    max_pairs
        Raise `UsageError` rather than return more pairs of fingerprints or texts in memory. A pair takes up to 56 bytes; by
        default, all pairs may take a quarter of the memory of the machine or container. `run` writes any number of pairs to a
        file.

    Returns
    -------
    Table
        One row per pair, sorted by new_id, distance, base_id. new_id and base_id are ids of documents, or the row numbers of
        fingerprints and of a column of texts; beside an archive whose ids are strings, row numbers are strings, too. In a pair
        within the batch, base_id is the smaller id. distance is in bits. A run adds base_day, the day of base_id in the
        archive, and, with verify or sketches, similarity, from 0 to 1.

    Notes
    -----
    Fingerprints and columns of texts are compared in this process, with the GIL released. For a table or a path, for the path
    of an archive, and with `verify`, the program runs as by `run`.

    Examples
    --------
    >>> dedup_job.pairs(dedup_job.fingerprint(texts), k=3).to_pandas()
    """
    batch = collect_paths(batch)
    against_path = archive is not None and is_path(archive)
    if is_path(batch) or against_path or verify is not None:
        return _run_pairs(batch, archive, {"k": k, "verify": verify, **options}, progress)
    kind, data = open_data(batch)
    base_kind, base_data = ("none", None) if archive is None else open_data(archive)
    if "table" in (kind, base_kind):
        return _run_pairs(data, base_data, {"k": k, **options}, progress)
    spec = {name: value for name, value in options.items() if name in _SPEC_NAMES}
    if others := sorted(options.keys() - spec.keys() - {"threads"}):
        raise UsageError(f"{others[0]} is an option of runs, not of fingerprints and texts in memory")
    threads = options.get("threads")
    new = _fingerprints(kind, data, spec, threads, progress)
    base = None if archive is None else _fingerprints(base_kind, base_data, spec, threads, progress)
    k = 3 if k is None else k
    return table_of(pairs_in_memory(new, base, k, threads, max_pairs, progress))


def explain(
    first: str,
    second: str,
    *,
    documents: Union[Path, Iterable[Path], None] = None,
    archive: Path | None = None,
    k: int | None = None,
    top: int = 10,
    **options: Unpack[_SpecJobOptions],
) -> Summary:
    """Explain why two documents are a pair, or why not: their distance, similarity, and the features that differ.

    Parameters
    ----------
    first, second
        Two texts; with `documents`, the ids of two documents, or the paths of two files with a text each.
    documents
        Files in which the ids are looked up.
    archive
        Path of an archive whose spec makes the fingerprints.
    k
        Largest distance of a pair, in bits; by default that of runs with the archive, or 7.
    top
        The most features to list: shared ones, only in the first, only in the second.
    """
    given = {"documents": None if documents is None else paths_to_list(documents), "base": archive, "k": k, "top": top}
    arguments = ["explain", *to_arguments({**given, **options}), "--"]
    if documents is not None:
        return Summary(call_json([*arguments, first, second]))
    # Not as arguments: those have a length limit, and everyone sees them in the list of processes.
    with scratch_directory(options.get("scratch")) as directory:
        paths = [os.path.join(directory, name) for name in ("first", "second")]
        for path, text in zip(paths, (first, second)):
            with open(path, "wb") as file:
                file.write(text.encode(errors="surrogatepass"))
        explained = call_json([*arguments, *paths])
    for text in explained["texts"]:
        text["from"] = "the text given"
    return Summary(explained)


def tune(
    documents: Union[Path, Iterable[Path], Arrow],
    *,
    progress: ProgressOption = None,
    **options: Unpack[TuneOptions],
) -> Tuned:
    """Compare specs and distances on a sample of documents: the pairs that each finds, and its cost.

    Parameters
    ----------
    documents
        Paths, or a table in memory.
    progress
        See `run`.
    **options
        See `TuneOptions`.

    Returns
    -------
    Tuned
        A `Summary`: `spec` is the spec to take. `spec_table()` is a `Table` of every spec that was tried, each at its best k;
        `distance_table()` has, for each k, the pairs, recall, precision and predicted cost with the best spec. The command
        `dedup-job tune` prints the same tables.

    Examples
    --------
    >>> dedup_job.tune(frame).spec_table().to_pandas()
    """
    found = _on_documents("tune", documents, options, progress)
    if not is_path(documents) and not isinstance(documents, (list, tuple)):
        # The file of a table is gone.
        found["commands"] = [_BATCH_FILE.sub("DOCUMENTS", line) for line in found["commands"]]
    return Tuned(found)


def idf(
    documents: Union[Path, Iterable[Path], Arrow],
    output: Path,
    *,
    progress: ProgressOption = None,
    **options: Any,
) -> Summary:
    """Count the documents that contain each feature: document frequencies, for the option `idf` of a spec.

    Parameters
    ----------
    documents
        Paths, or a table in memory.
    output
        File to write (.parquet).
    progress
        See `run`.
    **options
        The options of `dedup-job idf`, with underscores for dashes.
    """
    return Summary(_on_documents("idf", documents, {"output": output, **options}, progress))


def build_index(archive: Path, index: Path, *, progress: ProgressOption = None, **options: Any) -> Summary:
    """Build an index of an archive for `Index`, or bring it up to date.

    Parameters
    ----------
    archive
        Path of the archive.
    index
        Directory of the index; the first build creates it.
    progress
        See `run`.
    **options
        The options of `dedup-job index build`, with underscores for dashes, such as `merge_all`.
    """
    arguments = to_arguments({"base": archive, "output": index, **options})
    return Summary(call_json(["index", "build", *arguments], progress))


def _fingerprints(
    kind: str, data: Any, spec: dict[str, Any], threads: int | None, progress: ProgressOption
) -> _native.Array:
    """The fingerprints in data of this kind, or of its texts."""
    if kind == "texts":
        with native_progress(progress) as report:
            return _native.fingerprint(to_spec(spec)._load(), data, None, threads, report)
    if kind == "fingerprints":
        return fingerprint_array(data)
    raise UsageError(f"a column of fingerprints (64-bit integers) or of texts is needed, not {kind}")


def _on_documents(command: str, documents: Any, options: Any, progress: ProgressOption) -> dict[str, Any]:
    """Run a command that reads texts on documents, which are paths or in memory; return what it prints."""
    with scratch_directory(options.get("scratch")) as directory:
        paths = file_paths(documents, directory, options, "texts")
        return call_json([command, *to_arguments(options), "--", *paths], progress)


def _run(
    new: list[str], base: Union[Path, Iterable[Path], None], options: dict[str, Any], progress: ProgressOption
) -> Summary:
    if any(options.get(name) is True for name in ("output", "decisions", "kept")):
        raise UsageError("an output is True for jobs only: name a file")
    base = collect_paths(base)
    if base is not None and not are_paths(base):
        raise UsageError("the archive is a path; to compare two tables, call pairs(table, other)")
    if options.get("output") == "-" or options.get("decisions") == "-":
        raise UsageError("standard output has the summary: name a file")
    return Summary(call_json(["run", *to_arguments({"new": new, "base": base, **options})], progress))


def _run_pairs(batch: Any, archive: Any, options: dict[str, Any], progress: ProgressOption) -> Table:
    """Runs the program for pairs. An archive in memory becomes a file of fingerprints."""
    with scratch_directory(options.get("scratch")) as directory:
        if archive is not None and not is_path(archive):
            archive, texts = _write_base(archive, directory, options, progress)
            options = {"within": False, "base_text": texts, **options}
        return _run_to_table("output", batch, archive, options, progress)


def _write_base(
    base: Any, directory: str, options: dict[str, Any], progress: ProgressOption
) -> tuple[str, str | None]:
    """Write the fingerprints of data in memory to a file; return its path, and that of the texts if the run compares them."""
    kind, data = open_data(base)
    if kind == "fingerprints":
        return write_batch(data, directory, "base", options=options), None
    reads = run_reads(options)
    documents = write_batch(data, directory, "base", options=options, reads=reads)
    fingerprints = os.path.join(directory, "base-fingerprints.parquet")
    given = {name: value for name, value in options.items() if name in _FINGERPRINT_NAMES}
    call_json(["fingerprint", *to_arguments({**given, "input": documents, "output": fingerprints})], progress)
    return fingerprints, documents if reads == "both" else None


def _run_to_table(
    option: str, batch: Any, archive: Path | None, options: dict[str, Any], progress: ProgressOption
) -> Table:
    """Run the program, and return the rows of the output that `option` names."""
    if options.get(option) is not None:
        raise UsageError(f"{option}: the rows are returned; use run to write a file")
    with scratch_directory(options.get("scratch")) as directory:
        rows = os.path.join(directory, f"{option}.parquet")
        batch = collect_paths(batch)
        written = None
        # A list of str is one of texts here.
        if not is_path(batch):
            append = options.get("append")
            batch = written = write_batch(
                batch, directory, options=options, reads=run_reads(options), row_ids=not append
            )
        summary = _run(paths_to_list(batch), archive, {**options, option: rows}, progress)
        if option == "decisions":
            # In the order of the batch: users select its rows by them.
            return table_of(_native.read_parquet(rows, written, options.get("id_column")), summary)
        return table_of(_native.read_parquet(rows), summary)
