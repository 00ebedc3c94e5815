"""What `tune` found."""

from __future__ import annotations

import json
from typing import Any

from ._summary import Summary
from ._table import Table, table_of_rows

#: What a distance finds and costs, and the kind of each value; the names are those of the command's JSON.
_MEASURED = {
    "recall": "float",
    "precision": "float",
    "pairs": "int",
    "unrelated": "float",
    "estimate": "str",
    "design": "str",
    "table_bytes": "int",
    "core_seconds": "float",
}
#: What a verification by sketches makes of the pairs within the distance.
_VERIFIED = {"sketch": "int", "min_similarity": "float", "verified_recall": "float", "verified_precision": "float", "f1": "float"}
#: The columns of `spec_table`.
_SPECS = {
    "best": "bool",
    "tokenizer": "str",
    "weight": "str",
    "idf_power": "str",
    "k": "int",
    **_MEASURED,
    **_VERIFIED,
    "without_fingerprint": "int",
    "spec": "str",
}
#: The pairs of a distance by their similarity, in the order of the JSON.
_LEVELS = ("pairs_from_0.95", "pairs_from_0.9", "pairs_from_0.8", "pairs_from_0.5", "pairs_below_0.5")
#: The columns of `distance_table`.
_DISTANCES = {"k": "int", **_MEASURED, **dict.fromkeys(_LEVELS, "int")}


class Tuned(Summary):
    """What `tune` found: a `Summary`, and its comparisons as tables.

    `spec` is the spec to take, `commands` are the commands that make an archive with the settings to take and run with it, and
    `raw` is all that the command prints with --json.
    """

    @property
    def spec_options(self) -> dict[str, Any]:
        """The options of `Archive.create` and `Spec` that make the spec to take.

        If `learnt` is true, its weights need document frequencies: give `Archive.create` the documents, too, as `learn`. Stop
        words are not among the options. Other settings of runs than those of the profile sharp are in `commands`, as those of
        `archive set`.
        """
        spec = self.raw["spec"]
        names = ("tokenizer", "fold", "normalize", "markup", "weight", "sketch", "min_features")
        options = {name: spec[name] for name in names if name in spec}
        options["hash_seed"] = spec["seed"]
        advice = self.raw["advice"]
        if advice["profile"] is None and advice["best"]["verified"]["bits"]:
            options["sketch"] = advice["best"]["verified"]["bits"]
        if self.raw["learnt"]:
            options["idf_power"] = str(spec.get("idf_power", "1"))
        return options

    def spec_table(self) -> Table:
        """The specs that were compared, one row each.

        best marks the one to take. tokenizer, weight and idf_power (null without document frequencies) are fields of the spec,
        and spec is all of them as JSON. k is the best distance, and sketch, min_similarity, verified_recall, verified_precision and
        f1 are those of the best verification by sketches; all are null if none costs little more than the profile sharp. recall
        and precision, before pairs are verified, are from 0 to 1, and each document counts alike in them. pairs are those in
        the sample, and unrelated is the expected number of unlike documents of the archive within k bits of a new one; estimate
        says how it was found. table_bytes and core_seconds (of one core) are the predicted cost.
        """
        rows = [self._spec_row(tried) for tried in self.raw["compared"]]
        return table_of_rows(_SPECS, rows, self)

    def distance_table(self) -> Table:
        """The distances k from 0 to 16 with the best spec, one row each.

        The columns are the numbers of `spec_table`, and the pairs by their similarity.
        """
        rows = [{**_at_distance(at), **dict(zip(_LEVELS, at["by_similarity"]))} for at in self.raw["distances"]]
        return table_of_rows(_DISTANCES, rows, self)

    def _spec_row(self, tried: dict[str, Any]) -> dict[str, Any]:
        spec = tried["spec"]
        return {
            "best": spec == self.raw["spec"],
            "tokenizer": spec["tokenizer"],
            "weight": spec["weight"],
            "idf_power": None if spec["idf"] is None else str(spec.get("idf_power", "1")),
            **_at_distance(tried["best"]),
            **_verified(tried["best"]),
            "without_fingerprint": tried["without_fingerprint"],
            "spec": json.dumps(spec, separators=(",", ":")),
        }


def _verified(at: dict[str, Any] | None) -> dict[str, Any]:
    """The numbers of the best verification at a distance; None for each if there is no distance."""
    if at is None:
        return dict.fromkeys(_VERIFIED)
    found = at["verified"]
    named = ("bits", "min_similarity", "recall", "precision", "f1")
    return dict(zip(_VERIFIED, (found[name] for name in named)))


def _at_distance(at: dict[str, Any] | None) -> dict[str, Any]:
    """The numbers at a distance; None for each if there is no distance."""
    if at is None:
        return dict.fromkeys(["k", *_MEASURED])
    return {"k": at["max_distance"], **{name: at[name] for name in _MEASURED}}
