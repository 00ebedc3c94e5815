"""Archives."""

from __future__ import annotations

import datetime
import json
import operator
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Union

from . import _native
from ._data import Arrow, file_paths, scratch_directory
from ._errors import UsageError
from ._jobs import _SpecJobOptions
from ._options import CommonOptions, Day, Path, StorageOptions, storage_arguments, to_arguments
from ._process import call_json
from ._progress import ProgressOption
from ._spec import Spec
from ._summary import Summary
from ._typing import Lazy, Unpack

if TYPE_CHECKING:
    import pyarrow
else:
    pyarrow = Lazy("pyarrow")


class ArchiveRows:
    """The rows of an archive, as a stream of Arrow record batches; each use reads them from the start. See `Archive.to_arrow`.

    `polars.DataFrame(rows)`, `pyarrow.table(rows)` and DuckDB (`select ... from rows`) read them. Data files are read one after
    the other, each into memory as a whole.
    """

    def __init__(self, archive: Archive, columns: Iterable[str] | None = None, days: Iterable[Day] | None = None) -> None:
        named = None if columns is None else list(columns)
        dates = None if days is None else [str(day) for day in days]
        self._native = _native.ArchiveRows.open(archive.path, named, dates, storage_arguments(archive._options))
        self._source = archive, named, dates

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._native.__arrow_c_schema__()

    def __len__(self) -> int:
        rows = self._native.num_rows
        if rows is None:
            raise TypeError("the archive's log does not say how many rows there are")
        return rows

    def to_pyarrow(self) -> pyarrow.RecordBatchReader:
        """The rows as a pyarrow.RecordBatchReader."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return ArchiveRows, self._source


class Archive:
    """An archive: the fingerprints of all earlier documents, by day, in a Delta Lake table.

    Parameters
    ----------
    path
        Directory or URL of an archive. It need not exist yet: `Archive.create` creates one.
    **options
        Options for all methods: `endpoint`, `threads`, ... (see `CommonOptions`). `spec` and `to_arrow`, which work in this
        process, use those of `StorageOptions` only.

    Examples
    --------
    >>> archive = dedup_job.Archive.create("archive", sketch=128)
    >>> archive.append(frame, "2026-01-31")
    >>> archive.days()
    """

    def __init__(self, path: Path, **options: Unpack[CommonOptions]) -> None:
        self.path = os.fspath(path)
        self._options = options

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        id_type: str = "string",
        profile: Literal["sharp", "paper"] = "sharp",
        decisions: bool = False,
        learn: Union[Path, Iterable[Path], Arrow, None] = None,
        progress: ProgressOption = None,
        **options: Unpack[_SpecJobOptions],
    ) -> Archive:
        """Create an empty archive.

        Parameters
        ----------
        path
            Directory or URL.
        id_type
            Type of the documents' ids: "string" or "bigint".
        profile
            "sharp": sketches, decisions, and runs that verify pairs by their sketches; or "paper": pairs of near fingerprints. What
            it says of runs is recorded in the archive: see `set`.
        decisions
            With the profile "paper": whether the archive has a column `kept`, so that later runs find duplicates of kept documents
            only.
        learn
            Documents from which to learn the document frequencies of features (see `idf`): paths, or a table in memory.
        **options
            How fingerprints are made (see `SpecOptions`). This cannot be changed later.
        """
        with scratch_directory(options.get("scratch")) as directory:
            learned = None if learn is None else file_paths(learn, directory, options, "texts")
            given = {"id_type": id_type, "profile": profile, "decisions": decisions, "learn": learned, **options}
            call_json(["archive", "create", *to_arguments(given), "--", os.fspath(path)], progress)
        common: Any = {name: value for name, value in options.items() if name in CommonOptions.__annotations__}
        return cls(path, **common)

    def info(self, verify: bool = False) -> Summary:
        """What the archive holds: version, spec, fingerprints, bytes, days, ... With verify, every data file is read and checked."""
        return self._call("info", {"verify": verify})

    def set(self, **settings: Union[int, float, str]) -> Summary:
        """Change the settings of runs that the archive records: `k`, `verify`, `min_similarity`, `id_column`, `text_column`.

        They count from now on; a rerun of a day that is committed uses those of that day.
        """
        pairs = [f"{name.replace('_', '-')}={value}" for name, value in settings.items()]
        return Summary(call_json(["archive", "set", *to_arguments(self._options), "--", self.path, *pairs]))

    def days(self) -> dict[datetime.date, Summary]:
        """Each day that the archive holds, with its numbers of `fingerprints`, `files` and `bytes`; and if its batches have names,
        the fingerprints of each in `batches`.
        """
        days = self.info().raw["days"]
        return {datetime.date.fromisoformat(day): Summary(facts) for day, facts in days.items()}

    @property
    def version(self) -> int:
        """The version of the Delta table: each commit increments it. It is read anew each time, which takes about 0.1 s."""
        version: int = self.info().version
        return version

    def spec(self) -> Spec:
        """How its fingerprints are made."""
        storage: Any = {name: value for name, value in self._options.items() if name in StorageOptions.__annotations__}
        return Spec.from_archive(self.path, **storage)

    def append(
        self,
        new: Union[Path, Iterable[Path], Arrow],
        day: Day | None = None,
        *,
        batch: str | None = None,
        progress: ProgressOption = None,
        **options: Any,
    ) -> Summary:
        """Commit documents, or their fingerprints, as a day, without searching for pairs.

        `dedup_job.run(new, base=path, append=True, day=day)` searches and commits at once.

        Parameters
        ----------
        new
            Files, or a table in memory: ids and texts, or ids and fp. It must have a column of ids: row numbers would name
            documents of other days, too. Or paths of other archives, whose days are copied with their decisions.
        day
            Date of the documents; of archives, the only day to copy.
        batch
            Name of the batch, if its day has several.
        """
        with scratch_directory(self._options.get("scratch")) as directory:
            paths = file_paths(new, directory, {**self._options, **options}, row_ids=False)
            return self._call("append", {"input": paths, "day": day, "batch": batch, **options}, progress)

    def remove(
        self,
        *,
        day: Day | None = None,
        batch: str | None = None,
        ids: Iterable[Union[str, int]] | None = None,
        repair: bool = False,
    ) -> Summary:
        """Remove all documents of `day`, or of its `batch` of a name; or, from all days, the documents with these `ids`. Give one of the two.

        With `repair`, what was dropped as a duplicate of these documents, and of nothing else that is kept, is kept then.
        """
        if (day is None) == (ids is None):
            raise UsageError("give day or ids, and not both")
        if ids is None:
            return self._call("remove", {"day": day, "batch": batch, "repair": repair})
        if isinstance(ids, (str, bytes)):
            raise UsageError("ids are a list, not one id")
        with scratch_directory(self._options.get("scratch")) as directory:
            path = os.path.join(directory, "ids.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(_plain_id(one)) + "\n" for one in ids)
            return self._call("remove", {"ids": path, "repair": repair})

    def history(self, id: Union[str, int]) -> Summary:
        """The captures of a document: their days, whether each was kept, and how much it differs from the one before."""
        return Summary(call_json(["history", *to_arguments(self._options), "--", self.path, str(_plain_id(id))]))

    def groups(self, count: int = 10) -> Summary:
        """The groups of duplicates over all days: their number and sizes, and the `count` largest. A document that was dropped counts
        for the kept one that is nearest now.
        """
        return Summary(call_json(["groups", *to_arguments({**self._options, "count": count}), "--", self.path]))

    def compact(self, before: Day | None = None, *, rows_per_file: int | None = None) -> Summary:
        """Merge the small files of each day into few large ones."""
        return self._call("compact", {"before": before, "rows_per_file": rows_per_file})

    def vacuum(self, older_than: str = "7d", *, dry_run: bool = False, nothing_runs: bool = False) -> Summary:
        """Delete files that the archive has not needed for at least `older_than`; with dry_run, only list them.

        `nothing_runs` allows less than 24 hours: files of a run in progress could then be deleted.
        """
        return self._call("vacuum", {"older_than": older_than, "dry_run": dry_run, "nothing_runs": nothing_runs})

    def to_arrow(self, columns: Iterable[str] | None = None, days: Iterable[Day] | None = None) -> ArchiveRows:
        """Read the rows as a stream of Arrow record batches.

        Parameters
        ----------
        columns
            Names of columns, by default all that the archive has of: fp (the 64 bits as int64), id, sketch (binary), kept
            (bool), day (date32).
        days
            Dates; by default all days.
        """
        return ArchiveRows(self, columns, days)

    def _call(self, command: str, options: dict[str, Any], progress: ProgressOption = None) -> Summary:
        arguments = to_arguments({**self._options, **options})
        return Summary(call_json(["archive", command, *arguments, "--", self.path], progress))

    def __repr__(self) -> str:
        return f"Archive({self.path!r})"


def _plain_id(value: Union[str, int]) -> Union[str, int]:
    """An id that JSON can hold: NumPy's integers are no ints. A float is no id, even if it is a whole number."""
    return value if isinstance(value, (str, int)) else operator.index(value)
