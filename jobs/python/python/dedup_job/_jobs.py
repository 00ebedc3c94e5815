"""Jobs: functions that run the program."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Union

from . import _native
from ._data import (
    Arrow,
    Fingerprints,
    Texts,
    are_paths,
    fingerprint_array,
    is_path,
    open_data,
    scratch_directory,
    write_batch,
)
from ._errors import UsageError
from ._functions import MAX_PAIRS, pairs_in_memory
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
from ._progress import ProgressOption
from ._spec import to_spec
from ._summary import Summary
from ._table import Table

if TYPE_CHECKING:
    from typing_extensions import Unpack

_SPEC_NAMES = frozenset(SpecOptions.__annotations__)


class _SpecJobOptions(CommonOptions, ColumnOptions, SpecOptions, total=False):
    """Options of a job that makes fingerprints."""


class TuneOptions(_SpecJobOptions, total=False):
    """Options of `tune`: those of `dedup-job tune`."""

    #: Compare all pairs of so many documents (default 20,000).
    sample: int
    #: Smallest similarity of a pair that should be found, from 0.5 to 1 (default 0.8).
    min_similarity: float
    #: Documents of a batch, to predict the cost (default 1,000,000).
    day_size: int
    #: Documents of the archive, to predict the cost (default 1,000,000,000).
    archive_size: int
    #: Compute fingerprints as this archive does.
    base: Path


def run(
    new: Union[Path, Iterable[Path], Arrow],
    base: Path | None = None,
    output: Path | None = None,
    *,
    progress: ProgressOption = None,
    **options: Unpack[RunOptions],
) -> Summary:
    """Find the near-duplicates of a batch, exactly as the command `dedup-job run` does.

    The job runs as a process of its own: its memory is not the interpreter's, Ctrl-C stops it, and it ends with the
    interpreter. On any exception, the archive and an earlier output are unchanged, unless the message says otherwise.

    Parameters
    ----------
    new
        Documents of the batch: files, directories, patterns or URLs; or a table in memory (pyarrow, Polars, pandas, DuckDB,
        datasets). A table without an id column gets the row numbers as ids.
    base
        Archive to compare the batch with; without it, the batch is compared with itself only.
    output
        File for the pairs: .parquet, .csv or .jsonl. By default hits.parquet, unless `decisions` or `kept` is given.
    progress
        A function that is called with a `Progress` several times a second; True to show a line on standard error, False to
        show none in a notebook.
    **options
        The options of the command, with underscores for dashes: see `RunOptions`. `k=3` is the largest distance in bits.

    Returns
    -------
    Summary
        `hits` is the number of pairs, `new.documents` that of documents, `seconds.total` the time, ...

    Raises
    ------
    DedupJobError
        A subclass for each exit code, with the command's message.

    Examples
    --------
    >>> dedup_job.run("day.parquet", base="archive", append=True, day="2026-01-31", k=6).hits
    """
    with scratch_directory(options.get("scratch")) as directory:
        return _run(_file_paths(new, directory), base, {"output": output, **options}, progress)


def decide(
    batch: Union[Path, Texts, Arrow],
    archive: Path | None = None,
    k: int = 3,
    verify: str | None = None,
    *,
    progress: ProgressOption = None,
    **options: Unpack[DecideOptions],
) -> Table:
    """Decide which documents of a batch to keep.

    A document is a duplicate of a document that is kept: of the archive, or of the batch in the order of `prefer` (by
    default the longest text first).

    Parameters
    ----------
    batch
        A table in memory, a path, or a sequence of texts. Without an id column, ids are row numbers, and the rows of the
        result are in the order of the batch.
    archive
        Path of the archive to compare with.
    k
        Largest distance of a pair, in bits, from 0 to 16.
    verify
        Compare the texts of pairs ("jaccard") or their sketches ("sketch"), and drop pairs below `min_similarity`.
    progress, **options
        As for `run`.

    Returns
    -------
    Table
        One row per document, sorted by id: id, kept, duplicate_of, duplicate_day, distance (bits), similarity (0 to 1),
        group_size. `table.summary` is the summary of the run.

    Examples
    --------
    >>> clean = frame[dedup_job.decide(frame).to_numpy("kept")]
    """
    return _run_to_table("decisions", batch, archive, {"k": k, "verify": verify, **options}, progress)


def pairs(
    batch: Union[Path, Texts, Fingerprints, Arrow],
    archive: Union[Path, Fingerprints, None] = None,
    k: int = 3,
    verify: str | None = None,
    *,
    max_pairs: int = MAX_PAIRS,
    progress: ProgressOption = None,
    **options: Unpack[CompareOptions],
) -> Table:
    """Find every pair of near-duplicates: exactly those whose fingerprints differ in at most k of their 64 bits.

    Parameters
    ----------
    batch
        Fingerprints, as `fingerprint` returns them; a column or sequence of texts; a table with ids and texts; or a path.
    archive
        What to compare with: the path of an archive, or an array of fingerprints. Without it, the batch is compared with
        itself.
    k
        Largest distance, in bits, from 0 to 16.
    verify, progress, **options
        As for `decide`. `threads` is the number of threads, by default one per core.
    max_pairs
        Of fingerprints in memory: raise `UsageError` rather than return more pairs.

    Returns
    -------
    Table
        One row per pair, sorted by new_id, distance, base_id. new_id and base_id are the documents' ids; of fingerprints or
        a column of texts they are row numbers. Within a batch, base_id is the smaller id. distance is in bits. A run adds
        base_day, the day of base_id in the archive, and similarity, from 0 to 1, where it is known.

    Notes
    -----
    Fingerprints and columns of texts are compared in this process, with the GIL released. With the path of an archive, with
    `verify`, and for tables and paths, the program runs, as by `run`.

    Examples
    --------
    >>> dedup_job.pairs(dedup_job.fingerprint(texts), k=3).to_pandas()
    """
    against_path = archive is not None and is_path(archive)
    if is_path(batch) or against_path or verify is not None:
        return _run_pairs(batch, archive, {"k": k, "verify": verify, **options}, progress)
    kind, data = open_data(batch)
    if kind == "table":
        return _run_pairs(data, archive, {"k": k, **options}, progress)
    spec = {name: value for name, value in options.items() if name in _SPEC_NAMES}
    if others := sorted(options.keys() - spec.keys() - {"threads"}):
        raise UsageError(f"{others[0]} is an option of runs, not of fingerprints and texts in memory")
    threads = options.get("threads")
    if kind == "texts":
        new = _native.fingerprint(to_spec(spec)._load(), data, None, threads)
    elif kind == "fingerprints":
        new = fingerprint_array(data)
    else:
        raise UsageError(f"fingerprints or texts are needed, not {kind}")
    base = None if archive is None else fingerprint_array(archive)
    return Table(pairs_in_memory(new, base, k, threads, max_pairs))


def explain(
    first: str,
    second: str,
    *,
    documents: Union[Path, Iterable[Path], None] = None,
    archive: Path | None = None,
    k: int = 3,
    top: int = 10,
    **options: Unpack[_SpecJobOptions],
) -> Summary:
    """Explain why two documents are a pair, or why not: their distance, similarity, and the features that differ.

    Parameters
    ----------
    first, second
        Texts; or ids of documents in `documents`.
    documents
        Files in which the ids are looked up.
    archive
        Make fingerprints as this archive does.
    k
        Largest distance of a pair, in bits.
    top
        How many features of each kind.
    """
    given = {"documents": None if documents is None else paths_to_list(documents), "base": archive, "k": k, "top": top}
    return Summary(call_json(["explain", *to_arguments({**given, **options}), "--", first, second]))


def tune(
    documents: Union[Path, Iterable[Path], Arrow],
    *,
    progress: ProgressOption = None,
    **options: Unpack[TuneOptions],
) -> Summary:
    """Compare settings on a sample of documents: what each finds, what it costs, and which to take.

    Parameters
    ----------
    documents
        Files, or a table in memory.
    progress
        As for `run`.
    **options
        See `TuneOptions`.
    """
    return _on_documents("tune", documents, options, progress)


def idf(
    documents: Union[Path, Iterable[Path], Arrow],
    output: Path,
    *,
    progress: ProgressOption = None,
    **options: Any,
) -> Summary:
    """Count in how many documents each feature occurs, into the table `output` (.parquet) for `idf=` of a spec.

    Parameters
    ----------
    documents
        Files, or a table in memory.
    output
        The table to write.
    progress, **options
        As for `run`; the options are those of `dedup-job idf`.
    """
    return _on_documents("idf", documents, {"output": output, **options}, progress)


def build_index(archive: Path, index: Path, *, progress: ProgressOption = None, **options: Any) -> Summary:
    """Build an index of an archive for `Index`, or bring it up to date.

    Parameters
    ----------
    archive
        Path of the archive.
    index
        Directory of the index; the first build creates it.
    progress, **options
        As for `run`; the options are those of `dedup-job index build`, such as `merge_all`.
    """
    arguments = to_arguments({"base": archive, "output": index, **options})
    return Summary(call_json(["index", "build", *arguments], progress))


def _on_documents(command: str, documents: Any, options: Any, progress: ProgressOption) -> Summary:
    """Run a command on documents, which are paths or in memory."""
    with scratch_directory(options.get("scratch")) as directory:
        paths = _file_paths(documents, directory)
        return Summary(call_json([command, *to_arguments(options), "--", *paths], progress))


def _run(new: list[str], base: Path | None, options: dict[str, Any], progress: ProgressOption) -> Summary:
    if options.get("output") == "-" or options.get("decisions") == "-":
        raise UsageError("standard output has the summary: name a file")
    return Summary(call_json(["run", *to_arguments({"new": new, "base": base, **options})], progress))


def _run_pairs(batch: Any, archive: Any, options: dict[str, Any], progress: ProgressOption) -> Table:
    """Runs the program for pairs. An archive of fingerprints in memory becomes a file."""
    with scratch_directory(options.get("scratch")) as directory:
        if archive is not None and not is_path(archive):
            archive = write_batch(archive, directory, "base")
            options = {"within": False, **options}
        return _run_to_table("output", batch, archive, options, progress)


def _run_to_table(
    option: str, batch: Any, archive: Path | None, options: dict[str, Any], progress: ProgressOption
) -> Table:
    """Run the program, and return the rows of the output that `option` names."""
    if options.get(option) is not None:
        raise UsageError(f"{option}: the rows are returned; use run to write a file")
    with scratch_directory(options.get("scratch")) as directory:
        rows = os.path.join(directory, f"{option}.parquet")
        summary = _run(_batch_paths(batch, directory), archive, {**options, option: rows}, progress)
        return Table(_native.read_parquet(rows), summary)


def _batch_paths(batch: Any, directory: str) -> list[str]:
    """The paths of a batch; one in memory, which a list of str is, is written to `directory`."""
    return paths_to_list(batch) if is_path(batch) else [write_batch(batch, directory)]


def _file_paths(documents: Any, directory: str) -> list[str]:
    """The paths of documents, as a list of str is; those in memory are written to `directory`."""
    return paths_to_list(documents) if are_paths(documents) else [write_batch(documents, directory)]
