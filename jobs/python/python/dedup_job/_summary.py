"""What a job reports."""

from __future__ import annotations

import pprint
from typing import Any


class Summary:
    """What a job reports, by attributes: `summary.hits`, `summary.seconds.total`.

    The names are those of the JSON that the command prints with --json; `raw` is that JSON as a dict.
    """

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    def __getattr__(self, name: str) -> Any:
        # Copying and unpickling ask before there is a `raw`.
        if name == "raw" or name not in self.raw:
            raise AttributeError(f"the summary has no {name}")
        return _wrap(self.raw[name])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.raw]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Summary) and self.raw == other.raw

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Summary({pprint.pformat(self.raw, width=100, compact=True, sort_dicts=False)})"


def _wrap(value: Any) -> Any:
    if isinstance(value, dict):
        return Summary(value)
    if isinstance(value, list):
        return [_wrap(item) for item in value]
    return value
