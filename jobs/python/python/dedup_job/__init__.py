"""Exact near-duplicate detection for text, at any scale.

On data in memory, in this process with the GIL released:

- `fingerprint`, `fingerprint_arrow`: the 64-bit simhash of each text
- `sketch`, `similarity`: sketches, and the Jaccard similarity that they estimate
- `distance`: the number of bits in which fingerprints differ
- `pairs`: every pair within k bits, in a batch, between two sets, or with an archive
- `Index`: lookups in microseconds

As jobs, which run the program `dedup-job`:

- `decide`: which documents of a batch to keep
- `run`: what the command does every night, with all its options
- `Archive`: create, append, remove, read
- `explain`, `tune`, `idf`, `build_index`

Tables and columns come from pyarrow, Polars, pandas, DuckDB and Hugging Face datasets, and go back to them, by Arrow's
PyCapsule interface; fingerprints are NumPy arrays of uint64. Exceptions are subclasses of `DedupJobError`, one for each exit
code of the program.

    >>> import dedup_job
    >>> clean = frame[dedup_job.decide(frame).to_numpy("kept")]
"""

from __future__ import annotations

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
from ._jobs import TuneOptions, build_index, decide, explain, idf, pairs, run, tune
from ._native import __version__
from ._options import CommonOptions, RunOptions, SpecOptions
from ._progress import Progress
from ._spec import Spec
from ._summary import Summary
from ._table import Table

__all__ = [
    "Archive",
    "ArchiveRows",
    "CommonOptions",
    "ConfigurationError",
    "DataError",
    "DedupJobError",
    "FileError",
    "Index",
    "InternalError",
    "PermissionDeniedError",
    "Progress",
    "RunOptions",
    "Spec",
    "SpecOptions",
    "StoppedError",
    "Summary",
    "Table",
    "TryAgainError",
    "TuneOptions",
    "UnreachableError",
    "UsageError",
    "__version__",
    "build_index",
    "decide",
    "distance",
    "explain",
    "fingerprint",
    "fingerprint_arrow",
    "idf",
    "pairs",
    "run",
    "similarity",
    "sketch",
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
