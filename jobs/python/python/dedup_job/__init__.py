"""Exact near-duplicate detection for text, at any scale.

    >>> import dedup_job
    >>> clean = frame[dedup_job.decide(frame).to_numpy("kept")]

Functions that work in this process, with the GIL released:

- `fingerprint`, `fingerprint_arrow`: the 64-bit simhash of each text
- `sketch`, `similarity`: sketches of texts, and the Jaccard similarity that two sketches estimate
- `distance`: the number of bits in which fingerprints differ
- `pairs`: every pair within k bits, in a set of fingerprints or between two sets
- `Index`: lookups of single documents in microseconds

Functions that run the program `dedup-job` in a process of its own; what is in memory is handed over as a Parquet file:

- `decide`: which documents of a batch to keep
- `pairs`, with a table, a path, or the path of an archive
- `run`: the nightly job, with all options of the command (`help(dedup_job.RunOptions)`), also on Spark, Ray, Dask and other
  engines (`help(dedup_job.executors)`)
- `split`, `Job`: the same run in parts, which any machine does
- `Archive`: create, append, remove, read
- `explain`, `tune`, `idf`, `build_index`

Those of either kind that may take long report their progress (`progress=`), and stop at Ctrl-C.

Tables and columns may be of pyarrow, Polars, pandas, DuckDB or Hugging Face datasets, and results go back to them, by Arrow's
PyCapsule interface; they can be pickled. Fingerprints are NumPy arrays of uint64. Errors are subclasses of `DedupJobError`, one
for each exit code of the program; log lines go to the logger "dedup_job".
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: F401 - annotations of `Job` name it

from . import executors
from ._archive import Archive, ArchiveRows
from ._errors import (
    ConfigurationError,
    DataError,
    DedupJobError,
    FileError,
    InternalError,
    PermissionDeniedError,
    StoppedError,
    TryAgainError,
    UnreachableError,
    UsageError,
)
from ._functions import distance, fingerprint, fingerprint_arrow, similarity, sketch
from ._index import Index
from ._jobs import TuneOptions as TuneOptions
from ._jobs import build_index, decide, explain, idf, pairs, run, tune
from ._native import __version__
from ._options import CommonOptions as CommonOptions
from ._options import CompareOptions as CompareOptions
from ._options import DecideOptions as DecideOptions
from ._options import RunOptions as RunOptions
from ._options import SpecOptions as SpecOptions
from ._options import StorageOptions as StorageOptions
from ._progress import Progress
from ._spec import Spec
from ._split import Job, split
from ._summary import Summary
from ._table import Column, Table
from ._tuned import Tuned

# Without the types of options: `help` would list each with the methods of a dict.
__all__ = [
    "Archive",
    "ArchiveRows",
    "Column",
    "ConfigurationError",
    "DataError",
    "DedupJobError",
    "FileError",
    "Index",
    "InternalError",
    "Job",
    "PermissionDeniedError",
    "Progress",
    "Spec",
    "StoppedError",
    "Summary",
    "Table",
    "TryAgainError",
    "Tuned",
    "UnreachableError",
    "UsageError",
    "__version__",
    "build_index",
    "decide",
    "distance",
    "executors",
    "explain",
    "fingerprint",
    "fingerprint_arrow",
    "idf",
    "pairs",
    "run",
    "similarity",
    "sketch",
    "split",
    "tune",
]

# Errors and help name them as users import them.
for _name in __all__:
    _value = globals()[_name]
    if getattr(_value, "__module__", "").startswith("dedup_job._"):
        try:
            _value.__module__ = "dedup_job"
        except (AttributeError, TypeError):
            pass
del _name, _value
