"""Keyword arguments as the command's options, and the names of those that functions take."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict, Union

from ._errors import UsageError

#: A path of a local file or directory, a pattern, or a URL: s3://, az://, gs://.
Path = Union[str, "os.PathLike[str]"]
#: A date, or YYYY-MM-DD, "yesterday" or "today" (in UTC).
Day = Union[str, datetime.date]
#: A time span, or a number with the unit s, m, h or d.
Span = Union[str, datetime.timedelta]

#: Keyword arguments whose options are called otherwise.
_RENAMED = {"k": "max-distance"}
#: Options that this package sets itself.
_RESERVED = frozenset({"json", "log_format", "progress_every", "stop_with_stdin"})


class CommonOptions(TypedDict, total=False):
    """Options of every job."""

    #: TOML file with options; keyword arguments win over it.
    config: Path
    #: Log no warnings, and report no progress.
    quiet: bool
    #: 1 logs each step, 2 details.
    verbose: int
    #: Number of threads; one per core by default.
    threads: int
    #: Memory limit, such as "4GiB"; three quarters of the memory of the machine or container by default.
    memory_limit: str
    #: Directory for temporary files.
    scratch: Path
    #: Address of the object storage service.
    endpoint: str
    #: Whether the endpoint may be without encryption.
    allow_http: bool
    #: How often a request is repeated after temporary failures.
    retries: int
    #: Time limit of one request.
    request_timeout: Span
    #: Time limit of a request with all its repetitions.
    retry_deadline: Span


class ColumnOptions(TypedDict, total=False):
    """Options of columns."""

    #: Column of ids; by default "id", or another common name such as "doc_id" or "url".
    id_column: str
    #: Column of texts; by default "text", or another common name such as "content" or "body".
    text_column: str
    #: Column of ready 64-bit fingerprints; by default "fp", if there is one.
    fingerprint_column: str


class SpecOptions(TypedDict, total=False):
    """Options of how fingerprints are made. An archive fixes them when it is created."""

    #: How a text is cut into features: "words+cjk-grams" (default), "words", "shingles-3", ...
    tokenizer: str
    #: How a text is normalised before: "nfkc-casefold" (default), "nfkc", "as-is".
    normalize: str
    #: "html" to parse texts as HTML.
    markup: str
    #: File of words to leave out, one per line.
    stop_words: Path
    #: Weight of a feature: "sqrt-tf" (default), "tf", "log-tf", "set", "levels".
    weight: str
    #: Table of document frequencies, which `dedup_job.idf` writes: rare features count more.
    idf: Path
    #: Power of the inverse document frequency: "1", "3/4", "1/2" (default), "1/4".
    idf_power: str
    #: Bits of a sketch beside each fingerprint: 0 (default), 64, 128, 256.
    sketch: int
    #: Texts with fewer distinct features have no fingerprint (default 4).
    min_features: int
    #: Seed of the feature hash (default 0).
    hash_seed: int


class CompareOptions(CommonOptions, ColumnOptions, SpecOptions, total=False):
    """Options of `pairs` and `decide` where they run a job, and of `run`."""

    #: With an archive: whether pairs within the batch are found, too (the default).
    within: bool
    #: Smallest similarity of a verified pair, from 0 to 1: 0.8, or 0.75 by sketch.
    min_similarity: float
    #: Documents whose fingerprints are in the archive, to look up their texts for verification.
    base_text: Union[Path, Iterable[Path]]
    #: Date of the batch.
    day: Day
    #: Design of the tables; by default the cheapest that fits the memory limit.
    design: str
    #: Let the executors of this scheduler do the work: "df://HOST:PORT".
    cluster: str
    #: Submit the work again, up to so many times, if the scheduler is lost.
    resubmit: int
    #: How long to wait for the scheduler.
    executor_wait: Span
    #: Certificate of the authority (PEM), for a cluster with encryption.
    tls_ca: Path
    #: Certificate of this client (PEM).
    tls_cert: Path
    #: Its private key (PEM).
    tls_key: Path


class DecideOptions(CompareOptions, total=False):
    """Options of `decide`."""

    #: File or directory for the kept documents, in the format of the batch.
    kept: Path
    #: Of near-duplicates, keep the one with the smallest value of this column: "COLUMN" or "COLUMN:desc".
    prefer: str
    #: Replace existing files of any kind.
    overwrite: bool
    #: Commit the batch to the archive as a day: True or "all" for all documents, "kept" for those that are kept.
    append: Union[bool, Literal["all", "kept"]]
    #: With append: replace the day if the archive has it with other documents.
    replace_day: bool
    #: Maximum number of rows in a data file of the archive.
    rows_per_file: int
    #: Directory in which finished fingerprints are kept until the run succeeds.
    resume: Path
    #: .parquet file for the fingerprints of the batch.
    fingerprints: Path
    #: Keep only the nearest pairs of each document of the batch, so many at most.
    max_hits_per_document: int
    #: File for metrics, or http(s):// URL of a gateway.
    metrics: str


class RunOptions(DecideOptions, total=False):
    """Options of `run`: those of `dedup-job run`, with underscores for dashes."""

    #: Largest distance of a pair, from 0 to 16 (default 3).
    k: int
    #: Compare the pairs and drop those below min_similarity: "jaccard", "sketch", ...
    verify: str
    #: File for one row per document: whether it is kept, or which document it duplicates.
    decisions: Path


def to_arguments(options: Mapping[str, Any]) -> list[str]:
    """The options as arguments of the command.

    Underscores become dashes. None gives nothing, True the bare option, a list one option per item.
    """
    arguments: list[str] = []
    for name, value in options.items():
        if name in _RESERVED:
            raise UsageError(f"{name} is set by this package")
        flag = "--" + _RENAMED.get(name, name).replace("_", "-")
        if value is None:
            continue
        if name == "verbose":
            arguments += [flag] * int(value)
        elif value is True:
            arguments.append(flag)
        elif value is False:
            # Only `within` is on by default, so only it has an opposite.
            arguments += ["--no-within"] if name == "within" else []
        elif isinstance(value, (list, tuple)):
            arguments += [f"{flag}={_to_text(item)}" for item in value]
        else:
            arguments.append(f"{flag}={_to_text(value)}")
    return arguments


def paths_to_list(paths: Path | Iterable[Path]) -> list[str]:
    """One path or several as a list of texts."""
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    return [os.fspath(path) for path in paths]


def _to_text(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        value = value.date()
    if isinstance(value, datetime.timedelta):
        return f"{round(value.total_seconds() * 1000)}ms"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
