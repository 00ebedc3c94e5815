"""Tests of the DAGs in a real Airflow with a database of its own, and a stand-in for the program.

`.ci/deploy` runs them. With DEDUP_JOB_TEST_PROGRAM the last ones run the real program on the repository's test data.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

# Before Airflow is imported, which reads them once.
HOME = Path(tempfile.mkdtemp(prefix="dedup-job-airflow-"))
os.environ.update(
    AIRFLOW_HOME=str(HOME),
    AIRFLOW__CORE__DAGS_FOLDER=str(HOME / "dags"),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__LOGGING__BASE_LOG_FOLDER=str(HOME / "logs"),
    DEDUP_JOB_CONFIG="/etc/a config.toml",
    DEDUP_JOB_FIRST_DAY="2026-11-01",
)
os.environ.pop("DEDUP_JOB_PROGRAM", None)
(HOME / "dags").mkdir()
for source in HERE.glob("dedup_job_*.py"):
    shutil.copy(source, HOME / "dags")
sys.path.insert(0, str(HOME / "dags"))

# Takes its orders from the environment, and writes down what it was called with.
STAND_IN = """\
    #!/usr/bin/env python3
    import json, os, pathlib, signal, sys, time
    here = pathlib.Path(os.environ["STAND_IN"])
    def stopped(*_):
        (here / "stopped").touch()
        sys.exit(143)
    signal.signal(signal.SIGTERM, stopped)
    with open(here / "calls", "a") as calls:
        print(json.dumps(sys.argv[1:]), file=calls)
    print("the first line", file=sys.stderr, flush=True)
    while (here / "wait").exists():
        time.sleep(0.01)
    codes = here / "codes"
    code, *rest = codes.read_text().split() if codes.exists() else ["0"]
    if rest:
        codes.write_text(" ".join(rest))
    if int(code) == 0:
        print(os.environ.get("STAND_IN_OUTPUT", '{"hits": 3, "new": {"documents": 1234, "digest": "ab"}, "passes": 1}'))
    elif (here / "message").exists():
        print("dedup-job:", (here / "message").read_text(), file=sys.stderr)
    else:
        print("dedup-job: it went wrong \\udcff".encode("utf-8", "surrogateescape").decode("latin-1"), file=sys.stderr)
    if int(code) < 0:
        os.kill(os.getpid(), -int(code))
    sys.exit(int(code))
"""


@pytest.fixture(scope="session", autouse=True)
def database():
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True)
    yield
    shutil.rmtree(HOME)


@pytest.fixture(scope="session")
def module(database):
    import dedup_job_dag

    return dedup_job_dag


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A directory with `dedup-job` in it, which is first on PATH."""
    program = tmp_path / "dedup-job"
    program.write_text(textwrap.dedent(STAND_IN))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("STAND_IN", str(tmp_path))
    return tmp_path


def calls(stand_in):
    return [json.loads(line) for line in (stand_in / "calls").read_text().splitlines()]


@pytest.fixture
def execute(module, stand_in):
    """Runs the operator of the DAG as Airflow would, without its database."""

    def execute(day=None, start=datetime(2026, 11, 20, 1, 30, tzinfo=UTC)):
        operator = module.dag.get_task("run")
        return type(operator).execute.__wrapped__(operator, {"params": {"day": day}, "data_interval_start": start})

    return execute


def test_the_dag_is_what_the_scheduler_sees(module):
    from airflow.dag_processing.dagbag import DagBag
    from airflow.serialization.serialized_objects import DagSerialization

    bag = DagBag(HOME / "dags")
    assert bag.import_errors == {}
    assert sorted(bag.dags) == ["dedup_job", "dedup_job_parts"]
    parts = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(bag.dags["dedup_job_parts"]))
    assert (len(parts.task_ids), parts.get_task("parts_1").retries, parts.catchup) == (17, 6, True)
    dag = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(bag.dags["dedup_job"]))
    assert dag.max_active_runs == 1
    task = dag.get_task("run")
    assert task.retries == 6
    assert task.execution_timeout == timedelta(hours=16)
    # Every day since the first one, each when it has ended.
    assert dag.catchup
    first = dag.next_dagrun_info(last_automated_run_info=None)
    assert first.data_interval.start == datetime(2026, 11, 1, 1, 30, tzinfo=UTC)
    assert first.run_after == datetime(2026, 11, 2, 1, 30, tzinfo=UTC)


def test_without_a_first_day_nothing_is_caught_up(module):
    environment = {name: value for name, value in os.environ.items() if name != "DEDUP_JOB_FIRST_DAY"}
    code = "import dedup_job_dag; print(dedup_job_dag.dag.catchup)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=HOME / "dags", capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"


def test_the_program_is_called_for_the_intervals_day(execute, stand_in, capfd):
    summary = execute()
    assert summary == {"hits": 3, "new": {"documents": 1234, "digest": "ab"}, "passes": 1}
    assert calls(stand_in) == [["run", "--config=/etc/a config.toml", "--day=2026-11-20", "--json"]]
    log = capfd.readouterr().out
    assert "the first line" in log
    assert "Done: hits 3, new.documents 1,234, passes 1" in log


def test_a_day_that_is_asked_for_wins(execute, stand_in):
    execute(day="2026-10-03")
    assert calls(stand_in)[0][2] == "--day=2026-10-03"


def test_days_are_days_of_utc(execute, stand_in):
    from zoneinfo import ZoneInfo

    execute(start=datetime(2026, 11, 20, 20, 0, tzinfo=ZoneInfo("America/New_York")))
    assert calls(stand_in)[0][2] == "--day=2026-11-21"


def test_without_an_interval_and_a_day_it_fails(execute, stand_in):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="no data interval"):
        execute(start=None)
    assert not (stand_in / "calls").exists()


@pytest.mark.parametrize("code", [64, 65, 77, 78])
def test_what_needs_a_person_is_not_tried_again(execute, stand_in, code):
    from airflow.sdk.exceptions import AirflowFailException

    (stand_in / "codes").write_text(str(code))
    with pytest.raises(AirflowFailException, match=f"exit code {code}, .*: dedup-job: it went wrong"):
        execute()


@pytest.mark.parametrize("code", [69, 70, 74, 75, 130, 143, -9])
def test_anything_else_is_tried_again(execute, stand_in, code):
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    (stand_in / "codes").write_text(str(code))
    with pytest.raises(AirflowException, match="exit code|killed by signal 9") as raised:
        execute()
    assert not isinstance(raised.value, AirflowFailException)


def test_a_program_that_is_not_there_is_not_tried_again(execute, stand_in, monkeypatch):
    from airflow.sdk.exceptions import AirflowFailException

    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(AirflowFailException, match="dedup-job cannot be started"):
        execute()


@pytest.mark.parametrize("output", ["", "all is well", "[1]"])
def test_a_run_without_a_summary_fails(execute, stand_in, monkeypatch, output):
    from airflow.sdk.exceptions import AirflowFailException

    monkeypatch.setenv("STAND_IN_OUTPUT", output)
    with pytest.raises(AirflowFailException, match="summary"):
        execute()


@pytest.fixture
def split(stand_in, monkeypatch):
    """Runs `split` of the DAG of parts, as Airflow would; `prints` is what the program prints."""
    import dedup_job_parts_dag

    def split(prints="", before=None, tasks=1000):
        monkeypatch.setenv("STAND_IN_OUTPUT", prints)
        monkeypatch.setattr(dedup_job_parts_dag, "TASKS", tasks)
        operator = dedup_job_parts_dag.dag.get_task("split_1")
        monkeypatch.setattr(operator, "before", before)
        context = {"params": {"day": "2026-11-20"}}
        return type(operator).execute.__wrapped__(operator, context)

    return split


def test_split_gives_each_task_its_parts(split, stand_in):
    state = '{"job": "j", "round": 2, "ready": false, "parts": 7, "maps": []}'
    assert split(state, tasks=3) == [{"round": 2, "parts": parts} for parts in ("0..2", "3..5", "6..6")]
    assert [work["parts"] for work in split(state)] == [f"{part}..{part}" for part in range(7)]
    job = "/var/lib/dedup-job/jobs/2026-11-20"
    assert calls(stand_in)[0] == ["split", job, "--config=/etc/a config.toml", "--day=2026-11-20", "--json"]
    assert split('{"job": "j", "round": 3, "ready": true, "parts": 0, "maps": []}') == []
    before = len(calls(stand_in))
    # Behind the last round, the program need not be asked again.
    assert split(state, before=[]) == [] and len(calls(stand_in)) == before


def test_split_gives_what_an_earlier_run_left(split, stand_in):
    (stand_in / "codes").write_text("75")
    (stand_in / "message").write_text(
        "j: round 2 is incomplete: parts 1,4 not answered yet; do them: dedup-job map j --part 1,4"
    )
    assert split() == [{"round": 2, "parts": "1,4"}]


def test_split_fails_as_run_does(split, stand_in):
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    (stand_in / "codes").write_text("64")
    with pytest.raises(AirflowFailException, match="exit code 64"):
        split()
    (stand_in / "codes").write_text("75")
    with pytest.raises(AirflowException, match="exit code 75"):
        split()


def until(true, seconds=20):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def test_log_lines_come_while_it_runs_and_on_kill_stops_it(module, execute, stand_in, capfd):
    (stand_in / "wait").touch()
    raised = []

    def work():
        try:
            execute()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    until(lambda: "the first line" in capfd.readouterr().out)
    assert thread.is_alive()
    module.dag.get_task("run").on_kill()
    thread.join(20)
    assert (stand_in / "stopped").exists()
    assert "exit code 143" in str(raised[0])


def test_a_timeout_stops_the_program(execute, stand_in):
    from airflow.sdk.exceptions import AirflowTaskTimeout
    from airflow.sdk.execution_time.timeout import timeout

    (stand_in / "wait").touch()
    with pytest.raises(AirflowTaskTimeout), timeout(2):
        execute()
    until((stand_in / "stopped").exists)


# From here on with Airflow's own machinery: a run in its database, the task in its task runner.


def run_of(module, day):
    """A whole run of the DAG that falls due on a day."""
    return module.dag.test(logical_date=datetime.fromisoformat(f"{day}T01:30:00Z"))


def task_of(run):
    [task] = run.get_task_instances()
    return task


def in_xcom(run):
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        query = XComModel.get_many(run_id=run.run_id, dag_ids="dedup_job", task_ids="run", key="return_value")
        return [row.value for row in session.scalars(query)]


def test_a_run_leaves_the_summary_in_xcom(module, stand_in):
    run = run_of(module, "2026-11-21")
    assert run.state == "success"
    # The interval that ends on this day began on the day before.
    assert [call[2] for call in calls(stand_in)] == ["--day=2026-11-20"]
    assert in_xcom(run) == [{"hits": 3, "new": {"documents": 1234, "digest": "ab"}, "passes": 1}]


def test_a_run_tries_again(module, stand_in, monkeypatch):
    monkeypatch.setattr(module.dag.get_task("run"), "retry_delay", timedelta(0))
    (stand_in / "codes").write_text("75 69 0")
    run = run_of(module, "2026-11-22")
    assert run.state == "success"
    assert task_of(run).try_number == len(calls(stand_in)) == 3


def test_a_run_fails_at_once(module, stand_in):
    (stand_in / "codes").write_text("65 0")
    run = run_of(module, "2026-11-23")
    assert run.state == task_of(run).state == "failed"
    assert len(calls(stand_in)) == 1


def test_waits_between_tries_grow(module, stand_in):
    from airflow.serialization.serialized_objects import DagSerialization

    instance = task_of(run_of(module, "2026-11-24"))
    dag = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(module.dag))
    instance.task = dag.get_task("run")
    for instance.try_number, least in enumerate([2, 4, 8, 16, 32, 60], start=1):
        wait = instance.next_retry_datetime() - instance.end_date
        # Airflow adds something of its own, and at most as much again.
        assert timedelta(minutes=least) <= wait <= timedelta(minutes=min(2 * least, 60))


with_program = pytest.mark.skipif(
    "DEDUP_JOB_TEST_PROGRAM" not in os.environ, reason="DEDUP_JOB_TEST_PROGRAM is not set"
)


def settings(tmp_path):
    """A settings file, for an archive of its own."""
    shutil.copytree(ROOT / "testdata" / "archive", tmp_path / "archive")
    config = tmp_path / "job.toml"
    config.write_text(
        textwrap.dedent(f"""\
            scratch = "{tmp_path}"
            [run]
            new = "{ROOT}/testdata/day.parquet"
            base = "{tmp_path}/archive"
            output = "{tmp_path}/hits.parquet"
            append = true
        """)
    )
    return config


@with_program
def test_the_real_program(module, monkeypatch, tmp_path):
    config = settings(tmp_path)
    operator = module.dag.get_task("run")
    monkeypatch.setattr(operator, "program", os.environ["DEDUP_JOB_TEST_PROGRAM"])
    monkeypatch.setattr(operator, "config", str(config))
    run = module.dag.test(run_conf={"day": "2026-01-31"})
    assert run.state == "success"
    [summary] = in_xcom(run)
    assert (summary["day"], summary["new"]["documents"], summary["hits"]) == ("2026-01-31", 400, 113)
    assert (tmp_path / "hits.parquet").read_bytes() == (ROOT / "testdata" / "expected.parquet").read_bytes()
    # The archive has the day now, with other documents than these.
    [other] = (ROOT / "testdata" / "archive" / "day=2026-01-30").glob("*.parquet")
    shutil.copy(other, tmp_path / "other.parquet")
    config.write_text(config.read_text().replace(f"{ROOT}/testdata/day.parquet", f"{tmp_path}/other.parquet"))
    run = module.dag.test(run_conf={"day": "2026-01-31"})
    assert task_of(run).state == "failed"


@with_program
def test_the_real_program_by_many_tasks(module, monkeypatch, tmp_path):
    import dedup_job_parts_dag

    config = settings(tmp_path)
    monkeypatch.setattr(dedup_job_parts_dag, "JOBS", f"{tmp_path}/jobs/")
    for task in dedup_job_parts_dag.dag.tasks:
        if task.is_mapped:
            monkeypatch.setitem(task.partial_kwargs, "program", os.environ["DEDUP_JOB_TEST_PROGRAM"])
            monkeypatch.setitem(task.partial_kwargs, "config", str(config))
        else:
            monkeypatch.setattr(task, "program", os.environ["DEDUP_JOB_TEST_PROGRAM"])
            monkeypatch.setattr(task, "config", str(config))
    run = dedup_job_parts_dag.dag.test(run_conf={"day": "2026-01-31"})
    assert run.state == "success"
    states = {task.task_id: task.state for task in run.get_task_instances()}
    assert (states["parts_1"], states["parts_8"], states["reduce"]) == ("success", "skipped", "success")
    assert (tmp_path / "hits.parquet").read_bytes() == (ROOT / "testdata" / "expected.parquet").read_bytes()
