"""The nightly job as a DAG for Airflow 3.2 and later.

The file dedup_job_operator.py, beside this one, calls the program for the day of each data interval. The program's
exit code decides whether Airflow tries again. Paths and options are in the program's settings file, and credentials in
the environment of the workers. Three environment variables of the workers and the DAG processor say what differs
between installations:

    DEDUP_JOB_PROGRAM    the program, by its name on PATH or by its path: dedup-job
    DEDUP_JOB_CONFIG     its settings: /etc/dedup-job.toml
    DEDUP_JOB_FIRST_DAY  if set, the DAG runs for every day since this one that has no run yet; if not, only for the
                         last day
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, CronDataIntervalTimetable, Param
from dedup_job_operator import CONFIG, FIRST_DAY, PROGRAM, RETRIES, DedupJobOperator

with DAG(
    dag_id="dedup_job",
    description="Near-duplicates between a day of documents and the archive",
    doc_md=__doc__,
    # A data interval begins on the day of the documents, and ends when the run may start. (In Airflow 3 a plain cron
    # expression is another timetable, without an interval.)
    schedule=CronDataIntervalTimetable("30 1 * * *", timezone="UTC"),
    start_date=datetime.fromisoformat(FIRST_DAY or "2026-01-01").replace(tzinfo=timezone.utc),
    catchup=FIRST_DAY is not None,
    # Several nights at the same time would be correct, but they would compete for one machine and one storage.
    max_active_runs=1,
    params={"day": Param(None, type=["null", "string"], format="date", description="Instead of the interval's day")},
    tags=["dedup-job"],
) as dag:
    DedupJobOperator(
        task_id="run",
        program=PROGRAM,
        config=CONFIG,
        **RETRIES,
        execution_timeout=timedelta(hours=16),
    )
