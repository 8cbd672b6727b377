"""Names in the generated file beside those of values: its host function's, and that of the class that it imports."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterable

from ..graph.names import Names

#: What a file that replays has beside the host function (see ``replay``).
_REPLAY = frozenset(
    [
        "_graphs",
        "_reads",
        "_begin",
        "_replayed",
        "_copied",
        "_settings",
        "_signature",
        "dataclasses",
        "logging",
        "operator",
        "weakref",
    ]
)
#: Names of the generated file's imports.
_IMPORTED = frozenset(["sys", "torch", "triton", "tl", "libdevice"])


def function_name(wanted: str, taken: Iterable[str]) -> str:
    """The host function's name: ``wanted``, or ``mask_forward`` where that would hide, or be hidden by, another name.

    ``taken``: the arguments of forward, which calls it, and the class that the file imports.
    """
    name = wanted or "module"
    hidden = _IMPORTED | _REPLAY | set(dir(builtins)) | set(keyword.kwlist) | set(taken)
    return Names(hidden).fresh(f"{name}_forward") if name in hidden else name


def class_alias(name: str) -> str:
    """What the file calls a class that it imports: ``name``, unless that is one of its own imports."""
    return f"{name}_module" if name in _IMPORTED else name
