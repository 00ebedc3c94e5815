"""Jobs in parts, which any machine does: split, map, reduce."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, Union

from . import _native
from ._data import Arrow, are_paths, collect_paths, run_reads, scratch_directory, write_batch
from ._errors import TryAgainError, UsageError
from ._options import CommonOptions, Path, RunOptions, paths_to_list, storage_arguments, to_arguments
from ._process import call_json
from ._progress import Progress, ProgressOption, progress_callback
from ._summary import Summary
from ._typing import Unpack
from .executors import Engine, Executor, engine_for

#: Options of a process that those of the same job on other machines need not share: a configuration file may be missing there.
_OWN = frozenset(CommonOptions.__annotations__) - {"config"}
#: The files that `run` names by these options, if they are True: below the directory beside the job.
_OUTPUTS = {"output": "pairs.parquet", "decisions": "decisions.parquet", "kept": "kept.parquet"}
#: Options with paths. Other processes, in other directories, read them.
_PATHS = frozenset({"base", "base_text", "config", "decisions", "fingerprints", "idf", "kept", "new", "output", "stop_words"})
#: What the program says of a round whose parts are not all done.
_ROUND = re.compile(r"\bround (\d+)\b")
_PARTS = re.compile(r"--part ([\d.,]+)")


class Job:
    """A job in parts. `split` makes one, and `Job.open` opens one that is there. It can be pickled.

    Each round has parts, which can be done by any machine, in any order, and any number of times. When all are done, `split`
    plans the next round, until the job is ready to be reduced.

    Attributes
    ----------
    path
        Directory or URL of the job.
    round
        Number of the current round.
    ready
        Whether all rounds are done.
    parts
        The numbers of the current round's parts; of an opened job, those that are not done yet.

    Examples
    --------
    >>> job = dedup_job.split("s3://crawl/day/", "s3://crawl/archive", "s3://crawl/pairs.parquet", job="s3://crawl/jobs/day")
    >>> while not job.ready:
    ...     for part in job.parts:
    ...         job.map(part)  # on any machine
    ...     job.split()
    >>> job.reduce().hits
    """

    path: str
    round: int
    ready: bool
    parts: Sequence[int]

    def __init__(
        self, path: Path, round: int, ready: bool, parts: Sequence[int], batch: str | None = None, **options: Any
    ) -> None:
        self.path = _place(path)
        self.round = round
        self.ready = ready
        self.parts = parts
        #: The file or directory that was written for a table, and is removed at the end.
        self._batch = batch
        self._options = {name: value for name, value in options.items() if name in _OWN and value is not None}

    @classmethod
    def open(cls, path: Path, *, progress: ProgressOption = None, **options: Unpack[CommonOptions]) -> Job:
        """Open a job that was split before. If all parts of its round are done, this plans the next round.

        Parameters
        ----------
        path
            Directory or URL of the job.
        **options
            Options of this process, and of the parts.
        """
        place = _place(path)
        given: dict[str, Any] = dict(options)
        return cls(place, *_split([*to_arguments(given), "--", place], progress), **given)

    def map(self, part: Union[int, str, Iterable[int]], **options: Unpack[CommonOptions]) -> Summary:
        """Do one part of the current round, or several, in a process on this machine.

        Several parts in one call share what the process has in memory.

        Parameters
        ----------
        part
            A number, several, or a text such as "4..9,12", in which both ends of a range belong to it.
        **options
            Options of the process, such as `threads`, `memory_limit` and `scratch`; by default those given to `split`.
        """
        numbers = str(part) if isinstance(part, (int, str)) else ",".join(map(str, part))
        arguments = [*self._arguments({**options, **self._round_option()}), f"--part={numbers}"]
        return Summary(call_json(["map", *arguments, "--", self.path], False))

    def split(self, *, progress: ProgressOption = None, **options: Unpack[CommonOptions]) -> Job:
        """Settle the current round, and plan the next one; or find that the job is ready. Returns this job.

        Raises
        ------
        TryAgainError
            If parts of the round are missing or damaged: `parts` has their numbers.
        """
        state = _call(["split", *self._arguments(options), "--", self.path], progress)
        self.round, self.ready, self.parts = _state(state)
        return self

    def reduce(
        self,
        *,
        keep_job: bool = False,
        metrics: str | None = None,
        progress: ProgressOption = None,
        **options: Unpack[CommonOptions],
    ) -> Summary:
        """Do what is left of the run: pairs, decisions, outputs, the commit. Then the job's objects are removed.

        Parameters
        ----------
        keep_job
            Leave the job's objects where they are; and the batch, if `split` was given a table.
        metrics
            See `RunOptions`.

        Returns
        -------
        Summary
            What `run` returns.
        """
        arguments = [*to_arguments({"keep_job": keep_job, "metrics": metrics}), *self._arguments(options)]
        summary = Summary(_call(["reduce", *arguments, "--", self.path], progress))
        if self._batch is not None and not keep_job:
            _native.remove_all(self._batch, storage_arguments({**self._options, **options}))
        return summary

    def run(
        self,
        executor: Executor,
        *,
        part_options: CommonOptions | None = None,
        keep_job: bool = False,
        metrics: str | None = None,
        progress: ProgressOption = None,
    ) -> Summary:
        """Do all that is left of the job: the parts by `executor`, and the rest in a process on this machine.

        The parameters are those of `dedup_job.run`, those of `reduce` aside.
        """
        engine = engine_for(executor)
        while not self.ready:
            self._do_round(engine, {**self._options, **(part_options or {})}, progress)
            self.split(progress=progress)
        return engine.finish(self.reduce(keep_job=keep_job, metrics=metrics, progress=progress))

    def _do_round(self, engine: Engine, options: dict[str, Any], progress: ProgressOption) -> None:
        report, close = progress_callback(progress)
        total = len(self.parts)

        def tell(done: int) -> None:
            if report is not None:
                report(Progress(f"parts of round {self.round}", done, total, 0))

        try:
            tell(0)
            if total:
                engine.do_parts(self.path, self.parts, {**options, **self._round_option()}, tell)
        finally:
            close()

    def _round_option(self) -> dict[str, int]:
        """What keeps a task that an engine begins late from doing a part of another round."""
        return {"round": self.round} if self.round else {}

    def _arguments(self, options: Any) -> list[str]:
        return to_arguments({**self._options, **options})

    def __repr__(self) -> str:
        state = "ready" if self.ready else f"round {self.round}, {len(self.parts)} parts"
        return f"Job({self.path!r}: {state})"


def split(
    new: Union[Path, Iterable[Path], Arrow],
    base: Path | None = None,
    output: Union[Path, bool, None] = None,
    *,
    job: Path,
    parts: int | None = None,
    restart: bool = False,
    progress: ProgressOption = None,
    **options: Unpack[RunOptions],
) -> Job:
    """Begin a run whose parts other machines do, or take up one that was begun with the same options.

    Parameters
    ----------
    new, base, output, progress, **options
        See `run`; `resume` is not for jobs, and `metrics` is for `Job.reduce`. A table in memory is written to a file in the
        directory `JOB-data` beside the job, where other machines read it; `Job.reduce` removes it. `output`, `decisions` and
        `kept` may be True, for files in that directory, which stay there.
    job
        Directory, or prefix in an object store, for what the machines tell each other. All of them must reach it, and all
        paths of `new` and `base`.
    parts
        Number of parts of each map; by default, each part takes about a minute.
    restart
        Remove what is left of another job there, and begin anew.

    Returns
    -------
    Job
    """
    return split_for(None, new, base, output, job, parts, restart, progress, dict(options))


def split_for(
    engine: Engine | None,
    new: Any,
    base: Union[Path, Iterable[Path], None],
    output: Union[Path, bool, None],
    job: Path,
    parts: int | None,
    restart: bool,
    progress: ProgressOption,
    options: dict[str, Any],
) -> Job:
    """As `split`; a batch may be a table of the engine."""
    if base is not None and not isinstance(base, (str, os.PathLike)):
        raise UsageError("the archive is a path")
    path = _place(job)
    beside = f"{path}-data"
    batch, paths = _shared_batch(engine, new, beside, options)
    given: dict[str, Any] = {**options, "output": output}
    if batch is not None and all(given.get(name) is None for name in _OUTPUTS):
        # There is no better place for the answer to a table than where the table is.
        given["output"] = True
    for name, file in _OUTPUTS.items():
        if given.get(name) is True:
            # Kept documents have a file for each of the batch's files.
            given[name] = f"{beside}/{'kept' if name == 'kept' and _is_directory(batch) else file}"
    given = {"new": paths, "base": base, **given}
    for name in _PATHS.intersection(given):
        given[name] = _absolute_paths(given[name])
    arguments = to_arguments({**given, "parts": parts, "restart": restart})
    return Job(path, *_split([*arguments, "--", path], progress), batch, **options)


def _split(arguments: list[str], progress: ProgressOption) -> tuple[int, bool, Sequence[int]]:
    """Run `split`: the round, whether the job is ready, and the parts to do, which may be a rest of those of the round."""
    try:
        return _state(_call(["split", *arguments], progress))
    except TryAgainError as error:
        if not error.parts:
            raise
        found = _ROUND.search(error.message)
        return int(found[1]) if found else 0, False, error.parts


def _state(printed: dict[str, Any]) -> tuple[int, bool, Sequence[int]]:
    """What `split` printed."""
    return printed["round"], printed["ready"], range(printed["parts"])


def _shared_batch(engine: Engine | None, new: Any, beside: str, options: dict[str, Any]) -> tuple[str | None, list[str]]:
    """The paths of a batch that other machines reach; and the file or directory to remove at the end, if one was made."""
    written = None if engine is None else engine.write_batch(new, beside)
    if written is not None:
        return written[0], [written[1]]
    new = collect_paths(new)
    if are_paths(new):
        return None, paths_to_list(new)
    with scratch_directory(options.get("scratch")) as directory:
        reads = run_reads(options)
        file = write_batch(new, directory, options=options, reads=reads, row_ids=not options.get("append"))
        # The name says the content, so that a job that is begun again has the same options.
        path = f"{beside}/batch-{_sha256(file)[:16]}.parquet"
        _native.put_file(file, path, storage_arguments(options))
    return path, [path]


def _is_directory(batch: str | None) -> bool:
    """Whether a batch that was written is a directory of files."""
    return batch is not None and not batch.endswith(".parquet")


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _absolute(path: Path) -> str:
    """The path; a local one as processes in other directories find it."""
    text = os.fspath(path)
    if "://" in text:
        return text
    # A slash at the end says that it is a directory.
    return os.path.abspath(text) + ("/" if text.endswith("/") else "")


def _place(job: Path) -> str:
    """The place of a job, absolute and without a slash at its end."""
    return _absolute(job).rstrip("/")


def _absolute_paths(paths: Any) -> Any:
    """One path or several, absolute."""
    if paths is None:
        return None
    if paths == "-":
        raise UsageError("standard output has the summary: name a file")
    return _absolute(paths) if isinstance(paths, (str, os.PathLike)) else [_absolute(path) for path in paths]


def _call(arguments: list[str], progress: ProgressOption) -> dict[str, Any]:
    """Run the program; an error has the numbers of the parts that its message names."""
    try:
        return call_json(arguments, progress)
    except TryAgainError as error:
        found = _PARTS.search(error.message)
        numbers: list[int] = []
        for item in found[1].strip(".,").split(",") if found else ():
            first, _, last = item.partition("..")
            numbers += range(int(first), int(last or first) + 1)
        raise TryAgainError(error.message, parts=tuple(numbers)) from None
