"""What a job reports."""

from __future__ import annotations

import pprint
from typing import Any


class Summary:
    """What a job reports, by attributes or keys: `summary.seconds.total` is `summary["seconds"]["total"]`.

    The names are those of the JSON that the command prints with --json; `raw` is that JSON as a dict. What `print` shows of it
    leaves out long lists.
    """

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    def __getattr__(self, name: str) -> Any:
        # Copying and unpickling ask before there is a `raw`.
        if name == "raw" or name not in self.raw:
            raise AttributeError(f"the summary has no {name}")
        return _wrap(self.raw[name])

    def __getitem__(self, name: str) -> Any:
        return _wrap(self.raw[name])

    def __contains__(self, name: object) -> bool:
        return name in self.raw

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.raw]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Summary) and self.raw == other.raw

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Summary({pprint.pformat(_shorten(self.raw), width=100, compact=True, sort_dicts=False)})"


#: Items of a list that are shown.
_SHOWN = 20


class _Rest:
    """What stands for the items that are not shown."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __repr__(self) -> str:
        return f"... {self.count} more"


def _shorten(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shorten(item) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    shown = 1 if value and isinstance(value[0], dict) else _SHOWN
    rest = [_Rest(len(value) - shown)] if len(value) > shown else []
    return [*map(_shorten, value[:shown]), *rest]


def _wrap(value: Any) -> Any:
    if isinstance(value, dict):
        return Summary(value)
    if isinstance(value, list):
        return [_wrap(item) for item in value]
    return value
