"""Functions on data in memory."""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING, Any

from . import _native
from ._data import Fingerprints, Texts, fingerprint_array, is_numpy, to_arrow
from ._errors import UsageError
from ._progress import ProgressOption, native_progress
from ._spec import SpecLike, to_spec
from ._table import Column, column_of, masked
from ._typing import Lazy

if TYPE_CHECKING:
    import numpy
    import numpy.typing
else:
    numpy = Lazy("numpy")

#: Bytes that a pair in memory takes at most: 20 in the result, and 36 more while it is made.
_PAIR_BYTES = 56


def fingerprint(
    texts: Texts,
    spec: SpecLike = None,
    *,
    column: str | None = None,
    threads: int | None = None,
    progress: ProgressOption = None,
) -> numpy.ma.MaskedArray[Any, numpy.dtype[numpy.uint64]]:
    """Compute the 64-bit simhash of each text.

    Parameters
    ----------
    texts
        A column of texts of pyarrow, Polars, pandas or DuckDB, which is read without a copy; or a sequence of str, bytes and
        None. Bytes that are not UTF-8 become replacement characters (U+FFFD).
    spec
        How fingerprints are made: a `Spec`, a dict of its options, or the path of an archive, for the archive's spec. The
        default is the spec of a new archive.
    column
        If `texts` is a table: its column of texts. The default is its only column, or the one named text, content,
        raw_content, plain_text or body.
    threads
        Number of threads; by default one per core. Other Python threads run meanwhile: the GIL is released.
    progress
        A function that is called with a `Progress` several times a second, and at the end; or True, to show a line on standard
        error; or False, to show nothing. By default, a line is shown in notebooks only. A line is shown only if the call takes
        a while. An exception of the function ends the call.

    Returns
    -------
    numpy.ma.MaskedArray of uint64, shape (n,)
        One fingerprint per text. It is masked if the text is None, or has fewer than `min_features` (4) distinct features,
        as "404" has: such a text has no near-duplicates, and `pairs` leaves it out. `.tolist()` gives None for it, `.data`
        gives 0.

    Notes
    -----
    Assigned to a column of pandas, a masked array becomes float64, which loses bits. Assign this instead:

    >>> frame["fp"] = pandas.arrays.IntegerArray(made.data, numpy.ma.getmaskarray(made))

    For Polars and pyarrow, `fingerprint_arrow` returns the same fingerprints as an Arrow array with nulls.

    Examples
    --------
    >>> dedup_job.fingerprint(["The quick brown fox jumps over the lazy dog", "404"])
    """
    made: numpy.ma.MaskedArray[Any, numpy.dtype[numpy.uint64]]
    made = masked_array(_fingerprint(texts, spec, column, threads, progress))
    return made


def fingerprint_arrow(
    texts: Texts,
    spec: SpecLike = None,
    *,
    column: str | None = None,
    threads: int | None = None,
    progress: ProgressOption = None,
) -> Column:
    """Compute the 64-bit simhash of each text, as `fingerprint` does, without NumPy.

    Parameters
    ----------
    texts, spec, column, threads, progress
        See `fingerprint`.

    Returns
    -------
    Column of uint64, length n
        Null for a text without a fingerprint. `pyarrow.array(result)` and `polars.Series(result)` share its memory.
    """
    return column_of(_fingerprint(texts, spec, column, threads, progress))


def sketch(
    texts: Texts,
    spec: SpecLike = None,
    bits: int | None = None,
    *,
    column: str | None = None,
    threads: int | None = None,
    progress: ProgressOption = None,
) -> numpy.ma.MaskedArray[Any, numpy.dtype[numpy.uint8]]:
    """Compute the sketch of each text: one bit of each of 64 to 256 minhashes, from which `similarity` is estimated.

    Parameters
    ----------
    texts, spec, column, threads, progress
        See `fingerprint`.
    bits
        Size of a sketch: 64, 128 or 256 bits. The default is the spec's `sketch`, or 128 if the spec has none. At a similarity
        of 0.7, the standard error of the estimate is 0.09, 0.06 or 0.045.

    Returns
    -------
    numpy.ma.MaskedArray of uint8, shape (n, bits / 8)
        One row per text. The row of a text without a fingerprint is masked.
    """
    model = to_spec(spec)._load()
    if bits is not None or '"sketch"' not in model.json:
        model = model.with_sketch(128 if bits is None else bits)
    made: numpy.ma.MaskedArray[Any, numpy.dtype[numpy.uint8]]
    with native_progress(progress) as report:
        made = masked_array(_native.sketch(model, _texts(texts), column, threads, report))
    return made


def distance(a: Any, b: Any) -> Any:
    """Count the bits in which fingerprints differ: their Hamming distance, from 0 to 64.

    Parameters
    ----------
    a, b
        Fingerprints: an int, or an array of uint64, or of int64 with the same bits. Shapes are broadcast as in NumPy.

    Returns
    -------
    int, if a and b are ints; else numpy.ndarray of uint8
        A distance is masked if a or b is.

    Examples
    --------
    >>> dedup_job.distance(0b1011, 0b0001)
    2
    """
    if isinstance(a, int) and isinstance(b, int):
        return bin(_bits(a) ^ _bits(b)).count("1")
    import numpy

    left, right = _unsigned(a), _unsigned(b)
    counts = _count_ones(numpy.bitwise_xor(numpy.ma.getdata(left), numpy.ma.getdata(right)))
    if not isinstance(left, numpy.ma.MaskedArray) and not isinstance(right, numpy.ma.MaskedArray):
        return counts
    return numpy.ma.MaskedArray(counts, mask=numpy.ma.getmaskarray(left) | numpy.ma.getmaskarray(right))


def similarity(a: numpy.typing.ArrayLike, b: numpy.typing.ArrayLike) -> numpy.ndarray[Any, numpy.dtype[numpy.float64]]:
    """Estimate the Jaccard similarity of texts, from 0 to 1, by their sketches.

    Parameters
    ----------
    a, b
        Sketches, as `sketch` returns them, of the same spec: uint8, shape (..., bits / 8). Shapes are broadcast as in NumPy.

    Returns
    -------
    numpy.ndarray of float64, shape (...)
    """
    import numpy

    left: numpy.ma.MaskedArray[Any, Any] = numpy.ma.asanyarray(a)
    right: numpy.ma.MaskedArray[Any, Any] = numpy.ma.asanyarray(b)
    if left.dtype != numpy.uint8 or right.dtype != numpy.uint8 or left.shape[-1] != right.shape[-1]:
        raise UsageError("sketches are arrays of uint8 of the same length")
    differing = _count_ones(numpy.bitwise_xor(left.data, right.data)).sum(axis=-1, dtype=numpy.int64)
    estimated = numpy.maximum(0.0, 1 - 2 * differing / (8 * left.shape[-1]))
    mask = numpy.ma.getmaskarray(left).any(axis=-1) | numpy.ma.getmaskarray(right).any(axis=-1)
    return numpy.ma.MaskedArray(estimated, mask=mask) if mask.any() else numpy.asarray(estimated)


def pairs_in_memory(
    new: _native.Array,
    base: _native.Array | None,
    k: int,
    threads: int | None,
    max_pairs: int | None,
    progress: ProgressOption,
) -> _native.Table:
    """The pairs of fingerprints in memory, by row numbers."""
    k = operator.index(k)
    if not 0 <= k <= 16:
        raise UsageError(f"k={k}: a distance is from 0 to 16 bits")
    memory = _memory()
    with native_progress(progress) as report:
        options = {
            "max_distance": k,
            "threads": threads,
            "memory": memory // 2,
            "max_pairs": memory // 4 // _PAIR_BYTES if max_pairs is None else max_pairs,
            "progress": report,
        }
        if base is None:
            return _native.pairs_within(new, options)
        return _native.pairs_between(new, base, options)


def masked_array(column: _native.Array) -> Any:
    """A native array as a masked array, whether or not it has nulls."""
    import numpy

    return masked(numpy.array(column), column)


def _fingerprint(
    texts: Texts, spec: SpecLike, column: str | None, threads: int | None, progress: ProgressOption
) -> _native.Array:
    with native_progress(progress) as report:
        return _native.fingerprint(to_spec(spec)._load(), _texts(texts), column, threads, report)


def _texts(texts: Any) -> Any:
    if isinstance(texts, (str, bytes)):
        raise UsageError("texts are a column or a list, not one text")
    return to_arrow(texts)


def _memory() -> int:
    """Bytes of memory of the machine or container."""
    limits = []
    # cgroup v2, then v1, as a container sees them.
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                limits.append(int(file.read()))
        except (OSError, ValueError):
            # No such file, or "max".
            pass
    try:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError):
        limits.append(8 << 30)
    return min(limits)


def _bits(fingerprint: int) -> int:
    """The 64 bits of a fingerprint, signed or unsigned, as an unsigned integer."""
    if not -(1 << 63) <= fingerprint < 1 << 64:
        raise OverflowError(f"{fingerprint} has more than 64 bits")
    return fingerprint & 0xFFFF_FFFF_FFFF_FFFF


def _unsigned(values: Any) -> Any:
    """Fingerprints as NumPy's uint64."""
    import numpy

    if isinstance(values, int):
        return numpy.asarray(_bits(values), dtype=numpy.uint64)
    if not is_numpy(values) and not isinstance(values, numpy.generic):
        values = masked_array(fingerprint_array(values))
        return values if values.mask.any() else numpy.ma.getdata(values)
    values = numpy.asanyarray(values)
    if values.dtype == numpy.int64:
        return values.view(numpy.uint64)
    if values.dtype.kind not in "iu":
        raise UsageError(f"fingerprints are 64-bit integers, not {values.dtype}")
    return values.astype(numpy.uint64, copy=False)


def _count_ones(values: numpy.typing.NDArray[Any]) -> numpy.typing.NDArray[numpy.uint8]:
    """The number of bits that are 1 in each value."""
    import numpy

    counts: numpy.typing.NDArray[numpy.uint8]
    if hasattr(numpy, "bitwise_count"):
        counts = numpy.bitwise_count(values)
        return counts
    # NumPy 1: by a table of bytes.
    table = numpy.array([bin(byte).count("1") for byte in range(256)], dtype=numpy.uint8)
    each = numpy.ascontiguousarray(values).view(numpy.uint8).reshape(*values.shape, values.dtype.itemsize)
    counts = table[each].sum(axis=-1, dtype=numpy.uint8)
    return counts
