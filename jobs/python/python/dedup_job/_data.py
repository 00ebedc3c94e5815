"""Data that functions take: Arrow by the PyCapsule interface, NumPy arrays, sequences, paths."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, Union

from . import _native
from ._options import Path

if TYPE_CHECKING:
    import numpy
    from typing_extensions import TypeGuard


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
    """The data, or what it holds in Arrow: a datasets.Dataset has no Arrow interface itself."""
    if type(data).__module__.split(".")[0] == "datasets" and hasattr(data, "with_format"):
        return data.with_format("arrow")[:]
    return data


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
        if data.dtype.kind in "iu":
            return "fingerprints", fingerprint_array(data)
        return "texts", _native.text_array(data)
    opened = _native.ArrowData.open(to_arrow(data))
    if opened is not None:
        return opened.kind, opened
    items = data if isinstance(data, (list, tuple)) else list(data)
    first = next((item for item in items if item is not None), None)
    if isinstance(first, (str, bytes)) or first is None:
        return "texts", _native.text_array(items)
    return "fingerprints", fingerprint_array(items)


def fingerprint_array(data: Any) -> _native.Array:
    """Fingerprints as a native array."""
    if not is_numpy(data):
        return _native.fingerprint_array(to_arrow(data))
    import numpy

    mask = None
    if isinstance(data, numpy.ma.MaskedArray):
        mask = numpy.ascontiguousarray(numpy.ma.getmaskarray(data))
        data = data.data
    # Signed integers, as archives and DuckDB have them, are the same bits.
    data = numpy.require(data, numpy.int64 if data.dtype.kind == "i" else numpy.uint64, ["C", "A"])
    return _native.fingerprint_array(numpy.asarray(data), mask)


@contextmanager
def scratch_directory(scratch: Path | None) -> Iterator[str]:
    """A temporary directory in `scratch`, if that is local, else in the system's."""
    parent = os.fspath(scratch) if scratch is not None and "://" not in os.fspath(scratch) else None
    if parent is not None:
        os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dedup-job-", dir=parent) as directory:
        yield directory


def write_batch(data: Any, directory: str, name: str = "batch") -> str:
    """Write data to a Parquet file below `directory`, for the program; return its path.

    A table without an id column gets one: the row numbers.
    """
    _, opened = open_data(data)
    path = os.path.join(directory, f"{name}.parquet")
    _native.write_parquet(opened, path, True)
    return path
