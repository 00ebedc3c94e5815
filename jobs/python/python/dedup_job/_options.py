"""Keyword arguments as the command's options, and the names of those that functions take."""

from __future__ import annotations

import datetime
import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, Union

from ._errors import UsageError

#: A path of a local file or directory, a pattern, or a URL: s3://, az://, gs://.
Path = Union[str, "os.PathLike[str]"]
#: A date, or YYYY-MM-DD, "yesterday" or "today" (in UTC); of WARC files also "from-records".
Day = Union[str, datetime.date]
#: A time span, or a number with the unit s, m, h or d.
Span = Union[str, datetime.timedelta]

#: Keyword arguments whose options are called otherwise.
_RENAMED = {"k": "max-distance"}
#: Options that this package sets itself.
_RESERVED = frozenset({"json", "log_format", "progress_every"})


class StorageOptions(TypedDict, total=False):
    """Options of object stores.

    endpoint
        Address of the object storage service. Credentials are read from the environment.
    allow_http
        Allow an endpoint without encryption (http://).
    retries
        How often to repeat a request after a temporary failure.
    request_timeout
        Time limit of one request.
    retry_deadline
        Time limit of a request with all its retries.
    """

    endpoint: str
    allow_http: bool
    retries: int
    request_timeout: Span
    retry_deadline: Span


class CommonOptions(StorageOptions, total=False):
    """Options of every job.

    config
        TOML file with options. Keyword arguments override it, except those that are False: the command has no opposite of a
        switch that the file sets to true, other than `within=False`. Leave such a switch out of the file.
    quiet
        Log no warnings, and report no progress.
    verbose
        1 logs each step, 2 details; the lines go to the logger "dedup_job".
    threads
        Number of threads; by default one per core.
    memory_limit
        Memory limit, such as "4GiB"; by default three quarters of the memory of the machine or container.
    scratch
        Directory for temporary files, also for the Parquet file of a batch in memory; by default the system's (TMPDIR). The
        file has only the columns that the job reads, compressed. With `kept` or `config` it has all columns.
    """

    config: Path
    quiet: bool
    verbose: int
    threads: int
    memory_limit: str
    scratch: Path


class ColumnOptions(TypedDict, total=False):
    """Options that name columns.

    A column in structures, or in objects of JSON, has a path: "meta.url". A column whose own name is that comes first.

    If documents have both texts and a column "fp", the texts are used, unless the file says that it has fingerprints, as those
    of `fingerprint` do. `fingerprint_column="fp"` uses the fingerprints. For a table in memory with both columns, a warning goes
    to the logger "dedup_job" unless one of the two options says which to use.

    id_column
        Column of ids; by default "id", or another common name such as "doc_id" or "url".
    text_column
        Column of texts; by default "text", or another common name such as "content" or "body". The
        strings of a list are one text, joined by newlines: "messages.content" is that of all structures in the list "messages".
    fingerprint_column
        Column of 64-bit fingerprints to use instead of texts; by default "fp", if there is one, and no column of texts.
    delimiter
        What separates the fields of CSV: one ASCII character, or "tab"; by default what the header has.
    quote
        What quotes the fields of CSV: one ASCII character, or "none"; by default what the file is right with.
    charset
        The encoding of all texts, such as "windows-1251"; by default what each file says, unless its bytes contradict it, or
        else what they are like.
    id_from
        What the id of a document in a WARC file is: "record" (default), or "url".
    status
        The HTTP statuses of responses in WARC files that are read, such as "200,404"; by default 200.
    check_digests
        Whether records of WARC files with wrong digests are left out.
    """

    id_column: str
    text_column: str
    fingerprint_column: str
    delimiter: str
    quote: str
    charset: str
    id_from: Literal["record", "url"]
    status: Union[int, str]
    check_digests: bool


class SpecOptions(TypedDict, total=False):
    """Options of specs: how fingerprints are made. An archive keeps the spec that it was created with.

    tokenizer
        How a text is cut into features: "words+cjk-grams" (default), "words", "shingles-3", "code", ...
    fold
        Differences of letters that are ignored, too: "none" (default), or "marks", those of diacritics.
    normalize
        How a text is normalized first: "nfkc-casefold" (default), "nfkc", "as-is".
    markup
        Parses texts as HTML: "text" (what is visible), "main" (the same without navigation and the like), "article" (what a
        library for reader views finds), or "none"; by default "text" for WARC files and files of HTML, and "none" for others.
    stop_words
        File of words to leave out, one per line.
    weight
        Weight of a feature: "sqrt-tf" (default), "tf", "log-tf", "set", "levels".
    idf
        Table of document frequencies, which `dedup_job.idf` writes: rare features count more.
    idf_power
        Exponent of the inverse document frequency: "1", "3/4", "1/2" (default), "1/4".
    sketch
        Bits of the sketch that is stored beside each fingerprint: 0 (none, the default), 64, 128, 256.
    min_features
        Fewest distinct features of a text (default 4): with fewer, `short_texts` counts.
    short_texts
        What becomes of texts with too few features: "whole", only equal ones are near-duplicates (the default of sharp archives,
        and of texts without an archive); or "none", they have no fingerprint (the default elsewhere).
    template
        Whether the template of a document's source, passages that many of its pages share, is left out of its text: "on" (the
        default of sharp archives, and of runs without an archive), "domains" (hosts of one registrable domain are one source), or
        "off" (the default elsewhere).
    hash_seed
        Seed of the feature hash (default 0).
    """

    tokenizer: str
    fold: str
    normalize: str
    markup: str
    stop_words: Path
    weight: str
    idf: Path
    idf_power: str
    sketch: int
    min_features: int
    short_texts: str
    template: str
    hash_seed: int


class CompareOptions(CommonOptions, ColumnOptions, SpecOptions, total=False):
    """Options of `pairs`, `decide` and `run`. For fingerprints and texts in memory, `pairs` takes those of specs, and `threads`.

    within
        With an archive: also find pairs within the batch (the default).
    min_similarity
        Smallest similarity of a verified pair, from 0 to 1 (by default that of the archive, or else 0.8 and by sketch 0.755).
    profile
        Settings of k and verify that go together, instead of those of the archive: "sharp" or "paper".
    base_text
        Files with the documents of the archive, whose texts are compared by `verify`.
    day
        Date of the batch; or, for WARC files, "from-records": the day on which their documents were fetched.
    design
        Design of the tables; by default the cheapest that fits the memory limit.
    """

    within: bool
    min_similarity: float
    profile: str
    base_text: Union[Path, Iterable[Path]]
    day: Day
    design: str


class DecideOptions(CompareOptions, total=False):
    """Options of `decide` and `run`.

    kept
        File or directory for the kept documents, in the format of the batch. With a job, True is a place beside it.
    prefer
        Which of near-duplicates to keep: rules such as "quality:desc,longest", or a list of them. "COLUMN" is its smallest value,
        "COLUMN:desc" its largest; see `dedup-job run --help` for the others. The default is the longest text.
    on_update
        Which captures count if the archive has another content of a document: "both" (the default), "keep-new", "keep-old";
        or "ignore", both, without looking.
    pins
        File of what people say of documents, CSV or JSON Lines of pin, id and other: "same" or "distinct" with two ids, "keep"
        with one, "forget" with either.
    columns
        Columns of the batch that go along to the decisions, behind their own: a name or several. `run` needs `decisions` for
        them. Columns of Parquet files and of tables keep their types, others are text.
    drop_empty
        Drop empty documents, too.
    source
        Column that says where a document is from, to count what each source loses: a name, or a URL, of which the host counts.
        By default the column url, or else ids that are URLs.
    audit
        Compare this number of dropped documents, drawn at random, with those that they repeat, by their texts. The summary
        says how many are less similar than the least similarity.
    max_dropped
        Raise `DataError`, before anything is published, if more than this share of the documents is dropped, from 0 to 1; or
        of those of a source with ten or more.
    refuse_repeats
        Raise `DataError` if more than nine tenths of the batch are duplicates of one day of the archive.
    min_new
        Raise `DataError`, before anything is published, if the batch has fewer documents.
    strict
        Raise `DataError`, before anything is published, if a document or a file of the batch is not compared.
    allow_empty
        With append: commit a batch without documents, too.
    overwrite
        Replace existing files of any kind; by default, only earlier outputs of the same kind are replaced.
    append
        Commit the batch to the archive as a day: True or "all" for all documents, "kept" for those that are kept.
    replace_day
        With append: if the archive has the day with other documents, replace them.
    rows_per_file
        Maximum number of rows in a data file of the archive.
    resume
        Directory in which fingerprints are kept until the run succeeds, so that a repeated run need not compute them again.
    fingerprints
        File (.parquet) for the fingerprints of the batch.
    max_hits_per_document
        Keep only this many pairs of each document of the batch, the nearest.
    metrics
        File for metrics, or http(s):// URL of a gateway. The URL may have a password: it goes to the program by the
        environment, which other users cannot read, and is not in the list of processes.
    """

    kept: Union[Path, Literal[True]]
    prefer: Union[str, Sequence[str]]
    on_update: Literal["both", "keep-new", "keep-old", "ignore"]
    pins: Path
    columns: Union[str, Sequence[str]]
    drop_empty: bool
    source: str
    audit: int
    max_dropped: float
    refuse_repeats: bool
    min_new: int
    strict: bool
    allow_empty: bool
    overwrite: bool
    append: Union[bool, Literal["all", "kept"]]
    replace_day: bool
    rows_per_file: int
    resume: Path
    fingerprints: Path
    max_hits_per_document: int
    metrics: str


class RunOptions(DecideOptions, total=False):
    """Options of `run`: all those of `dedup-job run`, with underscores for dashes.

    k
        Largest distance of a pair, from 0 to 16; by default see `profile`.
    verify
        Compare the two documents of each pair, and drop pairs below min_similarity: "jaccard", "cosine", "edit", "sketch"; or
        "none". By default see `profile`.
    decisions
        File with one row per document: whether it is kept, and if not, which document it duplicates. With a job, True is a
        file beside it.
    batch
        Name of the batch, if its day has several.
    pairs
        "classes": of documents with equal fingerprints, one pair each, with the first of them, and only the first has pairs with
        others; by default "all" pairs.
    """

    batch: str
    pairs: Literal["all", "classes"]
    k: int
    verify: str
    decisions: Union[Path, Literal[True]]


def _list_inherited(options: Any, *bases: Any) -> None:
    """Append the options of the bases to the documentation of a class, so that `help` shows all of them."""
    listed = [inspect.getdoc(base) or "" for base in bases]
    options.__doc__ = "\n\n".join([inspect.getdoc(options) or "", *listed])


_list_inherited(CommonOptions, StorageOptions)
_list_inherited(CompareOptions, ColumnOptions, SpecOptions, CommonOptions)
_list_inherited(DecideOptions, CompareOptions)
_list_inherited(RunOptions, DecideOptions)


def argument_name(option: str) -> str | None:
    """The keyword argument for an option of the command without its dashes; None if there is none."""
    for name, renamed in _RENAMED.items():
        if option == renamed:
            return name
    name = option.replace("-", "_")
    return name if name in RunOptions.__annotations__ or name in _OTHER_NAMES else None


#: Keyword arguments that are not in `RunOptions`.
_OTHER_NAMES = frozenset(
    {"archive_size", "base", "day_size", "decisions", "documents", "id_type", "ids", "keep_job", "learn", "new", "older_than"}
    | {"output", "parts", "restart", "round", "sample", "top"}
)


def to_arguments(options: Mapping[str, Any]) -> list[str]:
    """The options as arguments of the command.

    Underscores become dashes. None gives nothing, True the bare option, a list or other iterable one option per item.
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
            # Only `within` is on by default, so only it has an opposite. `CommonOptions.config` says what follows.
            arguments += ["--no-within"] if name == "within" else []
        elif isinstance(value, Iterable) and not isinstance(value, (str, bytes, os.PathLike)):
            arguments += [f"{flag}={_to_text(item)}" for item in value]
        else:
            arguments.append(f"{flag}={_to_text(value)}")
    return arguments


def storage_arguments(options: Mapping[str, Any]) -> dict[str, str]:
    """The options of object stores among `options`, as text, for the extension module."""
    given = {name: options[name] for name in StorageOptions.__annotations__ if options.get(name) is not None}
    return {name: str(value).lower() if isinstance(value, bool) else _to_text(value) for name, value in given.items()}


def paths_to_list(paths: Path | Iterable[Path]) -> list[str]:
    """One path or several as a list of texts."""
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    return [os.fspath(path) for path in paths]


def names_to_list(names: Union[str, Sequence[str], None]) -> list[str]:
    """Names of columns as a list: of one text with commas, as the command takes it, or of several texts."""
    texts = [names] if isinstance(names, str) else names or []
    return [name for text in texts for name in text.split(",")]


def _to_text(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        value = value.date()
    if isinstance(value, datetime.timedelta):
        return f"{round(value.total_seconds() * 1000)}ms"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
