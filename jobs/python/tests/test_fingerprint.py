"""fingerprint and sketch: equal to the command's, from every producer of texts."""

import pickle

import numpy
import pyarrow
import pyarrow.parquet
import pytest

import dedup_job
from conftest import DAY, import_or_skip, run_command

SPECS = [
    {},
    {"tokenizer": "words+shingles-2", "weight": "log-tf"},
    {"normalize": "as-is", "min_features": 9, "hash_seed": 7},
    {"markup": "article"},
]


def command_output(tmp_path, documents, *options):
    """The rows that the command writes, in the order of the documents."""
    output = tmp_path / "fingerprints.parquet"
    run_command("fingerprint", "--input", DAY, "--output", output, *options)
    rows = pyarrow.parquet.read_table(output)
    place = {id: row for row, id in enumerate(rows["id"].to_pylist())}
    return rows.take([place[id] for id in documents["id"].to_pylist()])


@pytest.mark.parametrize("options", SPECS)
@pytest.mark.parametrize("threads", [None, 1, 3])
def test_equal_to_the_command(tmp_path, documents, options, threads):
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    expected = command_output(tmp_path, documents, *flags)["fp"].to_pylist()
    made = dedup_job.fingerprint(documents["text"], options, threads=threads)
    assert made.dtype == numpy.uint64 and made.shape == (400,)
    assert made.tolist() == [None if value is None else value % 2**64 for value in expected]
    assert made.mask.sum() == expected.count(None)
    assert (made.data[made.mask] == 0).all()


@pytest.mark.parametrize("bits", [64, 128, 256])
def test_sketches_equal_to_the_command(tmp_path, documents, bits):
    expected = command_output(tmp_path, documents, f"--sketch={bits}")["sketch"].to_pylist()
    made = dedup_job.sketch(documents["text"], bits=bits)
    assert made.dtype == numpy.uint8 and made.shape == (400, bits // 8)
    for row, sketch in zip(made, expected):
        assert row.mask.all() if sketch is None else row.tobytes() == sketch
    spec = dedup_job.Spec(sketch=bits)
    assert (dedup_job.sketch(documents["text"], spec) == made).all()


def test_similarity_estimates_equal_bits(texts):
    sketches = dedup_job.sketch(texts[:40], bits=128)
    estimated = dedup_job.similarity(sketches[:, None], sketches[None, :])
    assert estimated.shape == (40, 40)
    for i, a in enumerate(sketches):
        for j, b in enumerate(sketches):
            if a.mask.any() or b.mask.any():
                assert estimated.mask[i, j]
                continue
            differing = sum(int(x ^ y).bit_count() for x, y in zip(a.data.tolist(), b.data.tolist()))
            assert estimated[i, j] == pytest.approx(max(0, 1 - 2 * differing / 128))


def enum_of(texts):
    return import_or_skip("polars").Enum([*dict.fromkeys(text for text in texts if text is not None)])


def producers():
    """Functions from a list of texts, which may hold None, to an object that hands them over."""
    yield "list", list
    yield "tuple", tuple
    yield "generator", iter
    yield "numpy objects", lambda texts: numpy.array(texts, dtype=object)
    for name in ["string", "large_string", "string_view", "binary", "large_binary"]:
        kind = getattr(pyarrow, name)()
        yield f"pyarrow {name}", lambda texts, kind=kind: pyarrow.array(texts).cast(kind)
    yield "pyarrow dictionary", lambda texts: pyarrow.array(texts).dictionary_encode()
    yield "pyarrow slice", lambda texts: pyarrow.array(["x", *texts, "y"]).slice(1, len(texts))
    yield "pyarrow chunks", lambda texts: pyarrow.chunked_array([texts[:7], [], texts[7:]], pyarrow.string())
    yield "pyarrow table", lambda texts: pyarrow.table({"n": range(len(texts)), "text": texts})
    yield "pyarrow reader", lambda texts: pyarrow.table({"text": texts}).to_reader(max_chunksize=11)
    yield "polars series", lambda texts: import_or_skip("polars").Series(texts)
    yield "polars categories", lambda texts: import_or_skip("polars").Series(texts, dtype=import_or_skip("polars").Categorical)
    yield "polars enum", lambda texts: import_or_skip("polars").Series(texts, dtype=enum_of(texts))
    yield "pyarrow large dictionary", lambda texts: pyarrow.array(texts, pyarrow.large_string()).dictionary_encode()
    yield "list with NaN", lambda texts: [float("nan") if text is None else text for text in texts]
    yield "list with NA", lambda texts: [import_or_skip("pandas").NA if text is None else text for text in texts]
    yield "polars frame", lambda texts: import_or_skip("polars").DataFrame({"n": range(len(texts)), "text": texts})
    yield "pandas series", lambda texts: import_or_skip("pandas").Series(texts)
    yield "pandas frame", lambda texts: import_or_skip("pandas").DataFrame({"n": range(len(texts)), "text": texts})
    yield "duckdb", lambda texts: import_or_skip("duckdb").from_arrow(pyarrow.table({"text": texts}))
    yield "datasets", lambda texts: import_or_skip("datasets").Dataset.from_dict({"text": texts})
    yield "datasets column", lambda texts: import_or_skip("datasets").Dataset.from_dict({"text": texts})["text"]


@pytest.mark.parametrize("name, produce", list(producers()), ids=lambda value: value if isinstance(value, str) else "")
def test_producers(texts, name, produce):
    given = [*texts[:20], None, "", "404", "naïve café 漢字 числа и слова"]
    expected = dedup_job.fingerprint(given).tolist()
    assert expected[20:23] == [None, None, None] and expected[23] is not None
    assert dedup_job.fingerprint(produce(given)).tolist() == expected


def test_arrow_results(texts):
    made = dedup_job.fingerprint_arrow(texts)
    expected = dedup_job.fingerprint(texts).tolist()
    assert len(made) == 400
    assert pyarrow.array(made).to_pylist() == expected
    assert pyarrow.array(made).type == pyarrow.uint64()
    assert import_or_skip("polars").Series(made).to_list() == expected


def test_no_texts():
    for none in ([], pyarrow.array([], pyarrow.string()), pyarrow.chunked_array([], pyarrow.string())):
        assert dedup_job.fingerprint(none).shape == (0,)
        assert dedup_job.sketch(none, bits=64).shape == (0, 8)


def test_bytes_that_are_not_utf8_are_replaced():
    wrong = b"one two \xff\xfe three four five"
    right = wrong.decode(errors="replace")
    expected = dedup_job.fingerprint([right]).tolist()
    assert dedup_job.fingerprint([wrong]).tolist() == expected
    assert dedup_job.fingerprint(pyarrow.array([wrong])).tolist() == expected
    # pyarrow does not check what it calls a string.
    unchecked = pyarrow.Array.from_buffers(
        pyarrow.string(), 1, [None, pyarrow.array([0, len(wrong)], pyarrow.int32()).buffers()[1], pyarrow.py_buffer(wrong)]
    )
    assert dedup_job.fingerprint(unchecked).tolist() == expected
    surrogate = "one two \udcff three four five six seven eight nine ten"
    assert dedup_job.fingerprint([surrogate]).tolist() != [None]


def test_wrong_texts():
    with pytest.raises(dedup_job.UsageError):
        dedup_job.fingerprint("one text")
    with pytest.raises(TypeError, match="text 1 is a int"):
        dedup_job.fingerprint(["a", 1])
    with pytest.raises(dedup_job.DataError, match="not Int64"):
        dedup_job.fingerprint(pyarrow.array([1, 2]))
    with pytest.raises(dedup_job.DataError, match="no text column"):
        dedup_job.fingerprint(pyarrow.table({"a": ["x"], "b": ["y"]}))
    table = pyarrow.table({"a": ["x"], "b": ["one two three four five"]})
    assert dedup_job.fingerprint(table, column="b").mask.sum() == 0
    with pytest.raises(TypeError):
        dedup_job.fingerprint(5)


def test_specs(tmp_path, documents):
    default = dedup_job.Spec()
    assert default.to_dict()["min_features"] == 4 and default == dedup_job.Spec.from_json(default.to_json())
    assert dedup_job.Spec(weight="log-tf") != default
    assert pickle.loads(pickle.dumps(dedup_job.Spec(sketch=64))).to_dict()["sketch"] == 64
    with pytest.raises(dedup_job.UsageError, match="the weights are"):
        dedup_job.Spec(weight="log")
    with pytest.raises(dedup_job.UsageError, match="no option colour"):
        dedup_job.Spec(colour="red")
    with pytest.raises(dedup_job.ConfigurationError):
        dedup_job.Spec.from_json("{}")
    archive = dedup_job.Archive.create(tmp_path / "learnt", learn=DAY)
    archive.append(DAY, "2026-01-01")
    stored = pyarrow.table(archive.to_arrow(["id", "fp", "sketch"]))
    of_id = {row["id"]: row for row in stored.to_pylist()}
    made = dedup_job.fingerprint(documents["text"], archive.path).tolist()
    sketches = dedup_job.sketch(documents["text"], archive.spec())
    assert archive.spec().digest == archive.info().spec_digest
    assert pickle.loads(pickle.dumps(archive.spec())) == archive.spec()
    for id, fingerprint, sketch in zip(documents["id"].to_pylist(), made, sketches):
        if fingerprint is None:
            assert id not in of_id
        else:
            assert of_id[id]["fp"] % 2**64 == fingerprint and of_id[id]["sketch"] == sketch.tobytes()
