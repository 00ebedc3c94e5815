"""How fingerprints are made."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Union

from . import _native
from ._options import Path, SpecOptions, StorageOptions, storage_arguments, to_arguments
from ._typing import Unpack


class Spec:
    """How fingerprints are made: only fingerprints of equal specs may be compared.

    Parameters
    ----------
    **options
        The options of the command (see `SpecOptions`): tokenizer, fold, normalize, markup, stop_words, weight, idf, idf_power,
        sketch, min_features, short_texts, template, hash_seed. Without options, the default of a new archive.

    Examples
    --------
    >>> dedup_job.Spec(weight="log-tf", sketch=128)
    >>> dedup_job.Spec.from_archive("archive")
    """

    def __init__(self, **options: Unpack[SpecOptions]) -> None:
        self._begin("options", dict(options))

    @classmethod
    def from_archive(cls, path: Path, **storage: Unpack[StorageOptions]) -> Spec:
        """The spec of an archive, with its document frequencies and stop words; `storage` is as in `StorageOptions`."""
        return cls.__new__(cls)._begin("archive", {"path": os.fspath(path), "storage": storage_arguments(storage)})

    @classmethod
    def from_json(cls, text: str) -> Spec:
        """The spec from JSON, as summaries have it. A spec with `idf` or `stop_words` cannot be made from JSON alone."""
        return cls.__new__(cls)._begin("json", {"text": text})

    def _begin(self, kind: str, source: dict[str, Any]) -> Spec:
        self._source = kind, source
        self._model: _native.Model | None = None
        # Errors should come now.
        self._load()
        return self

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON: equal specs have equal digests."""
        return self._load().digest

    def to_json(self) -> str:
        """The canonical JSON."""
        return self._load().json

    def to_dict(self) -> dict[str, Any]:
        """The fields, as in the canonical JSON."""
        fields: dict[str, Any] = json.loads(self.to_json())
        return fields

    def _load(self) -> _native.Model:
        # Made when it is needed, because other processes get the source.
        if self._model is None:
            kind, source = self._source
            if kind == "archive":
                self._model = _native.Model.from_archive(source["path"], source["storage"])
            elif kind == "json":
                self._model = _native.Model.from_json(source["text"])
            else:
                self._model = _native.Model.from_options(_as_text(source))
        return self._model

    def __getstate__(self) -> dict[str, Any]:
        return {"_source": self._source, "_model": None}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        return f"Spec({self.to_json()})"


#: A spec: None for the default, a `Spec`, its options as a dict, or the path of an archive for the archive's.
SpecLike = Union[None, Spec, Mapping[str, Any], Path]


def to_spec(spec: SpecLike) -> Spec:
    """The `Spec` that is meant."""
    if isinstance(spec, Spec):
        return spec
    if spec is None:
        return Spec()
    if isinstance(spec, Mapping):
        return Spec(**spec)
    return Spec.from_archive(spec)


def _as_text(options: Mapping[str, Any]) -> dict[str, str]:
    """Options with their values as text."""
    arguments = {name: to_arguments({name: value}) for name, value in options.items()}
    return {name: given[0].partition("=")[2] for name, given in arguments.items() if given}
