"""The nightly job as a DAG for Airflow 3.2 and later.

This file calls the program for the day of each data interval. The program's exit code decides whether Airflow tries
again. Paths and options are in the program's settings file, and credentials in the environment of the workers. Three
environment variables of the workers and the DAG processor say what differs between installations:

    DEDUP_JOB_PROGRAM    the program, by its name on PATH or by its path: dedup-job
    DEDUP_JOB_CONFIG     its settings: /etc/dedup-job.toml
    DEDUP_JOB_FIRST_DAY  if set, the DAG runs for every day since this one that has no run yet; if not, only for the
                         last day
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, BaseOperator, CronDataIntervalTimetable, Param
from airflow.sdk.exceptions import AirflowException, AirflowFailException

PROGRAM = os.environ.get("DEDUP_JOB_PROGRAM", "dedup-job")
CONFIG = os.environ.get("DEDUP_JOB_CONFIG", "/etc/dedup-job.toml")
FIRST_DAY = os.environ.get("DEDUP_JOB_FIRST_DAY")

# After these codes a retry would end in the same way. Every other code is tried again: 69, 74 and 75 ask for it, 143 is
# SIGTERM, and after the rest (70, an internal error; a kill because memory ran out) a retry does no harm.
PERMANENT = {
    64: "wrong usage",
    65: "bad data",
    77: "no permission",
    78: "wrong configuration, or fingerprints of another specification",
}


class DedupJobOperator(BaseOperator):
    """Runs `dedup-job run` for one day, and returns the summary that it prints."""

    # A class instead of a function, because Airflow calls on_kill() when somebody stops the task.

    process: subprocess.Popen[str] | None = None

    def __init__(self, *, program: str, config: str, **kwargs):
        super().__init__(**kwargs)
        self.program = program
        self.config = config

    def execute(self, context) -> dict:
        command = [self.program, "run", f"--config={self.config}", f"--day={day_of(context)}", "--json"]
        self.log.info("Running %s", shlex.join(command))
        # Standard output is a file, so that the program never waits for a reader; standard error is the log.
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            code, last_line = self._run(command, output)
            if code != 0:
                raise failure(code, last_line)
            output.seek(0)
            summary = summary_in(output.read())
        self.log.info("Done: %s", ", ".join(f"{name} {count:,}" for name, count in counts(summary)))
        return summary

    def _run(self, command: list[str], output) -> tuple[int, str]:
        """Runs the program; returns its exit code and the last line of its log, which has the reason of a failure."""
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="backslashreplace",
            )
        except OSError as error:
            raise AirflowFailException(f"{command[0]} cannot be started: {error}") from error
        last_line = ""
        try:
            for line in self.process.stderr:
                if line := line.rstrip():
                    last_line = line
                    self.log.info("%s", line)
            return self.process.wait(), last_line
        except BaseException:  # the exception of execution_timeout is no subclass of Exception
            self.on_kill()
            try:
                # The program stops within two seconds of SIGTERM.
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
            raise
        finally:
            self.process.stderr.close()

    def on_kill(self) -> None:
        """Asks the program to stop: it removes its temporary files, and ends with 143."""
        if self.process is not None:
            self.process.terminate()


def day_of(context) -> str:
    """The parameter `day`, or else the day on which the data interval begins."""
    if day := context["params"]["day"]:
        return day
    if (start := context.get("data_interval_start")) is None:
        raise AirflowFailException("this run has no data interval: trigger it with a logical date, or with a day")
    return start.astimezone(timezone.utc).date().isoformat()


def failure(code: int, last_line: str) -> AirflowException:
    """The exception for an exit code that is not 0. After an AirflowFailException Airflow does not try again."""
    why = f"exit code {code}" if code >= 0 else f"killed by signal {-code}"
    if code in PERMANENT:
        return AirflowFailException(f"{why}, {PERMANENT[code]}: {last_line}")
    return AirflowException(f"{why}: {last_line}")


def summary_in(output: str) -> dict:
    """The summary, which is the last line. Without it another program was run, and a retry would not help."""
    try:
        summary = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise AirflowFailException(f"no summary on standard output: {output[-200:]!r}") from error
    if not isinstance(summary, dict):
        raise AirflowFailException(f"the summary is no object: {summary!r}")
    return summary


def counts(summary: dict):
    """The counts in a summary, one level deep: `hits`, `new.documents` and so on."""
    for name, value in summary.items():
        inner = value.items() if isinstance(value, dict) else ()
        for full, number in ((name, value), *((f"{name}.{key}", of_key) for key, of_key in inner)):
            if type(number) is int:
                yield full, number


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
        # Waits of at least 2, 4, 8, 16, 32 and 60 minutes, which outlast an outage of two hours.
        retries=6,
        retry_delay=timedelta(minutes=2),
        retry_exponential_backoff=2.0,
        max_retry_delay=timedelta(hours=1),
        execution_timeout=timedelta(hours=16),
    )
