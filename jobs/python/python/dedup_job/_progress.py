"""Progress: by callback, or as a line in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, NamedTuple, Optional, Union

#: Seconds that a call in this process takes before a line shows its progress.
_LINE_AFTER = 0.25


class Progress(NamedTuple):
    """How far a job, or a call in this process, is."""

    #: What it does now, such as "fingerprinting" or "probing".
    stage: str
    #: Documents, fingerprints or bytes done in this stage.
    done: int
    #: All of them; None if that is not known.
    total: int | None
    #: Pairs found so far.
    pairs: int

    def __str__(self) -> str:
        line = f"{self.stage}: {self.done:,}"
        if self.total:
            line += f" of {self.total:,} ({100 * min(self.done, self.total) // self.total} %)"
        return f"{line}, {self.pairs:,} pairs" if self.pairs else line


#: A function that is called with each `Progress`; True to show a line, False to show none. By default, a line is shown in
#: notebooks only.
ProgressOption = Union[Callable[[Progress], object], bool, None]
#: What the extension module calls: with the stage, the number done, the number of all, and the number of pairs.
NativeReport = Optional[Callable[[str, int, Optional[int], int], object]]


def progress_callback(option: ProgressOption) -> tuple[Callable[[Progress], object] | None, Callable[[], None]]:
    """The function to call with each progress, and the one to call at the end."""
    if callable(option):
        return option, lambda: None
    if option is False:
        return None, lambda: None
    if _in_notebook():
        return _notebook_line()
    if option:
        return _terminal_line()
    return None, lambda: None


@contextmanager
def native_progress(option: ProgressOption) -> Iterator[NativeReport]:
    """What a call of the extension module gets, to report its progress.

    A function gets every report, the last one at the end of the call. Lines are for calls that take a while: others show none,
    so that thousands of short calls do not fill a notebook.
    """
    if callable(option) or option is False:
        report, close = progress_callback(option)
    else:
        report, close = _after_a_while(lambda: progress_callback(option))
    if report is None:
        yield None
        return
    called = report
    try:
        yield lambda stage, done, total, pairs: called(Progress(stage, done, total, pairs))
    finally:
        close()


def _after_a_while(
    start: Callable[[], tuple[Callable[[Progress], object] | None, Callable[[], None]]],
) -> tuple[Callable[[Progress], object], Callable[[], None]]:
    """The functions that `start` returns, which is called with the first report after a while."""
    begin = time.monotonic()
    started: list[tuple[Callable[[Progress], object] | None, Callable[[], None]]] = []

    def report(progress: Progress) -> None:
        if not started and time.monotonic() - begin >= _LINE_AFTER:
            started.append(start())
        for shown, _ in started:
            if shown is not None:
                shown(progress)

    def close() -> None:
        for _, end in started:
            end()

    return report, close


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    # Colab's shell, for one, is a subclass.
    return any(base.__name__ == "ZMQInteractiveShell" for base in type(shell).__mro__)


def _notebook_line() -> tuple[Callable[[Progress], object], Callable[[], None]]:
    display = sys.modules["IPython"].display.display

    def line(text: str) -> dict[str, Any]:
        return {"text/plain": text}

    handle = display(line("dedup-job: starting"), raw=True, display_id=True)
    return (
        lambda progress: handle.update(line(f"dedup-job: {progress}"), raw=True),
        lambda: handle.update(line(""), raw=True),
    )


def _terminal_line() -> tuple[Callable[[Progress], object], Callable[[], None]]:
    def show(text: str) -> None:
        # Erases what stands in the line.
        sys.stderr.write(f"\r{text}\x1b[K")
        sys.stderr.flush()

    return lambda progress: show(f"dedup-job: {progress}"), lambda: show("")
