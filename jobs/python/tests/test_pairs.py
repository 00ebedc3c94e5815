"""distance and pairs against brute force."""

import numpy
import pyarrow
import pyarrow.parquet
import pytest

import dedup_job
from conftest import DAY, TESTDATA, brute_force, import_or_skip, near_fingerprints


def test_distance(random):
    a = random.integers(0, 2**64, 50, dtype=numpy.uint64)
    b = random.integers(0, 2**64, 50, dtype=numpy.uint64)
    expected = [int(x ^ y).bit_count() for x, y in zip(a, b)]
    assert dedup_job.distance(a, b).tolist() == expected
    assert dedup_job.distance(a, b).dtype == numpy.uint8
    assert (dedup_job.distance(a[:, None], b[None, :]) == brute_force(a, b)).all()
    assert dedup_job.distance(a.view(numpy.int64), pyarrow.array(b)).tolist() == expected
    assert dedup_job.distance(int(a[0]), int(b[0])) == expected[0]
    assert dedup_job.distance(a, int(b[0])).tolist() == [int(x ^ b[0]).bit_count() for x in a]
    assert dedup_job.distance(-1, 2**64 - 1) == 0
    for beyond in (2**64, -(2**63) - 1):
        for other in (0, b):
            with pytest.raises(OverflowError):
                dedup_job.distance(beyond, other)
    masked = numpy.ma.MaskedArray(a, mask=[True] + 49 * [False])
    assert dedup_job.distance(masked, b).tolist() == [None, *expected[1:]]
    assert dedup_job.distance([1, None], [1, 2]).tolist() == [0, None]
    with pytest.raises(dedup_job.UsageError):
        dedup_job.distance(a.astype(float), b)


def expected_within(values, k):
    distances = brute_force(values, values)
    near = numpy.argwhere(distances <= k)
    return sorted((int(i), int(distances[i, j]), int(j)) for i, j in near if j < i)


def found(table):
    return [(row["new_id"], row["distance"], row["base_id"]) for row in table.to_pylist()]


@pytest.mark.parametrize("k", [0, 1, 3, 6, 8, 16])
def test_within(random, k):
    values = near_fingerprints(random, 300, 200)
    expected = expected_within(values, k)
    assert expected
    table = dedup_job.pairs(values, k=k)
    assert table.column_names == ["new_id", "base_id", "distance"] and table.summary.hits == len(expected)
    assert found(table) == expected
    assert found(dedup_job.pairs(values.view(numpy.int64), k=k, threads=1)) == expected
    assert found(dedup_job.pairs(pyarrow.array(values), k=k, threads=3)) == expected
    assert found(dedup_job.pairs(values.tolist(), k=k)) == expected
    assert len(table.to_numpy("distance")) == len(table)


def test_within_many(random):
    """More than a piece of the join; planted pairs are found, and what is found is near."""
    values = near_fingerprints(random, 150_000, 50_000, most=3)
    table = dedup_job.pairs(values)
    rows = numpy.stack([table.to_numpy("new_id"), table.to_numpy("base_id")])
    distances = dedup_job.distance(values[rows[0]], values[rows[1]])
    assert (distances == table.to_numpy("distance")).all() and distances.max() <= 3
    assert (rows[0] > rows[1]).all()
    assert len({*map(tuple, rows.T.tolist())}) == len(table)
    order = numpy.argsort(values, kind="stable")
    equal = numpy.flatnonzero(values[order][1:] == values[order][:-1])
    pairs = {*map(tuple, rows.T.tolist())}
    for at in equal.tolist():
        assert tuple(sorted(order[at : at + 2].tolist(), reverse=True)) in pairs


@pytest.mark.parametrize("sizes", [(50, 400), (400, 50), (0, 30), (30, 0)])
def test_between(random, sizes):
    both = near_fingerprints(random, 250, 200)
    new, base = both[: sizes[0]], both[: -sizes[1] - 1 : -1]
    distances = brute_force(new, base) if len(new) and len(base) else numpy.empty((0, 0))
    for k in [0, 3, 7]:
        expected = sorted((int(i), int(distances[i, j]), int(j)) for i, j in numpy.argwhere(distances <= k))
        assert found(dedup_job.pairs(new, base, k)) == expected


def test_masked_and_equal_fingerprints():
    values = numpy.ma.MaskedArray(numpy.array([7, 7, 0, 7, 0, 6], numpy.uint64), mask=[0, 0, 1, 0, 1, 0])
    expected = [(1, 0, 0), (3, 0, 0), (3, 0, 1), (5, 1, 0), (5, 1, 1), (5, 1, 3)]
    assert found(dedup_job.pairs(values)) == expected
    assert found(dedup_job.pairs(values.tolist())) == expected
    assert found(dedup_job.pairs(numpy.array([6], numpy.uint64), values, 1)) == [(0, 0, 5), (0, 1, 0), (0, 1, 1), (0, 1, 3)]
    assert len(dedup_job.pairs(values, max_pairs=6)) == 6
    with pytest.raises(dedup_job.UsageError, match="max_pairs=5"):
        dedup_job.pairs(values, max_pairs=5)
    with pytest.raises(dedup_job.UsageError):
        dedup_job.pairs(values, k=17)


def test_texts_and_fingerprints_beside_texts(texts):
    fingerprints = dedup_job.fingerprint(texts)
    expected = found(dedup_job.pairs(fingerprints[::2], fingerprints[1::2], 6))
    assert expected
    assert found(dedup_job.pairs(texts[::2], texts[1::2], 6)) == expected
    assert found(dedup_job.pairs(fingerprints[::2], pyarrow.array(texts[1::2]), 6)) == expected


def test_floats_are_no_fingerprints(random):
    """A column of pandas with missing values becomes one of floats, which have lost bits."""
    values = near_fingerprints(random, 5, 5)
    for call in [
        lambda: dedup_job.pairs(values.astype(float)),
        lambda: dedup_job.pairs(values, values.astype(float)),
        lambda: dedup_job.pairs(values, numpy.ones(10, bool)),
        lambda: dedup_job.pairs(values, pyarrow.array(values.astype(float))),
    ]:
        with pytest.raises((dedup_job.UsageError, TypeError), match="64-bit integers"):
            call()
    pandas = import_or_skip("pandas")
    made = numpy.ma.MaskedArray(values, mask=[True] + 9 * [False])
    column = pandas.Series(pandas.arrays.IntegerArray(made.data, made.mask))
    assert found(dedup_job.pairs(column, k=9)) == found(dedup_job.pairs(made, k=9)) != []


@pytest.mark.parametrize("k", [-1, 17])
def test_distances_out_of_range(k):
    with pytest.raises(dedup_job.UsageError, match="from 0 to 16"):
        dedup_job.pairs([1, 2], k=k)


def test_memory_of_a_container(monkeypatch, tmp_path):
    import builtins

    plain, limit = builtins.open, tmp_path / "memory.max"

    def opened(path, *arguments, **options):
        return plain(limit if path == "/sys/fs/cgroup/memory.max" else path, *arguments, **options)

    monkeypatch.setattr(builtins, "open", opened)
    limit.write_text("1048576\n")
    assert dedup_job._functions._memory() == 1 << 20
    limit.write_text("max\n")
    assert dedup_job._functions._memory() > 1 << 28
    # 2,000 equal fingerprints have 1,999,000 pairs; a quarter of this memory is for 1,198,372.
    limit.write_text(f"{256 << 20}\n")
    equal = numpy.full(2000, 7, numpy.uint64)
    with pytest.raises(dedup_job.UsageError, match="max_pairs=1198372 pairs.*let dedup_job.run write the pairs to a file"):
        dedup_job.pairs(equal)
    assert len(dedup_job.pairs(equal[:1500])) == 1_124_250
    assert len(dedup_job.pairs(equal, max_pairs=1_999_000)) == 1_999_000
    # As the error says.
    assert dedup_job.run(equal, output=tmp_path / "pairs.parquet").hits == 1_999_000


def test_strided_arrays(random):
    values = near_fingerprints(random, 60, 40)
    assert found(dedup_job.pairs(numpy.repeat(values, 2)[::2])) == found(dedup_job.pairs(values))
    assert found(dedup_job.pairs(values[::-1][::-1])) == found(dedup_job.pairs(values))


def test_texts(texts):
    fingerprints = dedup_job.fingerprint(texts)
    assert found(dedup_job.pairs(texts)) == found(dedup_job.pairs(fingerprints))
    other = dedup_job.fingerprint(texts, {"weight": "tf"})
    assert found(dedup_job.pairs(texts, weight="tf")) == found(dedup_job.pairs(other))
    assert found(dedup_job.pairs(texts[:100], other, weight="tf")) == found(dedup_job.pairs(other[:100], other))
    with pytest.raises(dedup_job.UsageError, match="min_similarity"):
        dedup_job.pairs(texts, min_similarity=0.5)


def test_tables_are_compared_by_a_run(documents):
    by_row = dedup_job.pairs(documents["text"])
    ids = documents["id"].to_pylist()
    expected = {(frozenset([ids[new], ids[base]]), distance) for new, distance, base in found(by_row)}
    table = dedup_job.pairs(documents, profile="paper")
    assert {(frozenset([new, base]), distance) for new, distance, base in found(table)} == expected
    assert table.summary.hits == len(table) == len(expected)
    assert found(dedup_job.pairs(DAY, profile="paper")) == found(table)
    # Without options, texts verify the pairs.
    verified = dedup_job.pairs(DAY)
    assert verified.summary.raw["max_distance"] == 7 and (verified.to_numpy("similarity") >= 0.8).all()


def test_an_archive(documents):
    import pyarrow.parquet

    table = dedup_job.pairs(documents, TESTDATA / "archive", day="2026-01-31")
    assert table.to_pyarrow().equals(pyarrow.parquet.read_table(TESTDATA / "expected.parquet"))
    assert table.summary.base.fingerprints == 2970
    verified = dedup_job.pairs(documents, k=8, verify="jaccard", min_similarity=0.9)
    assert 0 < len(verified) < len(dedup_job.pairs(documents, k=8))
    assert (verified.to_numpy("similarity") >= 0.9).all()
    fingerprints = dedup_job.fingerprint(documents["text"], TESTDATA / "archive")
    of_rows = dedup_job.pairs(fingerprints, str(TESTDATA / "archive"), within=False)
    ids = documents["id"].to_pylist()
    expected = found(dedup_job.pairs(documents, TESTDATA / "archive", within=False))
    assert sorted((ids[int(new)], distance, base) for new, distance, base in found(of_rows)) == sorted(expected)


@pytest.fixture(scope="module")
def halves(documents):
    """Two tables, of ids and texts, and the pairs between them, by their fingerprints: new_id, distance, base_id."""
    new, base = documents.take(numpy.arange(0, 400, 2)), documents.take(numpy.arange(1, 400, 2))
    by_row = dedup_job.pairs(dedup_job.fingerprint(new["text"]), dedup_job.fingerprint(base["text"]), 6)
    new_ids, base_ids = new["id"].to_pylist(), base["id"].to_pylist()
    expected = sorted((new_ids[row], distance, base_ids[other]) for row, distance, other in found(by_row))
    assert expected
    return new, base, expected


def with_fingerprints(table):
    """A table with fingerprints in place of texts."""
    return pyarrow.table({"id": table["id"], "fp": pyarrow.array(dedup_job.fingerprint_arrow(table["text"]))})


def test_a_table_with_a_table(halves):
    new, base, expected = halves
    polars = import_or_skip("polars")
    for one, other in [
        (new, base),
        (with_fingerprints(new), with_fingerprints(base)),
        (new, with_fingerprints(base)),
        (with_fingerprints(new), base),
        (polars.from_arrow(new), polars.from_arrow(base)),
    ]:
        assert sorted(found(dedup_job.pairs(one, other, 6))) == expected
    names = ["key", "abstract"]
    renamed = dedup_job.pairs(new.rename_columns(names), base.rename_columns(names), 6, id_column="key", text_column="abstract")
    assert sorted(found(renamed)) == expected
    # Row numbers, as texts beside ids that are texts.
    ids = new["id"].to_pylist()
    by_row = dedup_job.pairs(new["text"], base, 6)
    assert sorted((ids[int(row)], distance, other) for row, distance, other in found(by_row)) == expected
    other_spec = {"weight": "tf", "tokenizer": "words"}
    by_row = dedup_job.pairs(new["text"], base["text"], 6, **other_spec)
    assert len(dedup_job.pairs(new, base, 6, **other_spec)) == len(by_row) > 0


def test_a_table_with_a_table_is_verified(halves):
    new, base, _ = halves
    for one, other in [(new, base), (new["text"], base["text"])]:
        unverified = len(dedup_job.pairs(one, other, 8))
        table = dedup_job.pairs(one, other, 8, verify="jaccard", min_similarity=0.9)
        similarity = table.to_numpy("similarity")
        # Both texts were found.
        assert not numpy.ma.getmaskarray(similarity).any() and similarity.min() >= 0.9
        assert 0 < len(table) < unverified
    table = dedup_job.pairs(new, base, 8, verify="sketch", sketch=128)
    assert len(table) and not numpy.ma.getmaskarray(table.to_numpy("similarity")).any()


def test_only_pairs_takes_a_table_as_archive(halves):
    new, base, _ = halves
    for call in (dedup_job.run, dedup_job.decide):
        with pytest.raises(dedup_job.UsageError, match=r"pairs\(table, other\)"):
            call(new, base)


def test_several_bases_of_documents_and_rules_of_preference(tmp_path):
    texts = [" ".join(f"t{number}w{word}" for word in range(80)) for number in range(4)]
    frame = pyarrow.table({"id": ["a", "b", "c", "d"], "text": texts, "rank": [1, 2, 3, 4]})
    for number in range(2):
        pyarrow.parquet.write_table(frame.slice(number, 1), tmp_path / f"{number}.parquet")
    bases = [tmp_path / "0.parquet", str(tmp_path / "1.parquet")]
    found = dedup_job.run(frame, bases, tmp_path / "hits.parquet", within=False)
    assert found.hits == 2
    twice = pyarrow.concat_tables([frame, frame.set_column(0, "id", pyarrow.array(["e", "f", "g", "h"]))])
    for prefer, kept in (("first", "abcd"), (["rank:desc", "id:desc"], "efgh")):
        rows = dedup_job.decide(twice, prefer=prefer).to_pylist()
        assert "".join(sorted(row["id"] for row in rows if row["kept"])) == kept
    classes = dedup_job.run(twice, output=tmp_path / "classes.parquet", pairs="classes")
    assert classes.hits == 4
