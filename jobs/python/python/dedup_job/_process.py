"""Runs the program as a process: its summary, its progress, its errors."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from typing import IO, Any, Callable

from ._errors import DedupJobError, InternalError, UsageError, error_for
from ._options import argument_name
from ._progress import Progress, ProgressOption, progress_callback

#: The environment variable by which a job knows its parent, with which it ends.
PARENT = "DEDUP_JOB_PARENT"
#: The environment variable with a job's arguments that only its user may see, as JSON.
HIDDEN = "DEDUP_JOB_HIDDEN_ARGUMENTS"
#: The beginnings of these arguments: the URL of a gateway may have a password.
_SECRET = ("--metrics=",)
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
    shown, hidden = _hide(arguments)
    try:
        process = subprocess.Popen(
            [*command(), "--json", "--log-format=json", *every, *shown],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, PARENT: str(os.getpid()), HIDDEN: json.dumps(hidden)},
        )
    except OSError as error:
        close()
        if error.errno == errno.E2BIG:
            raise UsageError("too many paths for one command: pass their directory, or a pattern") from None
        raise
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
    if code == 0 and not output and messages:
        # The exit code got lost: this process ignores SIGCHLD.
        code = InternalError.exit_code
    if code == 0:
        return output.decode()
    if code < 0:
        name = signal.Signals(-code).name
        hint = "; the system may have run out of memory: try a smaller memory_limit" if name == "SIGKILL" else ""
        raise error_for(128 - code, f"the program was killed by {name}{hint}")
    message = _in_python_terms("\n".join(messages))
    raise error_for(code, message or f"the program ended with {code}")


def _hide(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The arguments for the command line, which everyone sees in the list of processes, and those for the environment."""
    end = options_end(arguments)
    options = arguments[:end]
    shown = [argument for argument in options if not argument.startswith(_SECRET)]
    hidden = [argument for argument in options if argument.startswith(_SECRET)]
    return [*shown, *arguments[end:]], hidden


def options_end(arguments: list[str]) -> int:
    """Where the options end, and what `--` separates from them begins."""
    return arguments.index("--") if "--" in arguments else len(arguments)


def _in_python_terms(message: str) -> str:
    """The program's message with keyword arguments in place of options, and without hints for the command line."""
    message = message.strip()
    for prefix in ("dedup-job: ", "error: "):
        if message.startswith(prefix):
            message = message[len(prefix) :]
    # What the parser of arguments adds.
    message = re.sub(r"\n\n(Usage: |For more information, try )[^\n]*", "", message)
    message = message.replace("; see --help", "")
    message = re.sub(r"\S*dedup-job-\w{8}/(batch|base|base-fingerprints)\.parquet", "the data in memory", message)
    # Between backticks are commands.
    parts = re.split(r"(`[^`]*`)", message)
    return "".join(part if part.startswith("`") else _OPTION.sub(_argument, part) for part in parts)


def native_error(exit_code: int, message: str) -> DedupJobError:
    """The exception for an error of the extension module, whose libraries are the program's, too."""
    return error_for(exit_code, _in_python_terms(message))


#: An option in a message, perhaps with the name of its value, and in quotes.
_OPTION = re.compile(r"(?P<quote>'?)(?<![\w/-])--(?P<name>[a-z][a-z0-9-]*)( <[^<>]*>(\.\.\.)?)?(?P=quote)")


def _argument(match: re.Match[str]) -> str:
    name = argument_name(match["name"])
    if name is None and match["quote"]:
        return f"'{match['name'].replace('-', '_')}'"
    return name or match[0]


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
            report(Progress(fields["stage"], fields["done"], fields["all"], fields["hits"]))
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


def _drain(pipe: IO[bytes] | None) -> None:
    try:
        while pipe is not None and pipe.read(1 << 16):
            pass
    except (OSError, ValueError):
        # It was closed.
        pass


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the program as Ctrl-C does, so that it removes its temporary files; kill it if it takes too long."""
    if process.poll() is not None:
        return
    # It must not wait for someone to read its messages.
    threading.Thread(target=_drain, args=(process.stderr,), daemon=True).start()
    try:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=_STOP)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()
