"""Ray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable

from .._errors import DedupJobError, FileError, InternalError, StoppedError, TryAgainError, UnreachableError
from ._engine import Engine, do_part, lost_part

#: Errors after which a part is done again; after others, it would end in the same way.
_AGAIN = (FileError, InternalError, StoppedError, TryAgainError, UnreachableError)


class Ray(Engine):
    """Does each part as a task of Ray.

    Parameters
    ----------
    max_retries
        How often Ray does a part again whose worker died, or that failed with an error that may pass.
    **options
        Other options of `ray.remote`, such as `num_cpus`, `memory` and `resources`.

    Examples
    --------
    >>> ray.init("auto")
    >>> dedup_job.run(
    ...     "s3://crawl/day/", "s3://crawl/archive", "s3://crawl/pairs.parquet", job="s3://crawl/jobs/day",
    ...     executor=dedup_job.executors.Ray(num_cpus=4), part_options={"threads": 4, "memory_limit": "8GiB"},
    ... )
    """

    def __init__(self, *, max_retries: int = 3, **options: Any) -> None:
        self._options = {"retry_exceptions": list(_AGAIN), **options, "max_retries": max_retries}

    def do_parts(
        self, job: str, parts: Sequence[int], options: Mapping[str, Any], report: Callable[[int], object]
    ) -> None:
        import ray

        task = ray.remote(**self._options)(do_part)
        tasks = {task.remote(job, part, dict(options)): part for part in parts}
        waiting = list(tasks)
        try:
            while waiting:
                done, waiting = ray.wait(waiting, num_returns=1)
                for one in done:
                    _check(one, tasks[one])
                report(len(tasks) - len(waiting))
        except BaseException:
            for one in waiting:
                ray.cancel(one)
            raise


def _check(task: Any, part: int) -> None:
    """Raise the error of a part."""
    import ray

    try:
        ray.get(task)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, DedupJobError):
            raise error.cause from None
        raise lost_part(part, error) from error
    except ray.exceptions.RayError as error:
        raise lost_part(part, error) from error
