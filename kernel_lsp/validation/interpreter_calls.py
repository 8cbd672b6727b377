"""Calls of functions within a kernel, in Triton's interpreter: what ``triton.language`` holds is replaced once a launch.

The interpreter replaces it anew at every call of a function of the kernel's own or of Triton's library (``tl.sum``, ``tl.cdiv``),
milliseconds each time, though nothing puts it back before the launch ends.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


class _Nothing:
    """The scope of what was replaced before: there is nothing to restore."""

    def restore(self) -> None:
        pass


def repair_calls(tl: Any, interpreter: Any) -> None:
    """Put it in place; where a later Triton has other names, the interpreter stays as it is."""
    replace: Callable[[Any], Any] | None = getattr(interpreter, "_patch_lang", None)
    executor = getattr(interpreter, "GridExecutor", None)
    if replace is None or executor is None:
        return
    launch = executor.__call__
    languages = (tl, tl.core)
    #: of the launch that runs: the languages that functions were found to see; None between launches
    seen: set[tuple[int, ...]] | None = None

    def replace_once(function: Any) -> Any:
        if seen is None:
            return replace(function)
        visible = (value for value in function.__globals__.values() if inspect.ismodule(value))
        key = tuple(sorted({id(value) for value in visible if value in languages}))
        if key in seen:
            return _Nothing()
        scope = replace(function)
        seen.add(key)
        return scope

    def launch_once(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal seen
        before, seen = seen, set()
        try:
            return launch(self, *args, **kwargs)
        finally:
            seen = before

    interpreter._patch_lang = replace_once
    executor.__call__ = launch_once
