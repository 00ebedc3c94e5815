"""What all engines have in common, and executors of `concurrent.futures`."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Callable, Protocol, Union

from .._errors import DedupJobError, TryAgainError
from .._options import to_arguments
from .._process import call_json
from .._summary import Summary

#: Seconds between two looks at futures that nobody can wait for.
_LOOK = 0.2


def do_part(job: str, part: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Do one part of a round of a job: what a worker runs.

    Parameters
    ----------
    job
        Directory or URL of the job.
    part
        Number of the part.
    options
        Options of the process, such as `threads`: see `CommonOptions`. `round` is the number of the round, by default the
        current one.

    Returns
    -------
    dict
        What `dedup-job map --json` prints.

    Raises
    ------
    DedupJobError
        With the number of the part in `parts`, and in the message.
    """
    try:
        return call_json(["map", *to_arguments(options), f"--part={part}", "--", job], False)
    except DedupJobError as error:
        raise failed_part(part, error) from None


def failed_part(part: int, error: DedupJobError) -> DedupJobError:
    """The error of a part, with its number."""
    return type(error)(f"part {part}: {error.message}", error.exit_code, (part,))


def lost_part(part: int, error: BaseException) -> DedupJobError:
    """The error of a part that the engine did not end, such as that of a worker that was killed."""
    return TryAgainError(f"part {part}: the executor lost it: {type(error).__name__}: {error}", parts=(part,))


class Engine:
    """What does the parts of a round."""

    def do_parts(
        self, job: str, parts: Sequence[int], options: Mapping[str, Any], report: Callable[[int], object]
    ) -> None:
        """Do parts of the job's current round, each with these options; report how many are done, now and then.

        Raises
        ------
        DedupJobError
            Of a part that failed for good. Parts that have not begun are cancelled.
        """
        raise NotImplementedError

    def write_batch(self, batch: Any, directory: str) -> tuple[str, str] | None:
        """Write a table of this engine below a directory or URL; return the directory made, and a pattern of its files.

        None if it is no table of this engine.
        """
        return None

    def finish(self, summary: Summary) -> Summary:
        """What the caller gets for the summary of the run."""
        return summary


class Submits(Protocol):
    """What has the method `submit` of `concurrent.futures.Executor`."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any: ...


#: What does the parts of a job.
Executor = Union[Submits, Engine]


def engine_for(executor: Executor) -> Engine:
    """The engine for an executor."""
    if isinstance(executor, Engine):
        return executor
    if hasattr(executor, "submit"):
        return _Futures(executor)
    raise TypeError(f"{type(executor).__name__} is no executor: it has no method submit")


class _Futures(Engine):
    """An executor of `concurrent.futures`, or one like it."""

    def __init__(self, executor: Submits) -> None:
        self._executor = executor

    def do_parts(
        self, job: str, parts: Sequence[int], options: Mapping[str, Any], report: Callable[[int], object]
    ) -> None:
        futures: dict[Any, int] = {}
        try:
            for part in parts:
                futures[self._submit(part, job, options)] = part
            for count, future in enumerate(_as_completed(futures), start=1):
                _check(future, futures[future])
                report(count)
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def _submit(self, part: int, job: str, options: Mapping[str, Any]) -> Any:
        try:
            return self._executor.submit(do_part, job, part, dict(options))
        except (concurrent.futures.BrokenExecutor, RuntimeError) as error:
            # An earlier part may have broken the pool, or somebody shut it down.
            raise lost_part(part, error) from error


def _as_completed(futures: Iterable[Any]) -> Iterator[Any]:
    """The futures, as they complete. Those of submitit are no futures of `concurrent.futures`."""
    waiting = list(futures)
    if all(isinstance(future, concurrent.futures.Future) for future in waiting):
        yield from concurrent.futures.as_completed(waiting)
        return
    while waiting:
        done = [future for future in waiting if future.done()]
        waiting = [future for future in waiting if future not in done]
        yield from done
        if waiting and not done:
            time.sleep(_LOOK)


def _check(future: Any, part: int) -> None:
    """Raise the error of a part."""
    try:
        future.result()
    except DedupJobError:
        raise
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        # CancelledError is no Exception everywhere.
        raise lost_part(part, error) from error
