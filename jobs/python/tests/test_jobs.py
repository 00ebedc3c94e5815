"""run, decide, explain, tune: what the command does, its summary, its errors, its progress."""

import base64
import http.server
import inspect
import json
import logging
import os
import pickle
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy
import pyarrow
import pyarrow.parquet
import pytest

import dedup_job
from conftest import DAY, TESTDATA, import_or_skip, run_command

BASE = TESTDATA / "archive"


def test_run(tmp_path):
    output = tmp_path / "hits.parquet"
    summary = dedup_job.run(DAY, BASE, output, day="2026-01-31")
    assert output.read_bytes() == (TESTDATA / "expected.parquet").read_bytes()
    assert (summary.hits, summary.new.documents, summary.commit) == (113, 400, "not_asked")
    assert summary.seconds.total > 0 and summary.raw["seconds"]["total"] == summary.seconds.total
    assert "hits" in dir(summary) and "'hits': 113" in repr(summary)
    with pytest.raises(AttributeError, match="no colour"):
        summary.colour
    printed = run_command("run", "--new", DAY, "--base", BASE, "--output", tmp_path / "b.parquet", "--json").stdout
    assert json.loads(printed).keys() == summary.raw.keys()


def test_options():
    """The options of `run` are those of the command, and types say which."""
    help_text = run_command("run", "--help").stdout
    flags = {*re.findall(r"^ {2,6}(?:-\w, )?--([a-z-]+)", help_text, re.M)} - {"help", "json", "log-format", "version"}
    # The program that Python starts has no standard input, of which `--format` is.
    flags -= {"no-within", "new", "base", "output", "max-distance", "format"}
    types = {*dedup_job.RunOptions.__annotations__} - {"k"}
    assert {name.replace("_", "-") for name in types} == flags
    to_arguments = dedup_job._options.to_arguments
    assert to_arguments({"k": 3, "append": True, "within": False, "quiet": False, "day": None}) == [
        "--max-distance=3",
        "--append",
        "--no-within",
    ]
    assert to_arguments({"append": "kept", "base_text": iter(["a", DAY]), "verbose": 2}) == [
        "--append=kept",
        "--base-text=a",
        f"--base-text={DAY}",
        "--verbose",
        "--verbose",
    ]
    with pytest.raises(dedup_job.UsageError, match="json is set"):
        dedup_job.run(DAY, json=True)


@pytest.mark.parametrize("kind", ["pyarrow", "pandas", "polars", "duckdb", "datasets"])
def test_decide(tmp_path, documents, kind):
    decisions = tmp_path / "decisions.parquet"
    run_command("run", DAY, "--decisions", decisions)
    expected = pyarrow.parquet.read_table(decisions)
    batch = {
        "pyarrow": lambda: documents,
        "pandas": documents.to_pandas,
        "polars": lambda: import_or_skip("polars").from_arrow(documents),
        "duckdb": lambda: import_or_skip("duckdb").from_arrow(documents),
        "datasets": lambda: import_or_skip("datasets").Dataset(documents),
    }[kind]()
    table = dedup_job.decide(batch)
    assert table.to_pyarrow().equals(expected)
    kept = table.to_numpy("kept")
    assert kept.dtype == bool and kept.sum() == table.summary.decisions.kept < 400
    assert table.to_polars()["kept"].sum() == kept.sum()
    assert table.to_pylist()[0]["id"] == "new/0000000000"


@pytest.mark.parametrize("archive", [None, BASE])
def test_decisions_are_in_the_order_of_the_batch(documents, archive):
    """So that `frame[decisions.to_numpy("kept")]` is right, also if row numbers become strings beside those of an archive."""
    kept = {row["id"] for row in dedup_job.decide(documents, archive).to_pylist() if row["kept"]}
    shuffled = documents.take(numpy.random.default_rng(1).permutation(400))
    table = dedup_job.decide(shuffled, archive)
    assert table.to_numpy("id").tolist() == shuffled["id"].to_pylist()
    assert {*shuffled.filter(table.to_numpy("kept"))["id"].to_pylist()} == kept
    renamed = shuffled.rename_columns(["key", "text"])
    assert dedup_job.decide(renamed, archive, id_column="key").to_pylist() == table.to_pylist()
    by_row = dedup_job.decide(documents.select(["text"]), archive)
    assert [int(id) for id in by_row.to_numpy("id")] == list(range(400))
    assert {*documents.filter(by_row.to_numpy("kept"))["id"].to_pylist()} == kept
    # Of equal ids, too, rows are neither lost nor repeated.
    twice = pyarrow.concat_tables([documents, documents])
    assert dedup_job.decide(twice, archive).to_numpy("id").tolist() == twice["id"].to_pylist()


def test_ids_are_row_numbers_without_a_column(documents, texts):
    table = dedup_job.decide(texts)
    assert table.to_numpy("id").tolist() == list(range(400))
    by_id = dedup_job.decide(documents)
    # Both orders of ids are that of the rows.
    assert (table.to_numpy("kept") == by_id.to_numpy("kept")).all()
    frame = documents.to_pandas()[["text"]]
    assert (dedup_job.decide(frame).to_numpy("kept") == table.to_numpy("kept")).all()


ERRORS = [
    (dedup_job.UsageError, 64, lambda tmp: dedup_job.run("missing.parquet")),
    (dedup_job.UsageError, 64, lambda tmp: dedup_job.run(DAY, k=17)),
    (dedup_job.UsageError, 64, lambda tmp: dedup_job.run(DAY, colour="red")),
    (dedup_job.UsageError, 64, lambda tmp: dedup_job.Archive(tmp / "none").info()),
    (dedup_job.UsageError, 64, lambda tmp: dedup_job.Archive(tmp / "none").to_arrow()),
    (dedup_job.UsageError, 64, lambda tmp: dedup_job.Index(tmp)),
    (dedup_job.DataError, 65, lambda tmp: dedup_job.run(damaged(tmp))),
    (dedup_job.UnreachableError, 69, lambda tmp: dedup_job.run(
        DAY, "s3://bucket/archive", tmp / "o.parquet", endpoint="http://127.0.0.1:9", allow_http=True, retries=0
    )),
    (dedup_job.ConfigurationError, 78, lambda tmp: dedup_job.run(DAY, BASE, tmp / "o.parquet", weight="set")),
]


def damaged(tmp):
    path = tmp / "damaged.parquet"
    path.write_bytes(b"PAR1" + bytes(100))
    return path


@pytest.mark.parametrize("kind, code, call", ERRORS)
def test_errors(tmp_path, store, kind, code, call):
    with pytest.raises(dedup_job.DedupJobError) as caught:
        call(tmp_path)
    error = caught.value
    assert type(error) is kind and error.exit_code == code
    assert error.message and not error.message.startswith(("dedup-job", "error"))


def test_errors_are_in_terms_of_python(tmp_path, documents):
    for call, message in [
        (lambda: dedup_job.run(DAY, k=17), "invalid value '17' for k: 17 is not in 0..=16"),
        (lambda: dedup_job.run(DAY, memory_limt="1GiB"), "unexpected argument 'memory_limt' found"),
        (lambda: dedup_job.run(DAY, verify="none", min_similarity=0.8), "min_similarity needs verify MEASURE"),
        (lambda: dedup_job.run(DAY, columns="text"), "columns needs decisions"),
        (lambda: dedup_job.decide(DAY, columns=["url"]), 'no column "url", which columns names'),
        (lambda: dedup_job.decide(documents.rename_columns(["id", "abstract"])), "the data in memory: no text"),
        (lambda: dedup_job.decide(documents.rename_columns(["id", "abstract"])), "name it by text_column or fingerprint_column"),
        (lambda: dedup_job.run([DAY] * 100_000), "too many paths"),
    ]:
        with pytest.raises(dedup_job.DedupJobError) as caught:
            call()
        assert message in caught.value.message and "--" not in caught.value.message
        assert "Usage:" not in caught.value.message


def test_summaries():
    summary = dedup_job.Summary({"hits": 3, "seconds": {"total": 1.5}, "rows": [{"a": 1}] * 9, "numbers": [*range(25)]})
    assert summary.hits == summary["hits"] == 3 and summary["seconds"]["total"] == summary.seconds.total == 1.5
    assert "hits" in summary and "colour" not in summary and "keys" not in summary
    assert summary.rows[8].a == 1 and len(summary.numbers) == 25
    shown = repr(summary)
    assert "... 8 more" in shown and "... 5 more" in shown and "24" not in shown
    with pytest.raises(KeyError):
        summary["colour"]


def test_notebooks_are_known_by_their_shell(monkeypatch):
    import types

    kernel = type("ZMQInteractiveShell", (), {})
    colab = type("Shell", (kernel,), {})
    terminal = type("TerminalInteractiveShell", (), {})
    for shell, expected in [(kernel(), True), (colab(), True), (terminal(), False), (None, False)]:
        monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
        assert dedup_job._progress._in_notebook() is expected


def test_progress(tmp_path):
    frame = pyarrow.table({"id": range(100_000), "text": [f"word{n} of text {n % 7} and number {n}" for n in range(100_000)]})
    seen = []
    dedup_job.run(frame, output=tmp_path / "o.parquet", progress=seen.append, threads=1)
    assert all(isinstance(progress, dedup_job.Progress) for progress in seen)
    # A fast machine may end before the first report.
    assert all(progress.done >= 0 and progress.stage for progress in seen)

    def fail(progress):
        raise RuntimeError("enough")

    if seen:
        with pytest.raises(RuntimeError, match="enough"):
            dedup_job.run(frame, output=tmp_path / "p.parquet", progress=fail, threads=1)


def test_log_lines(tmp_path, caplog):
    documents = tmp_path / "documents.jsonl"
    documents.write_text(json.dumps({"text": "one two three four five"}) + "\n")
    with caplog.at_level(logging.WARNING, "dedup_job"):
        dedup_job.run(documents, output=tmp_path / "o.parquet")
    assert "no id column found" in caplog.text


# A run that waits for an object store.
WAITING = f"""
import dedup_job, sys
dedup_job.run({str(DAY)!r}, "s3://bucket/archive", "o.parquet", endpoint=sys.argv[1], allow_http=True, scratch=".")
"""


@pytest.fixture
def silent(store):
    """An object store that takes requests, and does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def start_waiting(directory, silent, code=WAITING):
    endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
    process = subprocess.Popen([sys.executable, "-c", code, endpoint], cwd=directory, stderr=subprocess.PIPE, text=True)
    # A connection comes when the job has begun to wait. Nobody accepts it.
    assert select.select([silent], [], [], 60)[0] == [silent]
    return process


def children(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        return [int(child) for child in file.read().split()]


def wait_until_gone(pid, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


def test_interrupt(tmp_path, silent):
    """SIGINT to the interpreter alone, as Jupyter sends it: KeyboardInterrupt, and the job is gone."""
    process = start_waiting(tmp_path, silent)
    (child,) = children(process)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=10)
    assert time.monotonic() - begin < 2
    assert "KeyboardInterrupt" in errors
    assert wait_until_gone(child, 0.5)
    # Its temporary files are gone, too.
    assert list(tmp_path.iterdir()) == []


# A run of a batch in memory, whose file the interpreter writes.
WAITING_IN_MEMORY = f"""
import dedup_job, pyarrow.parquet, sys
batch = pyarrow.parquet.read_table({str(DAY)!r})
dedup_job.run(batch, "s3://bucket/archive", "o.parquet", endpoint=sys.argv[1], allow_http=True, scratch=".")
"""


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGKILL])
def test_files_of_a_killed_interpreter_are_removed_by_the_next_run(tmp_path, silent, stop):
    process = start_waiting(tmp_path, silent, WAITING_IN_MEMORY)
    (child,) = children(process)
    process.send_signal(stop)
    process.wait()
    process.stderr.close()
    assert wait_until_gone(child, 2)
    (left,) = tmp_path.glob("dedup-job-*/batch.parquet")
    # Young directories stay: their process might not have locked them yet.
    os.utime(left.parent, (1, 1))
    dedup_job.run(DAY, output=tmp_path / "o.parquet", scratch=tmp_path)
    assert os.listdir(tmp_path) == ["o.parquet"]


def test_files_of_a_living_interpreter_stay(tmp_path, silent):
    process = start_waiting(tmp_path, silent, WAITING_IN_MEMORY)
    (batch,) = tmp_path.glob("dedup-job-*/batch.parquet")
    os.utime(batch.parent, (1, 1))
    dedup_job.run(DAY, output=tmp_path / "o.parquet", scratch=tmp_path)
    assert batch.exists()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert os.listdir(tmp_path) == ["o.parquet"]


def test_the_job_ends_with_its_parent(tmp_path, silent):
    process = start_waiting(tmp_path, silent)
    (child,) = children(process)
    process.kill()
    process.wait()
    process.stderr.close()
    assert wait_until_gone(child, 2)


INTERRUPTED = """
import numpy, dedup_job
values = numpy.random.default_rng(1).integers(0, 2**64, {count}, dtype=numpy.uint64)
print("begin", flush=True)
dedup_job.pairs(values, k={k}, progress={progress})
"""


@pytest.mark.parametrize("progress", ["False", "lambda progress: None"])
@pytest.mark.parametrize("count, k", [(4_000_000, 10), (400_000, 16)])
def test_interrupt_in_process(count, k, progress):
    """While tables are built, and while they are probed."""
    code = INTERRUPTED.format(count=count, k=k, progress=progress)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begin\n"
    time.sleep(1)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors
    assert time.monotonic() - begin < 2


class Gateway(http.server.BaseHTTPRequestHandler):
    """Takes metrics, and notes who sent them: the headers, and the command lines of all processes."""

    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.pushes.append((self.path, self.headers["Authorization"], command_lines()))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments):
        pass


def command_lines():
    """What `ps` shows of each process."""
    lines = []
    for process in os.listdir("/proc"):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                lines.append(file.read())
        except OSError:
            # No process, or one that has ended.
            pass
    return lines


def test_a_password_in_the_url_of_metrics_is_hidden(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway) as server:
        server.pushes = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        host = f"127.0.0.1:{server.server_port}"
        output = tmp_path / "hits.parquet"
        dedup_job.run(DAY, output=output, metrics=f"http://watcher:gl4ss-frog@{host}/metrics/job/dedup-job")
        server.shutdown()
    ((path, authorization, lines),) = server.pushes
    assert path == "/metrics/job/dedup-job"
    assert authorization == "Basic " + base64.b64encode(b"watcher:gl4ss-frog").decode()
    # The job is among the processes, without the password.
    assert any(str(output).encode() in line for line in lines)
    assert not any(b"gl4ss-frog" in line for line in lines)


def test_metrics_go_to_files(tmp_path, documents):
    dedup_job.decide(documents, metrics=tmp_path / "dedup-job.prom")
    assert "dedup_job_exit_code 0" in (tmp_path / "dedup-job.prom").read_text()


def test_false_leaves_a_switch_to_the_configuration_file(tmp_path):
    """As documented: the command has no opposite of its switches, but of `within`."""
    config = tmp_path / "job.toml"
    config.write_text("[run]\nwithin = true\noverwrite = true\n")
    output = tmp_path / "hits.parquet"
    output.write_bytes(b"other")
    dedup_job.run(DAY, BASE, output, config=config, overwrite=False, day="2026-01-31")
    with_within = pyarrow.parquet.read_metadata(output).num_rows
    assert dedup_job.run(DAY, BASE, output, config=config, within=False, day="2026-01-31").hits < with_within


def test_forked_processes(texts):
    """Nothing is left behind that a forked process lacks."""
    import multiprocessing

    expected = dedup_job.fingerprint(texts).tolist()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for made in pool.map(dedup_job.fingerprint, [texts, texts]):
            assert made.tolist() == expected


def test_explain(texts):
    explained = dedup_job.explain(texts[0], texts[0] + " more")
    printed = run_command("explain", "--json", "--", texts[0], texts[0] + " more").stdout
    assert explained.raw == json.loads(printed)
    assert dedup_job.explain("-a b c d e", "--f g h i j").raw
    # More than an argument can have, and what none can have.
    assert dedup_job.explain("word " * 60_000, "a b c d e").distance > 0
    assert dedup_job.explain(" " * 60_000, "a b c d e").distance is None
    assert dedup_job.explain("a b c d e\0", "a b c d e \ud800").raw["texts"][0]["from"] == "the text given"
    ids = dedup_job.explain("new/0000000000", "new/0000000001", documents=DAY)
    assert "new/0000000000" in ids.texts[0]["from"]


def test_tune_and_idf(tmp_path, documents):
    tuned = dedup_job.tune(documents, sample=300)
    assert tuned.raw.keys() == dedup_job.tune([DAY], sample=300).raw.keys()
    specs = tuned.spec_table().to_pylist()
    assert len(specs) == len(tuned.raw["compared"]) == 12
    (best,) = [row for row in specs if row["best"]]
    assert json.loads(best["spec"]) == tuned.raw["spec"] and best["weight"] == tuned.spec.weight
    assert {row["idf_power"] for row in specs} == {None, "1/2"}
    learn = documents if tuned.learnt else None
    archive = dedup_job.Archive.create(tmp_path / "tuned", learn=learn, **tuned.spec_options)
    made = archive.spec().to_dict()
    digests = {"idf", "sketch", "short_texts", "template"}
    assert {**made, **dict.fromkeys(digests)} == {**tuned.raw["spec"], **dict.fromkeys(digests)}
    frame = tuned.distance_table().to_pandas()
    assert frame["k"].tolist() == list(range(17)) and frame["pairs"].tolist() == [at.pairs for at in tuned.distances]
    assert (frame["pairs"] == frame.filter(regex="^pairs_").sum(axis=1)).all()
    assert frame["recall"].is_monotonic_increasing and frame["core_seconds"].min() > 0
    of_best = frame[frame["k"] == best["k"]].iloc[0]
    assert of_best["recall"] == best["recall"] and of_best["design"] == best["design"]
    (only,) = dedup_job.tune(DAY, sample=300, weight="tf").spec_table().to_pylist()
    assert only["best"] and only["weight"] == "tf"
    copied = pickle.loads(pickle.dumps(tuned))
    assert type(copied) is dedup_job.Tuned and copied.spec_table().to_pylist() == specs
    counted = dedup_job.idf(DAY, tmp_path / "idf.parquet")
    assert counted.documents == 400
    spec = dedup_job.Spec(idf=tmp_path / "idf.parquet")
    assert spec.to_dict()["idf"] is not None


def test_the_command():
    help_text = run_command("run", "--help").stdout
    assert "Usage: dedup-job run" in help_text
    scripts = os.path.join(os.path.dirname(sys.executable), "dedup-job")
    if os.path.exists(scripts):
        assert subprocess.run([scripts, "run", "--help"], capture_output=True, text=True).stdout == help_text
    module = subprocess.run([sys.executable, "-m", "dedup_job", "--version"], capture_output=True, text=True)
    assert module.stdout.strip().endswith(dedup_job.__version__)
    assert run_command("run", check=False).returncode == 64
    assert run_command("nonsense", check=False).returncode == 64


def test_help_reads_well():
    """Every public function says what it takes and returns."""
    for options in (dedup_job.RunOptions, dedup_job.DecideOptions, dedup_job.CompareOptions, dedup_job.TuneOptions):
        document = inspect.getdoc(options)
        own = {*options.__annotations__} - ({*dedup_job.CompareOptions.__annotations__} if options is dedup_job.TuneOptions else set())
        assert all(re.search(rf"^{name}$", document, re.M) for name in own), options
    for name in dedup_job.__all__:
        value = getattr(dedup_job, name)
        if inspect.isfunction(value):
            document = inspect.getdoc(value)
            assert document.splitlines()[0].endswith((".", ":")) or len(document.splitlines()[0]) < 120, name
            for parameter in inspect.signature(value).parameters:
                assert parameter in document or parameter in {"progress", "options"}, (name, parameter)


def test_without_numpy_and_pyarrow(tmp_path):
    """The package imports, and finds pairs, where nothing else is installed."""
    code = f"""
import sys
sys.modules["numpy"] = sys.modules["pyarrow"] = None
import dedup_job
texts = ["the quick brown fox jumps over", "The QUICK brown fox, jumps over!", "404"]
assert dedup_job.pairs(texts).to_pylist() == [{{"new_id": 1, "base_id": 0, "distance": 0}}]
assert len(dedup_job.fingerprint_arrow(texts)) == 3
assert len(dedup_job.decide(texts)) == 3
assert dedup_job.run({str(DAY)!r}, output={str(tmp_path / "o.parquet")!r}).hits > 0
"""
    subprocess.run([sys.executable, "-c", code], check=True)
