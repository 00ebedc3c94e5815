"""The nightly job as a DAG whose work many workers share, for Airflow 3.2 and later.

It is the run of dedup_job_dag.py, with the same settings file and variables, in rounds: `split` plans a round, each of
its parts is a mapped task, and `reduce` ends the run. Switch on one of the two DAGs. Two more environment variables of
the workers and the DAG processor:

    DEDUP_JOB_JOBS   the directory or prefix, which all workers reach, where each day has a job of its own:
                     /var/lib/dedup-job/jobs
    DEDUP_JOB_TASKS  how many tasks a round has at most, as Airflow's max_map_length allows; then each does several
                     parts: 1000
"""

from __future__ import annotations

import os
import re
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, CronDataIntervalTimetable, Param
from airflow.sdk.exceptions import AirflowException
from dedup_job_operator import CONFIG, FIRST_DAY, PROGRAM, RETRIES, DedupJobOperator, counts, day_of

JOBS = os.environ.get("DEDUP_JOB_JOBS", "/var/lib/dedup-job/jobs")
TASKS = int(os.environ.get("DEDUP_JOB_TASKS", "1000"))
# A DAG has all its tasks before it runs. A run needs two to five rounds, by its options; those that it does not need
# are skipped.
ROUNDS = 8


def job_of(context) -> str:
    """Where the job of the day is."""
    return f"{JOBS.rstrip('/')}/{day_of(context)}"


class SplitOperator(DedupJobOperator):
    """Plans the next round; returns the work of each task: the round, and its parts as a list for `map --part`."""

    def __init__(self, *, before=None, **kwargs):
        super().__init__(**kwargs)
        # The work of the round before; none if the job was ready.
        self.before = before

    template_fields = ("before",)

    def execute(self, context) -> list:
        if self.before == []:
            return []
        try:
            # With the options again, since the settings file has some of them.
            state = self.call("split", job_of(context), f"--config={self.config}", f"--day={day_of(context)}")
        except AirflowException as error:
            # An earlier run of this DAG left parts undone.
            if (left := re.search(r"exit code 75.*\bround (\d+) .*--part ([\d.,]+)", str(error))) is None:
                raise
            return [{"round": int(left[1]), "parts": left[2]}]
        parts = 0 if state["ready"] else state["parts"]
        size = -(-parts // TASKS)
        return [
            {"round": state["round"], "parts": f"{first}..{min(first + size, parts) - 1}"}
            for first in range(0, parts, size or 1)
        ]


class MapOperator(DedupJobOperator):
    """Does parts of a round."""

    def __init__(self, *, work, **kwargs):
        super().__init__(**kwargs)
        self.work = work

    template_fields = ("work",)

    def execute(self, context) -> None:
        which = [f"--round={self.work['round']}", f"--part={self.work['parts']}"]
        self.call("map", job_of(context), f"--config={self.config}", *which)


class ReduceOperator(DedupJobOperator):
    """Ends the run, and returns its summary."""

    def execute(self, context) -> dict:
        summary = self.call("reduce", job_of(context), f"--config={self.config}")
        self.log.info("Done: %s", ", ".join(f"{name} {count:,}" for name, count in counts(summary)))
        return summary


with DAG(
    dag_id="dedup_job_parts",
    description="Near-duplicates between a day of documents and the archive, by many workers",
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("30 1 * * *", timezone="UTC"),
    start_date=datetime.fromisoformat(FIRST_DAY or "2026-01-01").replace(tzinfo=timezone.utc),
    catchup=FIRST_DAY is not None,
    max_active_runs=1,
    params={"day": Param(None, type=["null", "string"], format="date", description="Instead of the interval's day")},
    default_args={**RETRIES, "execution_timeout": timedelta(hours=16)},
    tags=["dedup-job"],
) as dag:
    program = {"program": PROGRAM, "config": CONFIG}
    # A round without parts is skipped, and what is behind it runs all the same.
    behind = {**program, "trigger_rule": "none_failed"}
    split = SplitOperator(task_id="split_1", **program)
    for number in range(1, ROUNDS + 1):
        parts = MapOperator.partial(task_id=f"parts_{number}", **program).expand(work=split.output)
        if number == ROUNDS:
            last = ReduceOperator(task_id="reduce", **behind)
        else:
            last = SplitOperator(task_id=f"split_{number + 1}", before=split.output, **behind)
        parts >> last
        split = last
