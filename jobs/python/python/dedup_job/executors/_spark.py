"""Spark."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable

from .. import _errors
from .._errors import DedupJobError, TryAgainError, UsageError
from .._summary import Summary
from ._engine import Engine, do_part

if TYPE_CHECKING:
    import pyspark.sql

#: Seconds between two reports of progress.
_EVERY = 0.25
#: The end of the traceback of an error, in Spark's message, which goes on with lines of its own.
_END = r"\s*(?=^\s+at [\w.$]+\(|^Driver stacktrace|^\s*SQLSTATE|\Z)"
_PART = re.compile(rf"^dedup_job\.(\w+): (part (\d+): .*?){_END}", re.M | re.S)
_OTHER = re.compile(r"^[\w.]+(?:Error|Exception): .+$", re.M)


class Spark(Engine):
    """Does each part as a task of Spark, in one partition of an RDD.

    The batch may be a DataFrame: its executors write it as Parquet files beside the job. `run` then returns a `SparkSummary`,
    which reads the outputs as DataFrames.

    Parameters
    ----------
    session
        A session with a `sparkContext`, which that of Spark Connect has not.
    url
        A function that gives the URL by which Spark reaches a URL of a job. By default, s3:// becomes s3a://, and a local path
        file://.

    Examples
    --------
    >>> spark = dedup_job.executors.Spark(session)
    >>> summary = dedup_job.run(frame, base="s3://crawl/archive", job="s3://crawl/jobs/day", executor=spark, decisions=True)
    >>> frame.join(summary.frame("decisions"), "id").where("kept")
    """

    def __init__(self, session: pyspark.sql.SparkSession, url: Callable[[str], str] | None = None) -> None:
        self._session = session
        self._url = url or _hadoop_url

    def do_parts(
        self, job: str, parts: Sequence[int], options: Mapping[str, Any], report: Callable[[int], object]
    ) -> None:
        from pyspark import InheritableThread

        context = self._session.sparkContext
        group = f"dedup-job-{uuid.uuid4().hex}"
        given = dict(options)

        def do(numbers: Iterable[int]) -> Iterator[int]:
            for number in numbers:
                do_part(job, number, given)
                yield number

        failed: list[BaseException] = []

        def work() -> None:
            try:
                context.setJobGroup(group, f"dedup-job: {len(parts)} parts of {job}", interruptOnCancel=True)
                # One partition for each part, so that each is a task.
                context.parallelize(list(parts), len(parts)).mapPartitions(do).collect()
            except BaseException as error:
                failed.append(error)

        # On a thread of its own, so that this one reports the progress, and takes Ctrl-C.
        thread = InheritableThread(target=work, daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(_EVERY)
                report(_completed(context, group))
        except BaseException:
            context.cancelJobGroup(group)
            raise
        if failed:
            raise _error(failed[0]) from failed[0]
        report(len(parts))

    def write_batch(self, batch: Any, directory: str) -> tuple[str, str] | None:
        from pyspark.sql import DataFrame

        if not isinstance(batch, DataFrame):
            return None
        made = f"{directory}/batch-{uuid.uuid4().hex}"
        batch.write.parquet(self._url(made))
        return made, f"{made}/*.parquet"

    def finish(self, summary: Summary) -> Summary:
        return SparkSummary(summary.raw, self)

    def read(self, path: str) -> pyspark.sql.DataFrame:
        """The rows of a file, or of the files in a directory, of Parquet."""
        return self._session.read.parquet(self._url(path))


class SparkSummary(Summary):
    """The summary of a run on Spark, which reads its outputs."""

    def __init__(self, raw: dict[str, Any], spark: Spark) -> None:
        super().__init__(raw)
        self._spark = spark

    def frame(self, output: str) -> pyspark.sql.DataFrame:
        """An output as a DataFrame: "pairs", "decisions" or "kept". It is read from its file, so do not remove that yet."""
        decisions = self.raw.get("decisions") or {}
        paths = {"pairs": self.raw.get("output"), "decisions": decisions.get("output"), "kept": decisions.get("kept_output")}
        if output not in paths:
            raise UsageError(f"no output is called {output!r}: take pairs, decisions or kept")
        path = paths[output]
        if path is None:
            raise UsageError(f"the run wrote no {output}: give it {'output' if output == 'pairs' else output}=True")
        return self._spark.read(path)


def _hadoop_url(path: str) -> str:
    """The URL by which Spark reaches what the program calls `path`."""
    if path.startswith("s3://"):
        return f"s3a://{path[len('s3://'):]}"
    return path if "://" in path else f"file://{path}"


def _completed(context: Any, group: str) -> int:
    """How many tasks of a group of jobs have completed."""
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(number) for job in jobs if job is not None for number in job.stageIds]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)


def _error(error: BaseException) -> DedupJobError:
    """The error of the part for which Spark gave up, which it hands over as text."""
    text = str(error)
    if found := _PART.search(text):
        kind = getattr(_errors, found[1], TryAgainError)
        made: DedupJobError = kind(found[2], parts=(int(found[3]),))
        return made
    # Of several, the last says most; Spark's own are in lines of Java.
    others = _OTHER.findall(text)
    return TryAgainError(f"Spark gave up: {others[-1] if others else text.strip().partition(chr(10))[0]}")
