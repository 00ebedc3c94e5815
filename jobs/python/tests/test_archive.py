"""Archive and Index."""

import datetime
import http.server
import json
import pickle
import threading

import numpy
import pyarrow
import pyarrow.parquet
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


def test_settings_of_runs(tmp_path, documents):
    archive = dedup_job.Archive.create(tmp_path / "a")
    assert archive.info().raw["runs"] == {"k": 7, "min_similarity": 0.755}
    archive.append(documents, "2026-01-01")
    assert dedup_job.decide(documents, archive.path).summary.raw["max_distance"] == 7
    assert archive.set(k=2, min_similarity=0.9).raw["version"] == 2
    assert dedup_job.decide(documents.slice(0, 9), archive.path).summary.raw["max_distance"] == 2
    assert dedup_job.decide(documents.slice(0, 9), archive.path, profile="paper").summary.raw["verified"] is None
    with pytest.raises(dedup_job.UsageError, match="0 to 16"):
        archive.set(k=17)
    paper = dedup_job.Archive.create(tmp_path / "paper", profile="paper")
    assert paper.info().raw["runs"] == {"k": 3} and not paper.info().raw["decisions"]


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
    assert table.column_names == ["fp", "id", "sketch", "kept", "day"]
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
    with pytest.raises(dedup_job.UsageError, match="from 0 to 8"):
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


def test_lookups_report_progress(index, documents):
    seen = []
    table = index.lookup(documents["text"], progress=seen.append)
    assert seen[-1] == ("looking up", 400, 400, 0) and len(table)
    seen.clear()
    index.lookup(dedup_job.fingerprint(documents["text"]), threads=1, progress=seen.append)
    assert seen[-1].done == 400
    with pytest.raises(ZeroDivisionError):
        index.lookup(documents["text"], progress=lambda progress: 1 / 0)


def available_memory():
    with open("/proc/meminfo") as file:
        (line,) = [line for line in file if line.startswith("MemAvailable:")]
    return int(line.split()[1]) << 10


@pytest.mark.skipif(available_memory() < 10 << 30, reason="needs 10 GiB of memory")
def test_more_ids_than_32_bits_address(tmp_path, documents):
    """The ids of one answer are strings of more than 2 GiB."""
    text, id, queries = documents["text"][0].as_py(), "x" * (8 << 10), 270_000
    archive = dedup_job.Archive.create(tmp_path / "a")
    archive.append(pyarrow.table({"id": [id], "text": [text]}), "2026-01-01")
    dedup_job.build_index(archive.path, tmp_path / "i")
    fingerprint = dedup_job.fingerprint([text], archive.path)[0]
    table = dedup_job.Index(tmp_path / "i").lookup(numpy.full(queries, fingerprint, numpy.uint64), k=0)
    assert len(table) == queries and table.to_numpy("query").tolist() == list(range(queries))
    ids = pyarrow.table(table)["id"]
    assert ids.type == pyarrow.string() and ids.num_chunks > 1
    assert ids[0].as_py() == ids[queries - 1].as_py() == id
    # In one piece, they need offsets of 64 bits.
    column = pyarrow.array(table._native.column("id"))
    assert column.type == pyarrow.large_string() and column[queries - 1].as_py() == id


class Unavailable(http.server.BaseHTTPRequestHandler):
    """An object store that has a temporary failure all the time."""

    def do_GET(self):
        self.server.requests += 1
        self.send_response(503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_PUT = do_POST = do_GET

    def log_message(self, *arguments):
        pass


@pytest.fixture
def unavailable(store):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Unavailable) as server:
        server.requests = 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize("call", [
    lambda path, options: dedup_job.Archive(path, **options).spec(),
    lambda path, options: dedup_job.Archive(path, **options).to_arrow(),
    lambda path, options: dedup_job.Spec.from_archive(path, **options),
    lambda path, options: dedup_job.Index(path, **options),
])
def test_options_of_stores_hold_in_this_process(unavailable, call):
    options = {"endpoint": f"http://127.0.0.1:{unavailable.server_port}", "allow_http": True, "request_timeout": "5s"}
    requests = []
    for retries in (0, 2):
        unavailable.requests = 0
        with pytest.raises(dedup_job.DedupJobError):
            call("s3://bucket/a", {**options, "retries": retries, "retry_deadline": datetime.timedelta(minutes=1)})
        requests.append(unavailable.requests)
    assert requests == [1, 3]
    for wrong in ({"request_timeout": "5 parsecs"}, {"retry_deadline": "0s"}, {"retries": -1}):
        (name,) = wrong
        with pytest.raises(dedup_job.UsageError, match=name):
            call("s3://bucket/a", {**options, **wrong})


def test_options_of_stores_are_pickled(archive):
    options = {"retries": 3, "request_timeout": datetime.timedelta(seconds=1.5), "allow_http": False}
    opened = dedup_job.Archive(archive.path, **options)
    copied = pickle.loads(pickle.dumps(opened))
    assert copied._options == options
    assert pickle.loads(pickle.dumps(copied.spec())) == archive.spec()
    assert len(copied.to_arrow()) == len(archive.to_arrow())


def test_archives_are_merged_and_documents_have_a_history(tmp_path, texts):
    first, second = (dedup_job.Archive.create(tmp_path / name) for name in ("first", "second"))
    days = [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]
    for archive, day in zip((first, second), days):
        batch = pyarrow.table({"id": ["page", f"other {day}"], "text": [texts[0], texts[1 + days.index(day)]]})
        archive.append(batch, day)
    merged = first.append(second.path)
    assert (merged.days, merged.fingerprints) == (1, 2)
    captures = first.history("page").captures
    assert [capture["day"] for capture in captures] == ["2026-01-01", "2026-01-02"]
    assert captures[1]["distance"] == 0
    assert first.history("nobody").captures == []
    with pytest.raises(dedup_job.UsageError, match="day YYYY-MM-DD"):
        first.append(batch)


def test_updates_pins_and_batches(tmp_path, texts):
    archive = dedup_job.Archive.create(tmp_path / "archive")
    pins = tmp_path / "pins.csv"
    pins.write_text("pin,id,other\nkeep,copy,\n")
    batches = [("morning", [texts[0], texts[1]], {}), ("noon", [texts[2], texts[1]], {"pins": pins})]
    for name, (page, copied), options in batches:
        new = tmp_path / f"{name}.jsonl"
        rows = [{"id": "page", "text": page}, {"id": "copy" if options else "first", "text": copied}]
        new.write_text("".join(json.dumps(row) + "\n" for row in rows))
        decisions = tmp_path / f"{name}.parquet"
        summary = dedup_job.run(
            new, archive.path, append=True, day="2026-01-01", batch=name, on_update="keep-new", decisions=decisions, **options
        )
    decided = {row["id"]: row for row in pyarrow.parquet.read_table(decisions).to_pylist()}
    assert (decided["page"]["update_of"], decided["page"]["update_day"]) == ("page", datetime.date(2026, 1, 1))
    assert all(row["kept"] for row in decided.values())
    assert (summary.decisions["updates"], summary.decisions["pins"]) == (1, 1)
    assert sorted(capture["superseded"] for capture in archive.history("page").captures) == [False, True]
    archive.remove(day="2026-01-01", batch="noon")
    assert [capture["superseded"] for capture in archive.history("page").captures] == [False]
    more = pyarrow.table({"id": ["third"], "text": [texts[3]]})
    archive.append(more, "2026-01-01", batch="night")
    (day,) = archive.days().values()
    assert day.raw["batches"] == {"morning": 2, "night": 1}
    groups = archive.groups(count=1)
    assert (groups.documents, groups.kept, groups.largest) == (3, 3, [])
