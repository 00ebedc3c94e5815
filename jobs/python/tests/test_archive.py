"""Archive and Index."""

import datetime
import pickle

import numpy
import pyarrow
import pytest

import dedup_job
from conftest import import_or_skip


def test_archive(tmp_path, documents):
    archive = dedup_job.Archive.create(tmp_path / "a", decisions=True, tokenizer="words")
    assert archive.version == 0 and archive.days() == {}
    assert archive.spec().to_dict()["tokenizer"] == "words"
    first, second = datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)
    appended = archive.append(documents.slice(0, 100), first)
    assert appended.documents == 100
    dedup_job.run(documents.slice(100, 100), archive.path, tmp_path / "o.parquet", append=True, day=second)
    days = archive.days()
    assert list(days) == [first, second]
    rows = days[first].fingerprints
    assert archive.info(verify=True).fingerprints == rows + days[second].fingerprints
    ids = documents["id"].to_pylist()
    removed = archive.remove(ids=[ids[0], ids[1], "missing"])
    assert (removed.removed_fingerprints, removed.ids_not_found) == (2, 1)
    assert archive.days()[first].fingerprints == rows - 2
    archive.remove(day=second)
    assert list(archive.days()) == [first]
    assert archive.compact().raw and archive.vacuum(dry_run=True).raw
    for wrong in ({}, {"ids": ["a"], "day": first}, {"ids": "abc"}):
        with pytest.raises(dedup_job.UsageError):
            archive.remove(**wrong)
    with pytest.raises(TypeError):
        archive.remove(ids=[3.7])
    with pytest.raises(dedup_job.DedupJobError):
        dedup_job.Archive.create(tmp_path / "a")
    assert pickle.loads(pickle.dumps(archive)).path == archive.path


def test_committed_documents_need_ids(tmp_path, documents):
    """Row numbers would name documents of all days."""
    archive = dedup_job.Archive.create(tmp_path / "a")
    texts = documents.select(["text"])
    for commit in [
        lambda: archive.append(texts, "2026-01-01"),
        lambda: dedup_job.run(texts, archive.path, tmp_path / "o.parquet", append=True, day="2026-01-01"),
        lambda: dedup_job.decide(texts, archive.path, append="kept", day="2026-01-01"),
    ]:
        with pytest.raises(dedup_job.DataError, match="no id column.*name it by id_column"):
            commit()
    assert archive.version == 0


def test_to_arrow(archive, documents):
    table = pyarrow.table(archive.to_arrow())
    assert table.column_names == ["fp", "id", "sketch", "day"]
    assert table.num_rows == len(archive.to_arrow()) == archive.info().fingerprints
    made = dict(zip(documents["id"].to_pylist(), dedup_job.fingerprint(documents["text"], archive.path).tolist()))
    assert all(row["fp"] % 2**64 == made[row["id"]] for row in table.to_pylist())
    of_day = pyarrow.table(archive.to_arrow(columns=["day", "id"], days=[datetime.date(2026, 1, 2)]))
    assert of_day.column_names == ["day", "id"]
    assert {*of_day["day"].to_pylist()} == {datetime.date(2026, 1, 2)}
    assert of_day.num_rows == archive.days()[datetime.date(2026, 1, 2)].fingerprints
    other = import_or_skip("deltalake").DeltaTable(archive.path).to_pyarrow_table()
    assert {*other["id"].to_pylist()} == {*table["id"].to_pylist()}
    rows = archive.to_arrow(["fp", "id"])
    assert import_or_skip("polars").DataFrame(rows).height == table.num_rows
    assert import_or_skip("duckdb").sql("select count(*) from rows").fetchall() == [(table.num_rows,)]
    assert rows.to_pyarrow().read_all().num_rows == table.num_rows
    with pytest.raises(dedup_job.UsageError, match="colour"):
        archive.to_arrow(["colour"])
    with pytest.raises(dedup_job.UsageError, match="YYYY-MM-DD"):
        archive.to_arrow(days=["someday"])


@pytest.fixture(scope="module")
def index(tmp_path_factory, archive):
    path = tmp_path_factory.mktemp("index") / "i"
    dedup_job.build_index(archive.path, path)
    return dedup_job.Index(path)


def expected_hits(archive, fingerprints, k):
    rows = pyarrow.table(archive.to_arrow()).to_pylist()
    for query, fingerprint in enumerate(fingerprints):
        hits = []
        for row in rows:
            if fingerprint is not None and (distance := int(fingerprint ^ (row["fp"] % 2**64)).bit_count()) <= k:
                hits.append((distance, row["id"], row["day"], row["fp"] % 2**64))
        yield from ((query, *hit) for hit in sorted(hits))


@pytest.mark.parametrize("k", [0, 3, 8])
@pytest.mark.parametrize("threads", [None, 1])
def test_lookup(index, archive, documents, k, threads):
    fingerprints = dedup_job.fingerprint(documents["text"], archive.path)
    expected = list(expected_hits(archive, fingerprints.tolist(), k))
    assert expected
    by_text = index.lookup(documents["text"], k, threads=threads)
    names = ["query", "distance", "id", "day", "fp"]
    assert [tuple(row[name] for name in names) for row in by_text.to_pylist()] == expected
    by_fingerprint = index.lookup(fingerprints, k, threads=threads)
    assert [tuple(row[name] for name in names) for row in by_fingerprint.to_pylist()] == expected
    # Sketches are compared of texts only.
    similarity = by_text.to_numpy("similarity")
    assert not numpy.ma.getmaskarray(similarity).any() and similarity.min() >= 0
    assert all(row["similarity"] is None for row in by_fingerprint.to_pylist())


def test_lookup_of_one(index, documents, texts):
    (first, *_) = index.lookup(texts[0], k=0).to_pylist()
    assert first["id"] == documents["id"][0].as_py() and first["similarity"] == 1
    assert len(index.lookup("404")) == 0
    # A masked fingerprint is none, whatever lies below the mask.
    masked = numpy.ma.MaskedArray([first["fp"]], mask=[True], dtype=numpy.uint64)
    assert len(index.lookup(masked, k=8)) == 0 < len(index.lookup(masked.data, k=8))
    assert index.lookup([]).column_names == ["query", "id", "distance", "day", "fp", "similarity"]
    assert len(index.lookup(documents["text"], 8, limit=1)) <= 400
    assert pickle.loads(pickle.dumps(index)).lookup(texts[0], k=0).to_pylist()[0] == first
    assert index.info().rows == index.info().raw["rows"] and index.refresh() is False
    with pytest.raises(dedup_job.UsageError, match="at most 8"):
        index.lookup(texts[0], k=9)


def test_refresh(tmp_path, documents):
    archive = dedup_job.Archive.create(tmp_path / "a")
    archive.append(documents.slice(0, 10), "2026-01-01")
    dedup_job.build_index(archive.path, tmp_path / "i")
    index = dedup_job.Index(tmp_path / "i")
    text = documents["text"][20].as_py()
    assert len(index.lookup(text, k=0)) == 0
    archive.append(documents.slice(10, 20), "2026-01-02")
    dedup_job.build_index(archive.path, tmp_path / "i")
    assert index.refresh() and len(index.lookup(text, k=0)) >= 1
