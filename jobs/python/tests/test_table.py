"""Results: they can be pickled, and their signatures name public classes."""

import copy
import datetime
import decimal
import inspect
import multiprocessing
import pickle
import typing

import numpy
import pyarrow
import pytest

import dedup_job
from conftest import TESTDATA, import_or_skip


def copies(value):
    """Copies by every protocol, and by copy."""
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        yield pickle.loads(pickle.dumps(value, protocol))
    yield copy.deepcopy(value)


def test_tables_can_be_pickled(documents, texts):
    tables = [
        dedup_job.pairs(texts, k=6),
        dedup_job.pairs([1, 2**63], k=0),
        # Dates, strings, truth values and nulls.
        dedup_job.decide(documents, TESTDATA / "archive"),
    ]
    for table in tables:
        for copied in copies(table):
            assert type(copied) is dedup_job.Table and copied.summary == table.summary
            assert copied.to_pyarrow().equals(table.to_pyarrow()) and copied.to_pylist() == table.to_pylist()


def test_tables_come_back_from_other_processes(texts):
    expected = dedup_job.pairs(texts).to_pylist()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(dedup_job.pairs, [texts]).to_pylist() == expected


def test_columns(texts):
    given = [*texts[:20], None, "404"]
    column = dedup_job.fingerprint_arrow(given)
    expected = dedup_job.fingerprint(given)
    assert isinstance(column, dedup_job.Column) and len(column) == 22 and column.null_count == 2
    assert column.to_pylist() == column.to_pyarrow().to_pylist() == expected.tolist()
    assert column.to_numpy().tolist() == expected.tolist() and column.to_numpy().dtype == numpy.uint64
    assert import_or_skip("polars").Series(column).to_list() == column.to_polars().to_list() == expected.tolist()
    assert dedup_job.pairs(column, k=6).to_pylist() == dedup_job.pairs(expected, k=6).to_pylist()
    assert dedup_job.distance(column, expected).tolist() == 20 * [0] + 2 * [None]
    for copied in copies(column):
        assert type(copied) is dedup_job.Column and copied.to_pylist() == expected.tolist()
    assert pickle.loads(pickle.dumps(dedup_job.fingerprint_arrow([]))).to_pylist() == []


def test_a_column_is_a_sequence_whose_nulls_stay_missing(texts):
    pandas = import_or_skip("pandas")
    column = dedup_job.fingerprint_arrow([texts[0], None, "404"])
    assert list(column) == column.to_pylist() == [column[0], None, None]
    assert column[-1] is None and column[:2] == [column[0], None]
    assert pandas.array(column).isna().tolist() == [False, True, True]
    for make in (numpy.asarray, numpy.array):
        with pytest.raises(ValueError, match="2 of the 3 values are null"):
            make(column)
    assert numpy.asarray(column, dtype=object).tolist() == list(column)
    whole = dedup_job.fingerprint_arrow(texts[:3])
    frame = pandas.DataFrame({"text": texts[:3]}).assign(fp=whole)
    assert frame["fp"].dtype == numpy.uint64 and frame["fp"].tolist() == list(whole)


def test_annotations_can_be_evaluated():
    for name in dedup_job.__all__:
        value = getattr(dedup_job, name)
        members = [member for member in vars(value).values() if inspect.isfunction(member)] if inspect.isclass(value) else []
        for annotated in [value, *members]:
            if inspect.isfunction(annotated) or inspect.isclass(annotated):
                typing.get_type_hints(annotated)


def test_values_of_all_types(documents):
    rows = len(documents)
    numbers = list(range(rows))
    start = datetime.datetime(2026, 1, 31, 12, 30, 15, 250_000)
    times = [start + datetime.timedelta(milliseconds=number) for number in numbers]
    carried = {
        **{f"{kind}": pyarrow.array(numbers, kind) for kind in (pyarrow.int16(), pyarrow.uint16(), pyarrow.uint32())},
        "float": pyarrow.array(numbers, pyarrow.float32()),
        "time": pyarrow.array(times, pyarrow.timestamp("us")),
        "zone": pyarrow.array(times, pyarrow.timestamp("ms", "UTC")),
        "date": pyarrow.array([time.date() for time in times]),
        "decimal": pyarrow.array([decimal.Decimal(number) / 4 for number in numbers], pyarrow.decimal128(10, 2)),
        "bytes": pyarrow.array([b"\xff%d" % number for number in numbers]),
    }
    table = documents.select(["id", "text"])
    for name, column in carried.items():
        table = table.append_column(name, column)
    decided = dedup_job.decide(table, columns=list(carried))
    expected = {row["id"]: row for row in table.to_pylist()}
    for row in decided.to_pylist():
        assert all(row[name] == expected[row["id"]][name] for name in carried)
    arrow = decided.to_pyarrow()
    for name in carried:
        values = decided.to_numpy(name)
        assert values.shape == (rows,)
        if name != "zone":
            assert values.tolist() == arrow[name].to_pylist()
        assert numpy.asarray(dedup_job._table.column_of(decided._native.column(name))).shape == (rows,)
    assert decided.to_numpy("float").dtype == numpy.float32
    with pytest.raises(TypeError, match="to_pyarrow"):
        dedup_job._table.column_of(dedup_job._native.Table.from_ipc(ipc_of_lists()).column("a")).to_pylist()


def ipc_of_lists():
    """A table with a column of lists, as an Arrow IPC stream."""
    table = pyarrow.table({"a": [[1], [2, 3]]})
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_ids_with_nulls_stay_exact_in_pandas():
    import_or_skip("pandas")
    texts = ["the quick brown fox jumps over the lazy dog", "the quick brown fox jumps over the lazy dog", "one two three four five"]
    ids = [2**53 + 1, 2**53 + 3, 7]
    frame = dedup_job.decide(pyarrow.table({"id": ids, "text": texts})).to_pandas()
    assert sorted(frame["id"].tolist()) == sorted(ids)
    assert frame["duplicate_of"].dropna().tolist() == [2**53 + 1]


def test_rows_of_archives_can_be_pickled(archive):
    rows = archive.to_arrow(["id", "day"], ["2026-01-02"])
    assert pyarrow.table(pickle.loads(pickle.dumps(rows))).equals(pyarrow.table(rows))


def public_functions(value):
    """The functions that a name of the package stands for: itself, or the public methods and the constructor of a class."""
    if inspect.isfunction(value):
        yield value
    for name, member in vars(value).items() if inspect.isclass(value) else ():
        member = getattr(member, "__func__", getattr(member, "fget", member))
        if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
            yield member


@pytest.mark.parametrize("name", dedup_job.__all__)
def test_signatures_name_public_classes(name):
    for function in public_functions(getattr(dedup_job, name)):
        assert "native" not in str(inspect.signature(function)).lower(), function
