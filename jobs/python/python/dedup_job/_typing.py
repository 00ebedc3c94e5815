"""Names of annotations that `typing.get_type_hints` finds on every Python."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any


class Lazy:
    """A library that annotations name: it is imported when they are evaluated, and may be missing until then."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        module = importlib.import_module(self._name)
        try:
            return getattr(module, attribute)
        except AttributeError:
            return importlib.import_module(f"{self._name}.{attribute}")


if TYPE_CHECKING:
    from typing_extensions import Unpack
else:
    try:
        from typing import Unpack
    except ImportError:  # before Python 3.11
        try:
            from typing_extensions import Unpack
        except ImportError:

            class Unpack:
                """Stands for the options of a call."""

                def __class_getitem__(cls, options: Any) -> Any:
                    return options


__all__ = ["Lazy", "Unpack"]
