"""Data that functions take: Arrow by the PyCapsule interface, NumPy arrays, sequences, paths."""

from __future__ import annotations

import fcntl
import logging
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol, Union

from . import _native
from ._errors import UsageError
from ._options import Path, names_to_list, paths_to_list
from ._typing import Lazy

if TYPE_CHECKING:
    import numpy
    from typing_extensions import TypeGuard
else:
    numpy = Lazy("numpy")

_LOG = logging.getLogger("dedup_job")

#: What a command reads of documents: fingerprints if there are any, else texts; texts only; or texts beside fingerprints.
Reads = Literal["either", "texts", "both"]


class ArrowStream(Protocol):
    """Anything that hands over Arrow data in chunks: a table or column of pyarrow, Polars, pandas, DuckDB, ..."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class ArrowArray(Protocol):
    """Anything that hands over one Arrow array, such as a pyarrow.Array."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...


#: A table or a column in memory.
Arrow = Union[ArrowStream, ArrowArray]
#: A column of texts: an Arrow column or table, or a sequence of str, bytes and None.
Texts = Union[Arrow, Iterable[Union[str, bytes, None]]]
#: A column of fingerprints: an Arrow column, a NumPy array of uint64 or int64, or a sequence of int and None.
Fingerprints = Union[Arrow, "numpy.typing.NDArray[numpy.integer[Any]]", Sequence[Union[int, None]]]


def to_arrow(data: Any) -> Any:
    """The data, or what it holds in Arrow: a datasets.Dataset has no Arrow interface itself.

    Raises
    ------
    UsageError
        For objects that iterate over something else than their rows, such as a dict.
    """
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return data
    package, name = type(data).__module__.split(".")[0], type(data).__name__
    if data is None or isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name} is neither data nor a path; a path is a str or an os.PathLike")
    if isinstance(data, Mapping):
        raise UsageError("a dict is neither a table nor a column: make a frame of it, or pass one of its values")
    if package == "datasets" and name.startswith("Iterable"):
        raise UsageError("a streamed dataset is not in memory: pass batches of it, or the paths of its files")
    if package == "datasets" and hasattr(data, "with_format"):
        return data.with_format("arrow")[:]
    if name == "LazyFrame":
        raise UsageError("a LazyFrame holds no data yet: collect() it first")
    if hasattr(type(data), "columns"):
        raise UsageError(
            f"the {name} of {package} has no Arrow interface: convert it to a table of pyarrow, Polars, or pandas 2.2 or later"
        )
    return data


def collect_paths(data: Any) -> Any:
    """The data; a list of paths if it is an iterator over them, such as `pathlib.Path.glob` returns."""
    if not isinstance(data, (Iterator, set, frozenset)) or hasattr(data, "__arrow_c_stream__"):
        return data
    return list(data)


def is_path(data: Any) -> TypeGuard[Union[Path, list[Path]]]:
    """Whether it is a path or URL, or a list of pathlib paths; a list of str may be texts."""
    if isinstance(data, (list, tuple)) and data:
        return all(isinstance(item, os.PathLike) for item in data)
    return isinstance(data, (str, os.PathLike))


def are_paths(data: Any) -> TypeGuard[Union[Path, list[Path]]]:
    """Whether it is a path or URL, or a list of them, where texts are not expected."""
    if isinstance(data, (list, tuple)):
        return all(isinstance(item, (str, os.PathLike)) for item in data)
    return is_path(data)


def is_numpy(data: Any) -> bool:
    """Whether it is a NumPy array; NumPy is not imported for that."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(data, numpy.ndarray)


def open_data(data: Any) -> tuple[str, Any]:
    """The kind of data (table, texts, fingerprints, or the name of an Arrow type), and an object that _native takes."""
    if is_numpy(data):
        # Floats and booleans are no fingerprints, and the error should say so.
        if data.dtype.kind in "biufc":
            return "fingerprints", fingerprint_array(data)
        return "texts", _native.text_array(data)
    opened = _native.ArrowData.open(to_arrow(data))
    if opened is not None:
        return opened.kind, opened
    items = data if isinstance(data, (list, tuple)) else list(data)
    first = next((item for item in items if not _is_missing(item)), None)
    if first is None:
        return "texts", _native.text_array([None] * len(items))
    if isinstance(first, Mapping):
        raise UsageError("a list of dicts is no table: make a frame of it, such as pandas.DataFrame(rows)")
    if isinstance(first, (str, bytes)):
        _refuse_paths(items)
        return "texts", _native.text_array(items)
    return "fingerprints", fingerprint_array(items)


def _is_missing(item: Any) -> bool:
    """Whether an item stands for a missing value: None, NaN or pandas.NA."""
    return item is None or (isinstance(item, float) and item != item) or type(item).__name__ == "NAType"


def _refuse_paths(items: Sequence[Any]) -> None:
    """Raise an error if a list of str, which is one of texts, names files."""
    if all(isinstance(item, str) and len(item) < 4096 and "\0" not in item and os.path.isfile(item) for item in items):
        raise UsageError(f"a list of str is a list of texts, but {items[0]!r} is a file: make the items pathlib.Path")


def fingerprint_array(data: Any) -> _native.Array:
    """Fingerprints as a native array."""
    if isinstance(data, _native.Array):
        # NumPy's view of it, which a later conversion might take, has no nulls.
        return data
    if not is_numpy(data):
        return _native.fingerprint_array(to_arrow(data))
    import numpy

    if data.dtype.kind not in "iu":
        lost = ": conversion to floats has lost bits" if data.dtype.kind == "f" else ""
        raise UsageError(f"fingerprints are 64-bit integers, not {data.dtype}{lost}")
    mask = None
    if isinstance(data, numpy.ma.MaskedArray):
        mask = numpy.ascontiguousarray(numpy.ma.getmaskarray(data))
        data = data.data
    # Signed integers, as archives and DuckDB have them, are the same bits.
    data = numpy.require(data, numpy.int64 if data.dtype.kind == "i" else numpy.uint64, ["C", "A"])
    return _native.fingerprint_array(numpy.asarray(data), mask)


@contextmanager
def scratch_directory(scratch: Path | None) -> Iterator[str]:
    """A temporary directory in `scratch`, if that is local, else in the system's.

    If this process is killed, the next run of the program there removes the directory, as it does with its own: it finds the
    file .lock no longer locked.
    """
    parent = os.fspath(scratch) if scratch is not None and "://" not in os.fspath(scratch) else None
    if parent is not None:
        os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dedup-job-", dir=parent) as directory:
        path = os.path.join(directory, ".lock")
        with open(path, "wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                # The file system has no locks. Without the file, nobody removes the directory.
                os.unlink(path)
            yield directory


def write_batch(
    data: Any,
    directory: str,
    name: str = "batch",
    *,
    options: Mapping[str, Any],
    reads: Reads = "either",
    row_ids: bool = True,
) -> str:
    """Write data to a Parquet file below `directory`, for the program; return its path.

    Only the columns that a command with these options reads are written. With row_ids, a table without an id column gets one:
    the row numbers.
    """
    kind, opened = open_data(data)
    if kind == "table" and reads != "texts" and not options.get("quiet"):
        _warn_of_both(opened.column_names, options)
    needed = {
        # Kept rows are copied with all columns, and a configuration file may name any.
        "all": options.get("kept") is not None or options.get("config") is not None,
        "texts": reads != "either",
        "row_ids": row_ids,
        "prefer": _listed(options.get("prefer")),
        "source": options.get("source"),
        "carried": names_to_list(options.get("columns")),
        **{name: options.get(name) for name in ("id_column", "text_column", "fingerprint_column")},
    }
    path = os.path.join(directory, f"{name}.parquet")
    _native.write_parquet(opened, path, needed)
    return path


def file_paths(
    data: Any, directory: str, options: Mapping[str, Any], reads: Reads = "either", *, row_ids: bool = True
) -> list[str]:
    """The paths of documents, as a list of str is; those in memory are written to `directory`."""
    data = collect_paths(data)
    if are_paths(data):
        return paths_to_list(data)
    return [write_batch(data, directory, options=options, reads=reads, row_ids=row_ids)]


def run_reads(options: Mapping[str, Any]) -> Reads:
    """What a run reads of the batch: texts are compared by every measure but that of sketches."""
    texts_decide = options.get("verify") not in (None, "none", "sketch")
    return "both" if texts_decide or options.get("audit") is not None else "either"


def _listed(texts: Union[str, Sequence[str], None]) -> list[str]:
    """One text, or several, as a list."""
    return [texts] if isinstance(texts, str) else list(texts or [])


def _warn_of_both(columns: Sequence[str], options: Mapping[str, Any]) -> None:
    """Log a warning if a table has fingerprints and texts, and no option says which to use."""
    if options.get("text_column") is not None or options.get("fingerprint_column") is not None:
        return
    texts = [name for name in _native.TEXT_NAMES if name in columns]
    if "fp" in columns and texts:
        _LOG.warning(
            'the table has texts (%r) and a column "fp": the texts are used; say so by text_column=%r, or take the fingerprints by '
            'fingerprint_column="fp"',
            texts[0],
            texts[0],
        )
