"""Online lookups."""

from __future__ import annotations

import numbers
import os
import tempfile
from typing import TYPE_CHECKING, Any, Union

from . import _native
from ._data import Fingerprints, Texts, fingerprint_array, open_data
from ._errors import UsageError
from ._options import Path, StorageOptions, storage_arguments
from ._progress import ProgressOption, native_progress
from ._summary import Summary
from ._table import Table, table_of
from ._typing import Lazy, Unpack

if TYPE_CHECKING:
    import numpy
else:
    # `Fingerprints` names it.
    numpy = Lazy("numpy")


class Index:
    """An index of an archive, open for lookups in microseconds. `build_index` makes one.

    Lookups see the version that was the latest when the index was opened; `refresh` opens a newer one.

    Parameters
    ----------
    path
        Directory or URL of the index.
    cache
        Directory to which an index in an object store is copied; by default dedup-job/index below the user's cache.
    **storage
        Options of the object store: see `StorageOptions`.

    Examples
    --------
    >>> index = dedup_job.Index("index")
    >>> index.lookup(["a text to look up"], k=3).to_pandas()
    """

    def __init__(self, path: Path, *, cache: Path | None = None, **storage: Unpack[StorageOptions]) -> None:
        self.path = os.fspath(path)
        self._options = {"cache": cache, **storage}
        directory = _default_cache() if cache is None else os.fspath(cache)
        scratch = tempfile.gettempdir()
        self._native = _native.Index.open(self.path, directory, scratch, storage_arguments(storage))

    def lookup(
        self,
        queries: Union[str, int, Texts, Fingerprints],
        k: int | None = None,
        *,
        limit: int | None = None,
        min_similarity: float | None = None,
        source: str | None = None,
        threads: int | None = None,
        progress: ProgressOption = None,
    ) -> Table:
        """Find the documents within k bits of each query.

        Parameters
        ----------
        queries
            Texts or fingerprints: a column, a sequence, or one str or int. A text without a fingerprint finds nothing.
        k
            Largest distance, in bits, from 0 to 8; by default that of runs with the archive.
        limit
            The most documents for each query, the nearest first; by default all.
        min_similarity
            Leave out documents with a lower similarity to the text, as estimated by sketches; by default as in runs with the
            archive.
        source
            URL or source of the texts: the template of the source is left out of them, as in runs with the archive.
        threads
            Number of threads; by default one per core.
        progress
            See `fingerprint`.

        Returns
        -------
        Table
            One row per document found, sorted by query, distance and id: query (row number), id, distance (bits), day, fp
            (uint64), similarity (0 to 1; null for fingerprints, and without sketches).
        """
        kind, data = open_data([queries] if isinstance(queries, (str, numbers.Integral)) else queries)
        if kind not in ("fingerprints", "table", "texts"):
            raise UsageError(f"texts or fingerprints are needed, not {kind}")
        with native_progress(progress) as report:
            options = {
                "k": k,
                "limit": limit,
                "min_similarity": min_similarity,
                "source": source,
                "threads": threads,
                "progress": report,
            }
            if kind == "fingerprints":
                return table_of(self._native.lookup_fingerprints(fingerprint_array(data), options))
            return table_of(self._native.lookup_texts(data, None, options))

    def refresh(self) -> bool:
        """Open a newer version, if there is one; return whether there was."""
        return self._native.refresh()

    def info(self) -> Summary:
        """What the index holds: its archive, version, rows, days, bytes, and the largest k that it answers."""
        import json

        return Summary(json.loads(self._native.info()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.path, self._options)

    def __repr__(self) -> str:
        return f"Index({self.path!r})"


def _reopen(path: str, options: dict[str, Any]) -> Index:
    return Index(path, **options)


def _default_cache() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "dedup-job", "index")
