"""Names of annotations that `typing.get_type_hints` finds on every Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


__all__ = ["Unpack"]
