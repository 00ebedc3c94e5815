"""Runs in parts: jobs by hand, and on process pools, Dask, Ray and Spark.

Of the engines, each that is installed; in CI, all. One alone: `-k ray`. DEDUP_JOB_TEST_ROWS is the size of the generated archive.
"""

import concurrent.futures
import contextlib
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys

import pyarrow.parquet
import pytest

import dedup_job
from conftest import DAY, ROOT, TESTDATA, import_or_skip, run_command
from dedup_job import executors

BASE = TESTDATA / "archive"
ROWS = int(os.environ.get("DEDUP_JOB_TEST_ROWS", "100000"))
PAGE = ROOT / "docs" / "many-machines.md"
#: What a part may take: several run on one machine.
SHARE = {"threads": 1, "memory_limit": "512MiB"}


@pytest.fixture(scope="session")
def expected(tmp_path_factory):
    """Pairs and decisions of a run without parts."""
    directory = tmp_path_factory.mktemp("expected")
    dedup_job.run(DAY, BASE, directory / "pairs.parquet", decisions=directory / "decisions.parquet", day="2026-01-31")
    return [(directory / name).read_bytes() for name in ("pairs.parquet", "decisions.parquet")]


@pytest.fixture(scope="session")
def generated(tmp_path_factory):
    """An archive of generated fingerprints, a batch, and the bytes of its pairs."""
    directory = tmp_path_factory.mktemp("generated") / "made"
    size = ["--base", str(ROWS), "--new", str(max(1000, ROWS // 100))]
    run_command("generate", "fingerprints", "--output", directory, *size)
    dedup_job.run(directory / "day.parquet", directory / "archive", directory / "pairs.parquet", day="2026-01-31")
    return directory


def split(place, **options):
    """A job on the test data, in three parts a round."""
    outputs = {"output": place / "pairs.parquet", "decisions": place / "decisions.parquet"}
    return dedup_job.split(DAY, BASE, job=place / "job", day="2026-01-31", parts=3, **SHARE, **{**outputs, **options})


def run(place, executor, **options):
    """A run on the test data, in three parts a round."""
    outputs = {"output": place / "pairs.parquet", "decisions": place / "decisions.parquet"}
    given = {"day": "2026-01-31", "parts": 3, "part_options": SHARE, **outputs, **options}
    return dedup_job.run(DAY, BASE, job=place / "job", executor=executor, **given)


def written(place):
    return [(place / name).read_bytes() for name in ("pairs.parquet", "decisions.parquet")]


# By hand.


def test_a_job_by_hand(tmp_path, expected):
    job = split(tmp_path)
    assert (job.round, job.ready, job.path) == (1, False, str(tmp_path / "job"))
    rounds = 0
    while not job.ready:
        rounds += 1
        assert rounds == job.round and list(job.parts) == list(range(len(job.parts)))
        with pytest.raises(dedup_job.TryAgainError) as caught:
            job.split()
        assert caught.value.parts == tuple(job.parts)
        # Another process, and some parts twice.
        job = pickle.loads(pickle.dumps(job))
        first = job.map(0)
        assert [part["part"] for part in first.raw["parts"]] == [0] and not first.parts[0].was_done
        assert job.map(0).parts[0].was_done
        with pytest.raises(dedup_job.TryAgainError):
            job.reduce()
        if len(job.parts) > 1:
            opened = dedup_job.Job.open(tmp_path / "job")
            assert (opened.round, opened.ready, tuple(opened.parts)) == (job.round, False, tuple(job.parts)[1:])
            job.map(opened.parts, threads=2)
        assert job.split() is job
    assert rounds >= 2 and len(job.parts) == 0 and "ready" in repr(job)
    summary = job.reduce()
    assert summary.hits == 113 and written(tmp_path) == expected
    # What is left is a marker, and the same call gives the same.
    assert job.reduce().hits == 113 and written(tmp_path) == expected


def test_mistakes(tmp_path):
    with pytest.raises(dedup_job.UsageError):
        dedup_job.Job.open(tmp_path / "none")
    job = split(tmp_path)
    with pytest.raises(dedup_job.UsageError):
        split(tmp_path, k=2)
    with pytest.raises(dedup_job.UsageError):
        job.map(len(job.parts))
    split(tmp_path, k=2, restart=True)
    for wrong in ({"job": tmp_path / "j"}, {"executor": executors.Ray()}, {"parts": 3}, {"restart": True}):
        with pytest.raises(dedup_job.UsageError, match="executor"):
            dedup_job.run(DAY, BASE, **wrong)
    with pytest.raises(dedup_job.UsageError, match="name a file"):
        dedup_job.run(DAY, decisions=True)
    with pytest.raises(TypeError, match="no method submit"):
        run(tmp_path, object())


def test_tables_go_through_the_directory_beside_the_job(tmp_path, documents, expected):
    pandas = import_or_skip("pandas")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        seen = []
        for batch in (documents, documents.to_pandas()):
            job = tmp_path / pandas.Timestamp.now().strftime("%f")
            summary = dedup_job.run(
                batch, BASE, job=job, executor=pool, day="2026-01-31", decisions=True, parts=2, progress=seen.append
            )
            made = pyarrow.parquet.read_table(summary.decisions.output)
            assert made.num_rows == 400 and summary.decisions.output == f"{job}-data/decisions.parquet"
            # The batch is gone.
            assert os.listdir(f"{job}-data") == ["decisions.parquet"]
    shown = [str(progress) for progress in seen]
    assert "parts of round 2: 0 of 2 (0 %)" in shown and "parts of round 2: 2 of 2 (100 %)" in shown
    job = dedup_job.split(documents, BASE, job=tmp_path / "kept", day="2026-01-31", output=True)
    [batch] = os.listdir(tmp_path / "kept-data")
    assert re.fullmatch(r"batch-[0-9a-f]{16}\.parquet", batch)
    again = dedup_job.split(documents, BASE, job=tmp_path / "kept", day="2026-01-31", output=True)
    assert again.parts == tuple(job.parts) and os.listdir(tmp_path / "kept-data") == [batch]


@pytest.mark.parametrize("error", [dedup_job.UsageError, dedup_job.StoppedError, dedup_job.TryAgainError])
def test_errors_of_parts_can_be_pickled(error):
    made = error("part 7: no such file", parts=(7,))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        copied = pickle.loads(pickle.dumps(made, protocol))
        assert type(copied) is error and copied.parts == (7,)
        assert (copied.message, copied.exit_code, str(copied)) == (made.message, error.exit_code, made.message)
    assert error("other").parts == ()


def test_a_part_of_no_job(tmp_path):
    with pytest.raises(dedup_job.UsageError, match="^part 5: ") as caught:
        executors.do_part(str(tmp_path / "none"), 5, {})
    assert caught.value.parts == (5,)


# Engines. What stands in for `do_part` is defined inside of a function, so that its code goes to the workers.


def killing_once(marker):
    """A `do_part` in which the first worker that does part 1 is killed in the middle."""

    def do(job, part, options):
        import os
        import signal
        import threading

        from dedup_job.executors import do_part

        if part == 1:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                threading.Timer(0.15, os.kill, [os.getpid(), signal.SIGKILL]).start()
        return do_part(job, part, options)

    return do


def check_engine(place, executor, expected, generated):
    """A run, parts handed out twice, a killed worker, generated data, and errors: the same bytes as `run` writes."""
    summary = run(place, executor)
    assert summary.hits == 113 and written(place) == expected

    twice = place / "twice"
    twice.mkdir()
    job = split(twice)
    while not job.ready:
        executors.engine_for(executor).do_parts(job.path, [*job.parts, *job.parts], SHARE, lambda done: None)
        job.split()
    job.reduce()
    assert written(twice) == expected

    killed = place / "killed"
    killed.mkdir()
    with patched_do_part(killing_once(str(killed / "marker"))):
        output = killed / "pairs.parquet"
        paths = generated / "day.parquet", generated / "archive", output
        given = {"day": "2026-01-31", "parts": 4, "part_options": SHARE}
        dedup_job.run(*paths, job=killed / "job", executor=executor, **given)
    assert (killed / "marker").exists()
    assert output.read_bytes() == (generated / "pairs.parquet").read_bytes()

    check_error(place, executor)


def check_error(place, executor):
    """A part fails in a way that no retry mends: its input is gone."""
    there = place / "there.parquet"
    shutil.copy(DAY, there)
    job = dedup_job.split(there, BASE, place / "o.parquet", job=place / "failing", day="2026-01-31", parts=1)
    there.unlink()
    with pytest.raises(dedup_job.DedupJobError, match="^part 0: ") as caught:
        job.run(executor)
    assert caught.value.parts == (0,) and caught.value.exit_code in (64, 65, 78)


@contextlib.contextmanager
def patched_do_part(function):
    """Another function for workers, in the modules of all engines."""
    with pytest.MonkeyPatch.context() as patched:
        for name in ("_engine", "_ray", "_spark"):
            patched.setattr(f"dedup_job.executors.{name}.do_part", function)
        yield


def kill_the_worker(job, part, options):
    if part == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return executors.do_part(job, part, options)


def test_process_pool(tmp_path, expected, generated):
    fork = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(2, fork) as pool:
        run(tmp_path, pool)
        check_error(tmp_path, pool)
    assert written(tmp_path) == expected
    # Of itself, a pool does not do a part again: the next call does.
    killed = tmp_path / "killed"
    killed.mkdir()
    with patched_do_part(kill_the_worker), concurrent.futures.ProcessPoolExecutor(2, fork) as pool:
        with pytest.raises(dedup_job.TryAgainError, match="^part [012]: the executor lost it: ") as caught:
            run(killed, pool)
        assert len(caught.value.parts) == 1
    with concurrent.futures.ProcessPoolExecutor(2, fork) as pool:
        dedup_job.Job.open(killed / "job").run(pool)
    assert written(killed) == expected
    paths = generated / "day.parquet", generated / "archive", tmp_path / "g.parquet"
    with concurrent.futures.ProcessPoolExecutor(2, fork) as pool:
        dedup_job.run(*paths, day="2026-01-31", job=tmp_path / "g", executor=pool, parts=4, part_options=SHARE)
    assert (tmp_path / "g.parquet").read_bytes() == (generated / "pairs.parquet").read_bytes()


class Plain:
    """An executor whose futures are no futures of `concurrent.futures`, as those of submitit."""

    class Future:
        def __init__(self, call):
            self._call = call

        def done(self):
            return True

        def cancel(self):
            pass

        def result(self):
            return self._call()

    def submit(self, function, *arguments):
        return self.Future(lambda: function(*arguments))


def test_an_executor_needs_submit_only(tmp_path, expected):
    run(tmp_path, Plain())
    assert written(tmp_path) == expected
    check_error(tmp_path, Plain())


def test_dask(tmp_path, expected, generated):
    distributed = import_or_skip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        check_engine(tmp_path, client.get_executor(retries=2), expected, generated)


def test_ray(tmp_path, expected, generated):
    ray = import_or_skip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        check_engine(tmp_path, executors.Ray(num_cpus=1), expected, generated)
    finally:
        ray.shutdown()


@pytest.fixture
def session(monkeypatch):
    """Spark with two executors, which are processes of their own, and speculative execution that does not hesitate."""
    import_or_skip("pyspark")
    from pyspark.sql import SparkSession

    if not shutil.which("java") and not os.environ.get("CI"):
        pytest.skip("there is no Java")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.speculation": "true",
        "spark.speculation.interval": "10ms",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.minTaskRuntime": "1ms",
        "spark.sql.shuffle.partitions": "2",
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def test_spark(tmp_path, expected, generated, session, documents):
    spark = executors.Spark(session)
    check_engine(tmp_path, spark, expected, generated)
    check_frames(tmp_path, spark, session.read.parquet(str(DAY)), documents)


def check_frames(place, spark, frame, documents):
    """A DataFrame as the batch, in several files, and all outputs as DataFrames."""
    options = {"day": "2026-01-31", "parts": 2, "output": True, "decisions": True, "kept": True}
    job = place / "frames"
    summary = dedup_job.run(frame.repartition(3), BASE, job=job, executor=spark, part_options=SHARE, **options)
    assert isinstance(summary, executors.SparkSummary) and summary.hits == 113
    assert summary.frame("pairs").count() == 113
    decisions = {row["id"]: row["kept"] for row in summary.frame("decisions").collect()}
    assert len(decisions) == 400 and sum(decisions.values()) == summary.decisions.kept
    kept = summary.frame("kept")
    assert {row["id"] for row in kept.select("id").collect()} == {id for id, is_kept in decisions.items() if is_kept}
    assert kept.columns == frame.columns
    # The batch is gone.
    assert sorted(os.listdir(f"{job}-data")) == ["decisions.parquet", "kept", "pairs.parquet"]
    with pytest.raises(dedup_job.UsageError, match="take pairs, decisions or kept"):
        summary.frame("hits")
    without = dedup_job.run(frame, BASE, job=place / "f", executor=spark, part_options=SHARE, day="2026-01-31")
    with pytest.raises(dedup_job.UsageError, match="decisions=True"):
        without.frame("decisions")


def test_errors_of_spark_are_read_from_its_text():
    from dedup_job.executors import _spark

    text = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 1, in process
dedup_job.ConfigurationError: part 12: it went wrong
in two lines
 SQLSTATE: 38000

\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1)
"""
    error = _spark._error(RuntimeError(text))
    assert type(error) is dedup_job.ConfigurationError and error.parts == (12,)
    assert error.message == "part 12: it went wrong\nin two lines" and error.exit_code == 78
    lost = _spark._error(RuntimeError(text.replace("dedup_job.ConfigurationError: part 12", "ModuleNotFoundError")))
    assert type(lost) is dedup_job.TryAgainError and "Spark gave up: ModuleNotFoundError" in lost.message
    assert "ExecutorLost" in _spark._error(RuntimeError("Job aborted: ExecutorLost")).message


# The page.


def scripts():
    text = PAGE.read_text()
    for match in re.finditer(r"^```py\n(.*?)^```$", text, re.M | re.S):
        names = re.findall(r"^(?:import|from) (ray|pyspark|dask|concurrent)\b", match[1], re.M)
        yield pytest.param(match[1], id=names[0])


@pytest.mark.parametrize("script", list(scripts()))
def test_scripts_of_the_page_run(tmp_path, script, monkeypatch):
    for package in re.findall(r"^(?:import|from) (ray|pyspark|pandas|dask)\b", script, re.M):
        import_or_skip({"dask": "distributed"}.get(package, package))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    shutil.copytree(TESTDATA, tmp_path / "testdata")
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^113\b", done.stdout, re.M), done.stdout
