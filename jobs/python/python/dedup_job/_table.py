"""Results: columns and rows in Arrow."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from . import _native
from ._native import Array as NativeArray
from ._native import Table as NativeTable
from ._native import array_of
from ._summary import Summary
from ._typing import Lazy

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars
    import pyarrow
else:
    numpy, pandas, polars, pyarrow = map(Lazy, ("numpy", "pandas", "polars", "pyarrow"))

_EPOCH = datetime.date(1970, 1, 1)


class Column:
    """A column in Arrow: `pyarrow.array(column)` and `polars.Series(column)` share its memory. It can be pickled."""

    _native: _native.Array

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return self._native.__arrow_c_array__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._native.__arrow_c_schema__()

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_pylist())

    def __getitem__(self, index: Any) -> Any:
        """The value at an index; of a slice, a list of values. Null is None."""
        return self._values()[index]

    def _values(self) -> list[Any]:
        """The values as Python objects, made once."""
        if "values" not in self.__dict__:
            self.__dict__["values"] = self.to_pylist()
        values: list[Any] = self.__dict__["values"]
        return values

    @property
    def null_count(self) -> int:
        """How many values are null."""
        return self._native.null_count

    def to_pyarrow(self) -> pyarrow.Array:
        """The values as a pyarrow.Array, without a copy."""
        import pyarrow

        return pyarrow.array(self)

    def to_polars(self) -> polars.Series:
        """The values as a polars.Series."""
        import polars

        return polars.Series(self)

    def to_numpy(self) -> numpy.ndarray[Any, Any]:
        """The values as a NumPy array of shape (n,); a masked array if there are nulls."""
        return to_numpy(self._native)

    def __array__(self, dtype: Any = None, copy: Any = None) -> numpy.ndarray[Any, Any]:
        if not self.null_count:
            values = self.to_numpy()
            return values if dtype is None else values.astype(dtype)
        import numpy

        # NumPy would drop the mask, and null would be 0.
        if dtype is None or numpy.dtype(dtype) != object:
            raise ValueError(f"{self.null_count} of the {len(self)} values are null: to_numpy() masks them, to_pylist() has None")
        return numpy.array(self.to_pylist(), dtype=object)

    def to_pylist(self) -> list[Any]:
        """The values as Python objects."""
        return _python_values(self._native)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle_column, (NativeTable.from_columns([""], [self._native]).to_ipc(),)

    def __repr__(self) -> str:
        return f"Column({len(self):,} values: {self._native.data_type})"


class Table:
    """Rows in Arrow. pyarrow, Polars and DuckDB share its memory: `polars.DataFrame(table)`, `select ... from table`.

    `summary` is the summary of the job that made the rows. If there was no job, it has only `hits`, the number of rows. A table
    can be pickled, with its summary.
    """

    _native: _native.Table
    summary: Summary

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._native.__arrow_c_schema__()

    def __len__(self) -> int:
        return self._native.num_rows

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in order."""
        return self._native.column_names

    def to_pyarrow(self) -> pyarrow.Table:
        """The rows as a pyarrow.Table, without a copy."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas.DataFrame; needs pyarrow. Integers of 64 bits with nulls, such as ids, become Int64 or UInt64."""
        import pandas
        import pyarrow

        rows = self.to_pyarrow()
        frame: pandas.DataFrame = rows.to_pandas()
        # pandas would make floats of them, and change those above 2**53.
        exact = {pyarrow.int64(): pandas.Int64Dtype(), pyarrow.uint64(): pandas.UInt64Dtype()}
        for name in rows.column_names:
            if rows[name].null_count and rows.schema.field(name).type in exact:
                frame[name] = rows.select([name]).to_pandas(types_mapper=exact.get)[name]
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The rows as a polars.DataFrame."""
        import polars

        return polars.DataFrame(self)

    def to_numpy(self, column: str) -> numpy.ndarray[Any, Any]:
        """A column as a NumPy array of shape (n,); a masked array if it has nulls.

        Integers, floats, booleans and times keep their type, dates become datetime64[D], and others, such as strings, Python
        objects.
        """
        return to_numpy(self._native.column(column))

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dicts."""
        columns = [_python_values(self._native.column(name)) for name in self.column_names]
        return [dict(zip(self.column_names, row)) for row in zip(*columns)]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle_table, (self._native.to_ipc(), self.summary)

    def __repr__(self) -> str:
        return f"Table({len(self):,} rows: {', '.join(self.column_names)})"


def column_of(native: NativeArray) -> Column:
    """The column with the values of a native array."""
    column = Column()
    column._native = native
    return column


def table_of(native: NativeTable, summary: Summary | None = None) -> Table:
    """The table with the rows of a native one. Without the summary of a job, it gets one with the number of rows."""
    table = Table()
    table._native = native
    table.summary = Summary({"hits": native.num_rows}) if summary is None else summary
    return table


def table_of_rows(kinds: dict[str, str], rows: list[dict[str, Any]], summary: Summary) -> Table:
    """The table with `rows`; `kinds` says which columns it has, and whether each is bool, float, int or str."""
    columns = [array_of(kind, [row[name] for row in rows]) for name, kind in kinds.items()]
    return table_of(NativeTable.from_columns(list(kinds), columns), summary)


def _unpickle_column(stream: bytes) -> Column:
    return column_of(NativeTable.from_ipc(stream).column(""))


def _unpickle_table(stream: bytes, summary: Summary) -> Table:
    return table_of(NativeTable.from_ipc(stream), summary)


def _python_values(column: NativeArray) -> list[Any]:
    values = column.to_pylist()
    kind = column.data_type
    make: Callable[[Any], Any]
    if kind == "Date32":
        make = lambda days: _EPOCH + datetime.timedelta(days)
    elif kind.startswith(("Timestamp", "Date64")):
        # A time without a zone, and one of any zone in UTC, as Arrow stores it.
        zone = datetime.timezone.utc if "Some" in kind or '"' in kind else None
        start = datetime.datetime(1970, 1, 1, tzinfo=zone)
        make = lambda microseconds: start + datetime.timedelta(microseconds=microseconds)
    elif kind.startswith("Duration"):
        make = lambda microseconds: datetime.timedelta(microseconds=microseconds)
    elif kind.startswith("Decimal"):
        make = decimal.Decimal
    else:
        return values
    return [None if value is None else make(value) for value in values]


def to_numpy(column: NativeArray) -> numpy.ndarray[Any, Any]:
    """A native array as a NumPy array of its own memory; a masked array if it has nulls."""
    import numpy

    if not hasattr(column, "__array_interface__"):
        # Strings, bytes, decimals: what NumPy has no type for.
        values = numpy.empty(len(column), dtype=object)
        values[:] = _python_values(column)
        return values
    values = numpy.array(column)
    if column.data_type == "Date32":
        values = values.astype("datetime64[D]")
    return masked(values, column) if column.null_count else values


def masked(values: numpy.ndarray[Any, Any], column: NativeArray) -> numpy.ma.MaskedArray[Any, Any]:
    """Values with the nulls of a native array as their mask; a null row of two dimensions is masked whole."""
    import numpy

    nulls = numpy.array(column.mask())
    if values.ndim == 2:
        nulls = numpy.repeat(nulls[:, None], values.shape[1], axis=1)
    return numpy.ma.MaskedArray(values, mask=nulls)
