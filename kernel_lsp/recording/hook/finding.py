"""Which classes are recorded: those in files of the project, or those that were named."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from . import counts

INSTALLED = {"site-packages", "dist-packages"}
#: torch's classes around a module, by their module
WRAPPERS = {
    "OptimizedModule": "torch._dynamo",
    "DistributedDataParallel": "torch.nn.parallel",
    "DataParallel": "torch.nn.parallel",
}
KERNEL_OPENING = "# /// kernel-lsp"


def entry_of(cls: type, config: dict[str, Any], room: bool) -> counts.Class:
    """A new entry for a class. ``room``: whether another one may be tracked."""
    file = file_of(cls)
    envelope = None
    identity = {"class": cls.__qualname__, "module": cls.__module__, "file": file}
    of = cls
    if file and _is_kernel(file) and hasattr(cls, "_in_envelope") and len(cls.__mro__) > 1:
        envelope = _any_envelope(cls)
        of = cls.__mro__[1]  # the generated class derives from the user's
        identity = {"class": of.__qualname__, "module": of.__module__, "file": file_of(of)}
    tracked = room and bool(identity["file"]) and "<locals>" not in of.__qualname__ and _wanted(of, config)
    around = WRAPPERS.get(cls.__name__)
    wrapper = around is not None and cls.__module__.startswith(around)
    return counts.Class(identity, tracked, envelope if tracked else None, wrapper)


def _any_envelope(cls: type) -> Callable[..., Any]:
    """Whether a kernel's class runs a kernel for a call: its envelope, or any of several."""
    found = [getattr(cls, name) for name in dir(cls) if name.startswith("_in_envelope")]
    return found[0] if len(found) == 1 else lambda *args, **kwargs: any(one(*args, **kwargs) for one in found)


def _wanted(cls: type, config: dict[str, Any]) -> bool:
    names = config["classes"]
    if names:
        return bool({cls.__qualname__, cls.__name__, f"{cls.__module__}.{cls.__qualname__}"} & set(names))
    file, root = file_of(cls), config["root"]
    inside = file.startswith(root.rstrip(os.sep) + os.sep)
    return inside and not INSTALLED & set(file[len(root) :].split(os.sep))


def file_of(cls: type) -> str:
    """The file that a class is defined in; "" where there is none."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return os.path.realpath(file) if file else ""


def _is_kernel(file: str) -> bool:
    try:
        with open(file, encoding="utf-8") as lines:
            return lines.readline().startswith(KERNEL_OPENING)
    except (OSError, UnicodeDecodeError):
        return False
