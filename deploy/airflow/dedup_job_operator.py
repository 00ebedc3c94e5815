"""What runs the program in a task of Airflow: for the DAGs beside this file."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from datetime import timedelta, timezone

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

PROGRAM = os.environ.get("DEDUP_JOB_PROGRAM", "dedup-job")
CONFIG = os.environ.get("DEDUP_JOB_CONFIG", "/etc/dedup-job.toml")
FIRST_DAY = os.environ.get("DEDUP_JOB_FIRST_DAY")
# Waits of at least 2, 4, 8, 16, 32 and 60 minutes, which outlast an outage of two hours.
RETRIES = {
    "retries": 6,
    "retry_delay": timedelta(minutes=2),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(hours=1),
}

# After these codes a retry would end in the same way. Every other code is tried again: 69, 74 and 75 ask for it, 143 is
# SIGTERM, and after the rest (70, an internal error; a kill because memory ran out) a retry does no harm.
PERMANENT = {
    64: "wrong usage",
    65: "bad data",
    77: "no permission",
    78: "wrong configuration, or fingerprints of another specification",
}


class DedupJobOperator(BaseOperator):
    """Runs `dedup-job run` for one day, and returns the summary that it prints. Subclasses run other commands."""

    # A class instead of a function, because Airflow calls on_kill() when somebody stops the task.

    process: subprocess.Popen[str] | None = None

    def __init__(self, *, program: str, config: str, **kwargs):
        super().__init__(**kwargs)
        self.program = program
        self.config = config

    def execute(self, context) -> dict:
        summary = self.call("run", f"--config={self.config}", f"--day={day_of(context)}")
        self.log.info("Done: %s", ", ".join(f"{name} {count:,}" for name, count in counts(summary)))
        return summary

    def call(self, *arguments: str) -> dict:
        """Runs the program, and returns the JSON that it prints."""
        command = [self.program, *arguments, "--json"]
        self.log.info("Running %s", shlex.join(command))
        # Standard output is a file, so that the program never waits for a reader; standard error is the log.
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            code, last_line = self._run(command, output)
            if code != 0:
                raise failure(code, last_line)
            output.seek(0)
            return summary_in(output.read())

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
