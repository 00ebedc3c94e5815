"""The exceptions of this package, one for each exit code of the program."""

from __future__ import annotations


class DedupJobError(Exception):
    """The base of all errors of dedup-job.

    `message` is what the program prints, and `exit_code` its exit code. `parts` has the numbers of a job's parts if the error
    is about them: of the one that failed, or of those that have no whole answer. An argument of a wrong type, such as a number
    for a text, raises Python's TypeError instead.
    """

    exit_code: int = 70
    parts: tuple[int, ...] = ()

    def __init__(self, message: str, exit_code: int | None = None, parts: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        if exit_code is not None:
            self.exit_code = exit_code
        if parts:
            self.parts = parts

    def __reduce__(self) -> tuple[type[DedupJobError], tuple[str, int, tuple[int, ...]]]:
        return type(self), (self.message, self.exit_code, self.parts)


class UsageError(DedupJobError, ValueError):
    """An option is wrong or contradicts another, or an input does not exist (64)."""

    exit_code = 64


class DataError(DedupJobError):
    """Data is damaged, or of a wrong kind: a column is missing, or ids are floats (65)."""

    exit_code = 65


class UnreachableError(DedupJobError):
    """An object store did not answer, after all retries (69)."""

    exit_code = 69


class InternalError(DedupJobError):
    """A fault in dedup-job: please report it (70)."""

    exit_code = 70


class FileError(DedupJobError):
    """A local file cannot be read or written: the disk may be full (74)."""

    exit_code = 74


class TryAgainError(DedupJobError):
    """The same call may succeed later, or with more memory (75)."""

    exit_code = 75


class PermissionDeniedError(DedupJobError):
    """A file or an object store refuses access (77)."""

    exit_code = 77


class ConfigurationError(DedupJobError):
    """Two sets of fingerprints have different specs, so they must not be compared; or a configuration file is wrong (78)."""

    exit_code = 78


class StoppedError(DedupJobError):
    """A signal stopped the program; `exit_code` is 128 + the signal's number."""

    exit_code = 143


_BY_CODE = {error.exit_code: error for error in DedupJobError.__subclasses__()}


def error_for(exit_code: int, message: str, parts: tuple[int, ...] = ()) -> DedupJobError:
    """The exception for an exit code of the program."""
    kind: type[DedupJobError] = StoppedError if exit_code > 128 else InternalError
    return _BY_CODE.get(exit_code, kind)(message, exit_code, parts)
