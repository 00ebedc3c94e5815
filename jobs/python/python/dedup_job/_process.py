"""Runs the program as a process: its summary, its progress, its errors."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from typing import Any, Callable

from ._errors import error_for
from ._progress import Progress, ProgressOption, progress_callback

#: The environment variable by which a job knows its parent, with which it ends.
PARENT = "DEDUP_JOB_PARENT"
#: How often a job reports its progress.
_EVERY = "250ms"
#: Seconds that a job gets to stop: a commit in progress takes up to one.
_STOP = 1.5

_LOG = logging.getLogger("dedup_job")
_LEVELS = {"ERROR": logging.ERROR, "WARN": logging.WARNING, "INFO": logging.INFO}


def command() -> list[str]:
    """The command that starts the program: this interpreter with this package."""
    return [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")]


def call(arguments: list[str], progress: ProgressOption = None) -> str:
    """Run the program with `arguments` and return what it prints on standard output.

    Its log lines go to the logger "dedup_job".

    Raises
    ------
    DedupJobError
        Of the class of the exit code, with the program's message.
    """
    report, close = progress_callback(progress)
    every = [f"--progress-every={_EVERY}"] if report else []
    process = subprocess.Popen(
        [*command(), "--json", "--log-format=json", *every, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, PARENT: str(os.getpid())},
    )
    try:
        output, messages = _read(process, report)
        code = process.wait()
    except BaseException:
        _stop(process)
        raise
    finally:
        close()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
    if code == 0:
        return output.decode()
    if code < 0:
        name = signal.Signals(-code).name
        hint = "; the system may have run out of memory: try a smaller memory_limit" if name == "SIGKILL" else ""
        raise error_for(128 - code, f"the program was killed by {name}{hint}")
    message = "\n".join(messages).strip()
    for prefix in ("dedup-job: ", "error: "):
        if message.startswith(prefix):
            message = message[len(prefix) :]
    raise error_for(code, message or f"the program ended with {code}")


def call_json(arguments: list[str], progress: ProgressOption = None) -> dict[str, Any]:
    """Run the program and return the JSON object that it prints."""
    parsed = json.loads(call(arguments, progress))
    if not isinstance(parsed, dict):
        raise error_for(70, f"the program printed {parsed!r}")
    return parsed


def _read(process: subprocess.Popen[bytes], report: Callable[[Progress], object] | None) -> tuple[bytes, list[str]]:
    """Read all output; return standard output, and the lines of standard error that are no log lines."""
    assert process.stdout is not None and process.stderr is not None
    stdout = process.stdout
    output: list[bytes] = []
    reader = threading.Thread(target=lambda: output.append(stdout.read()), daemon=True)
    reader.start()
    messages: list[str] = []
    # This thread reads standard error, so that callbacks run on it, and Ctrl-C reaches it.
    for line in process.stderr:
        text = line.decode(errors="replace").rstrip("\n")
        event = _parse_event(text)
        if event is None:
            messages.append(text)
            continue
        fields = event["fields"]
        if fields.get("message") != "progress":
            _log(event)
        elif report is not None:
            report(
                Progress(
                    stage=fields["stage"],
                    done=fields["done"],
                    total=fields["all"],
                    pairs=fields["hits"],
                    executors=fields["executors"],
                )
            )
    reader.join()
    return output[0], messages


def _parse_event(line: str) -> dict[str, Any] | None:
    """A log line as a dict; None if it is no log line."""
    if not line.startswith("{"):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("fields"), dict) else None


def _log(event: dict[str, Any]) -> None:
    fields = dict(event["fields"])
    message = str(fields.pop("message", ""))
    details = ", ".join(f"{name}={value}" for name, value in fields.items())
    level = _LEVELS.get(event.get("level", ""), logging.DEBUG)
    _LOG.log(level, "%s", f"{message} ({details})" if details else message)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the program as Ctrl-C does, so that it removes its temporary files; kill it if it takes too long."""
    if process.poll() is not None:
        return
    try:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=_STOP)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()
