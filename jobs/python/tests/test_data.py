"""What functions take: what they refuse, because it would be taken for something else, and columns of any type."""

import pathlib
import tempfile

import numpy
import pyarrow
import pyarrow.parquet
import pytest

import dedup_job
from conftest import DAY, import_or_skip


def test_paths_by_iterators(tmp_path):
    directory = DAY.parent
    expected = dedup_job.run(DAY, output=tmp_path / "a.parquet").hits
    assert dedup_job.run(directory.glob("day.parquet"), output=tmp_path / "b.parquet").hits == expected
    assert dedup_job.run({DAY}, output=tmp_path / "c.parquet").hits == expected
    assert len(dedup_job.pairs(directory.glob("day.parquet"))) == expected
    assert len(dedup_job.decide(path for path in [DAY])) == 400
    assert dedup_job.idf(directory.glob("day.parquet"), tmp_path / "idf.parquet").documents == 400


def test_lists_of_str_are_texts_unless_they_name_files(tmp_path):
    for call in (dedup_job.pairs, dedup_job.decide):
        with pytest.raises(dedup_job.UsageError, match="pathlib.Path"):
            call([str(DAY), str(DAY)])
    assert len(dedup_job.decide([str(DAY), "one two three four five"])) == 2
    assert len(dedup_job.decide([DAY])) == 400


@pytest.mark.parametrize("call", [dedup_job.fingerprint, dedup_job.pairs, dedup_job.decide])
def test_what_iterates_over_something_else_than_rows(call, documents):
    """The keys of a dict and the names of columns are no texts."""
    columns = documents.to_pydict()
    wrong = [columns, type("OldFrame", (), {"columns": ["id", "text"], "__iter__": lambda self: iter(self.columns)})()]
    datasets, polars = import_or_skip("datasets"), import_or_skip("polars")
    wrong.append(polars.from_arrow(documents).lazy())
    wrong.append(datasets.Dataset(documents).to_iterable_dataset())
    wrong.append(datasets.DatasetDict({"train": datasets.Dataset(documents)}))
    for data in wrong:
        with pytest.raises(dedup_job.UsageError):
            call(data)


def other_columns(count):
    """Columns that a table of documents may have beside ids and texts."""
    yield pyarrow.array([["a", "b"][row % 2] for row in range(count)]).dictionary_encode()
    yield pyarrow.array([[1, 2]] * count)
    yield pyarrow.array([[1.0, 2.0]] * count, pyarrow.list_(pyarrow.float32(), 2))
    yield pyarrow.array([{"a": 1}] * count)
    yield pyarrow.nulls(count)
    yield pyarrow.array(["a"] * count).cast(pyarrow.string_view())
    yield pyarrow.array([1] * count, pyarrow.duration("us"))
    polars = import_or_skip("polars")
    yield polars.Series(["a", "b"] * (count // 2), dtype=polars.Categorical)
    yield polars.Series(["a", "b"] * (count // 2), dtype=polars.Enum(["a", "b"]))


@pytest.mark.parametrize("number", range(9))
def test_other_columns(documents, number, tmp_path):
    polars = import_or_skip("polars")
    column = list(other_columns(400))[number]
    if isinstance(column, polars.Series):
        table = polars.from_arrow(documents).with_columns(other=column)
    else:
        table = documents.append_column("other", column)
    kept = tmp_path / "kept.parquet"
    decisions = dedup_job.decide(table, kept=kept)
    assert decisions.to_pylist() == dedup_job.decide(documents).to_pylist()
    assert pyarrow.parquet.read_table(kept).column_names == ["id", "text", "other"]


@pytest.fixture(scope="module")
def wide(documents):
    """A table with more columns than any call needs, whose fingerprints are not those of its texts."""
    columns = {"fp": pyarrow.array(numpy.arange(400, dtype=numpy.int64) << 40), "rank": range(400), "other": ["x"] * 400}
    return pyarrow.table({**{name: documents[name] for name in documents.column_names}, **columns})


WRITTEN = [
    ({}, "either", ["id", "text"]),
    ({"text_column": "text"}, "either", ["id", "text"]),
    ({"prefer": "rank:desc", "text_column": "text"}, "either", ["id", "text", "rank"]),
    ({"id_column": "rank", "fingerprint_column": "fp"}, "either", ["fp", "rank"]),
    ({"columns": ["other", "rank"], "text_column": "text"}, "either", ["id", "text", "rank", "other"]),
    ({"columns": "other,id"}, "either", ["id", "text", "other"]),
    ({}, "both", ["id", "text"]),
    ({"fingerprint_column": "fp"}, "both", ["id", "text", "fp"]),
    ({"text_column": "text"}, "texts", ["id", "text"]),
    # Kept rows have all columns; a configuration file may name any; an error lists all.
    ({"kept": "kept.parquet"}, "either", None),
    ({"config": "job.toml"}, "either", None),
    ({"prefer": "missing"}, "either", None),
    ({"columns": "missing"}, "either", None),
]


@pytest.mark.parametrize("options, reads, expected", WRITTEN)
def test_needed_columns_are_handed_over(wide, tmp_path, options, reads, expected):
    path = dedup_job._data.write_batch(wide, str(tmp_path), options=options, reads=reads)
    written = pyarrow.parquet.ParquetFile(path)
    assert written.schema_arrow.names == (expected or wide.column_names)
    assert written.read().to_pydict() == wide.select(expected or wide.column_names).to_pydict()
    row_group = written.metadata.row_group(0)
    assert {row_group.column(at).compression for at in range(row_group.num_columns)} == {"ZSTD"}


def test_columns_in_structures_are_handed_over(wide, tmp_path):
    meta = pyarrow.array([{"key": f"k{row}", "score": row} for row in range(400)])
    table = wide.append_column("meta", meta).append_column("other.key", wide["other"])
    for options, expected in [
        ({"id_column": "meta.key", "text_column": "text"}, ["text", "meta"]),
        ({"prefer": "meta.score:desc"}, ["id", "text", "meta"]),
        ({"columns": ["meta.score", "other.key"]}, ["id", "text", "meta", "other.key"]),
    ]:
        with tempfile.TemporaryDirectory(dir=tmp_path) as directory:
            path = dedup_job._data.write_batch(table, directory, options=options)
            assert pyarrow.parquet.read_table(path).column_names == expected
    # Rows are in the order of the batch, whose ids are in a structure, too.
    decided = dedup_job.decide(table, id_column="meta.key", text_column="text", columns=["meta.score", "rank"])
    assert decided.column_names[-3:] == ["group_size", "meta.score", "rank"]
    assert decided.to_numpy("id").tolist() == [f"k{row}" for row in range(400)]
    assert decided.to_numpy("meta.score").tolist() == decided.to_numpy("rank").tolist() == list(range(400))


@pytest.fixture(scope="module")
def parts(documents):
    """The words of each document."""
    return [(text or "").split(" ") for text in documents["text"].to_pylist()]


@pytest.fixture(scope="module")
def decided_parts(documents, parts):
    """The decisions on documents with each word on a line."""
    texts = ["\n".join(words) for words in parts]
    return dedup_job.decide(pyarrow.table({"id": documents["id"], "text": texts})).to_pylist()


def test_texts_may_be_in_lists(documents, parts, decided_parts):
    for kind in [
        pyarrow.list_(pyarrow.string()),
        pyarrow.large_list(pyarrow.large_string()),
        pyarrow.list_(pyarrow.binary()),
    ]:
        table = pyarrow.table({"id": documents["id"], "text": pyarrow.array(parts, kind)})
        assert dedup_job.decide(table).to_pylist() == decided_parts
    with pytest.raises(dedup_job.DataError, match="texts are strings, not List"):
        dedup_job.fingerprint(table["text"])
    messages = [[{"role": "user", "content": word} for word in words] for words in parts]
    chats = pyarrow.table({"id": documents["id"], "messages": messages})
    assert dedup_job.decide(chats, text_column="messages.content").to_pylist() == decided_parts
    with pytest.raises(dedup_job.DataError, match="only texts can be in lists"):
        dedup_job.decide(chats, text_column="messages.content", columns="messages.role")


def test_texts_in_lists_of_categories(documents, parts, decided_parts):
    polars = import_or_skip("polars")
    frame = polars.DataFrame({"id": documents["id"].to_pylist(), "text": parts})
    frame = frame.with_columns(polars.col("text").cast(polars.List(polars.Categorical)))
    assert dedup_job.decide(frame).to_pylist() == decided_parts


def test_sketches_are_handed_over_and_ids_added(wide, tmp_path):
    table = wide.select(["fp", "other"]).append_column("sketch", pyarrow.array([b"12345678"] * 400))
    path = dedup_job._data.write_batch(table, str(tmp_path), options={})
    assert pyarrow.parquet.read_table(path).column_names == ["id", "fp", "sketch"]


def test_texts_win_over_fingerprints_unless_an_option_says_otherwise(wide, documents, caplog):
    warning = "the table has texts"
    assert dedup_job.pairs(wide, k=1).to_pylist() == dedup_job.pairs(documents, k=1).to_pylist()
    assert warning in caplog.text
    caplog.clear()
    # All fingerprints differ in few bits.
    assert len(dedup_job.pairs(wide, k=1, fingerprint_column="fp")) > 1000
    of_texts = dedup_job.decide(wide, text_column="text", prefer="rank:desc")
    assert of_texts.to_pylist() != dedup_job.decide(wide, fingerprint_column="fp", prefer="rank:desc").to_pylist()
    with_rank = wide.drop_columns(["fp", "other"])
    assert of_texts.to_pylist() == dedup_job.decide(with_rank, prefer="rank:desc").to_pylist()
    assert len(dedup_job.decide(wide, quiet=True)) == 400
    assert dedup_job.tune(wide, sample=300).raw["documents"] == 400
    assert warning not in caplog.text


def test_texts_verify_pairs_of_fingerprints(documents):
    table = documents.append_column("fp", pyarrow.array(dedup_job.fingerprint_arrow(documents["text"])))
    expected = dedup_job.pairs(documents, k=8, verify="jaccard", short_texts="none")
    verified = dedup_job.pairs(table, k=8, verify="jaccard", fingerprint_column="fp")
    assert verified.to_pylist() == expected.to_pylist() != []


def test_texts_as_categories(documents):
    """As decisions have it, which go through a file."""
    polars = import_or_skip("polars")
    table = polars.from_arrow(documents).with_columns(polars.col("text", "id").cast(polars.Categorical))
    assert dedup_job.decide(table).to_pylist() == dedup_job.decide(documents).to_pylist()


def test_consumed_data_is_not_empty_data(texts):
    class Once:
        """Hands over the same capsules each time."""

        def __init__(self, array):
            self.capsules = array.__arrow_c_array__()

        def __arrow_c_array__(self, requested_schema=None):
            return self.capsules

    for column, call in [(pyarrow.array(texts), dedup_job.fingerprint), (pyarrow.array([1, 2]), dedup_job.pairs)]:
        once = Once(column)
        call(once)
        with pytest.raises(dedup_job.UsageError, match="consumed before"):
            call(once)


def test_a_producer_that_fails(texts):
    def batches():
        yield pyarrow.record_batch({"text": texts})
        raise RuntimeError("no more")

    schema = pyarrow.schema([("text", pyarrow.string())])
    for call in (dedup_job.fingerprint, dedup_job.decide):
        with pytest.raises(dedup_job.DataError, match="no more"):
            call(pyarrow.RecordBatchReader.from_batches(schema, batches()))


def test_the_memory_of_results_lives_as_long_as_they_are_used(texts):
    """Results of one call, seen by other packages after the result itself is gone."""
    expected = dedup_job.fingerprint(texts).tolist()
    array = pyarrow.array(dedup_job.fingerprint_arrow(texts))
    table = dedup_job.pairs(texts, k=6)
    rows = table.to_pylist()
    shared, seen = pyarrow.table(table), numpy.asarray(table._native.column("new_id"))
    del table
    for _ in range(20):
        dedup_job.fingerprint(texts)
    assert array.to_pylist() == expected
    assert shared.to_pylist() == rows and seen.tolist() == [row["new_id"] for row in rows]
    with pytest.raises(ValueError):
        seen[0] = 1


def test_slices_offsets_and_empty_chunks(texts):
    fingerprints = dedup_job.fingerprint(texts)
    column = pyarrow.chunked_array([texts[:3], [], texts[3:]], pyarrow.string_view()).slice(1, 300).slice(2)
    assert dedup_job.fingerprint(column).tolist() == fingerprints[3:301].tolist()
    stored = pyarrow.array(fingerprints.tolist(), pyarrow.uint64())
    for start, count in [(0, 400), (1, 399), (3, 200), (398, 2), (400, 0)]:
        sliced = stored.slice(start, count)
        expected = dedup_job.pairs(fingerprints[start : start + count], k=8).to_pylist()
        assert dedup_job.pairs(sliced, k=8).to_pylist() == expected
        assert dedup_job.pairs(pyarrow.chunked_array([sliced.slice(0, count // 2), sliced.slice(count // 2)]), k=8).to_pylist() == expected


def test_pathlib_paths_of_outputs_with_odd_names(tmp_path):
    for name in ["-o.parquet", "a b.parquet", "--k=3.parquet", "ü.parquet"]:
        output = pathlib.Path(tmp_path) / name
        assert dedup_job.run(DAY, output=output).output == str(output) and output.exists()


@pytest.mark.parametrize("function", [dedup_job.pairs, dedup_job.decide, dedup_job.fingerprint])
def test_what_is_no_data_is_refused(function):
    rows = [{"id": 1, "text": "the quick brown fox"}]
    with pytest.raises((TypeError, dedup_job.UsageError), match="dict"):
        function(rows)
    with pytest.raises(TypeError, match="neither data nor a path"):
        function(None)
    with pytest.raises((TypeError, dedup_job.UsageError), match="neither data nor a path|not one text"):
        function(b"documents.parquet")
