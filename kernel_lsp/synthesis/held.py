"""What forward depends on besides tensors: settings that a module holds, itself or in an object (``self.config``)."""

from __future__ import annotations

import contextlib
import inspect
import math
from typing import Any


def setting(source: str, value: Any) -> str | None:
    """The condition that a setting is what it was, None for what is no setting."""
    if value is None or isinstance(value, bool):
        return f"{source} is {value}"
    if isinstance(value, int | str) or (isinstance(value, float) and math.isfinite(value)):
        return f"{source} == {value!r}"
    return None


def settings_in(owner: type, source: str, name: str, held: Any) -> list[str]:
    """Conditions for what the methods of ``owner`` read of an object that it holds under ``name``.

    By spelling: every attribute name in a method that mentions ``name``, so there may be one too many. Functions that
    are given the object are not followed.
    """
    if not hasattr(held, "__dict__") or isinstance(held, type) or callable(held):
        return []
    read = {word for method in _methods(owner) for word in _words(method.__code__, name)}
    found = []
    for word in sorted(read):
        with contextlib.suppress(Exception):  # a property may raise anything; then forward did not read it
            found.append(setting(f"{source}.{word}", getattr(held, word)))
    return [text for text in found if text is not None]


def _methods(owner: type) -> list[Any]:
    """The functions that a class and its bases up to torch's define, without decorators and the constructor."""
    methods = []
    for base in owner.__mro__:
        if base.__module__.startswith("torch.") or base is object:
            continue
        functions = [inspect.unwrap(f) for name, f in vars(base).items() if callable(f) and name != "__init__"]
        methods += [f for f in functions if inspect.isfunction(f)]
    return methods


def _words(code: Any, name: str) -> set[str]:
    """The attribute names in ``code`` and in the functions inside it, if it mentions ``name``."""
    inner = [c for c in code.co_consts if inspect.iscode(c)]
    words = {w for c in inner for w in _words(c, name)}
    return words | (set(code.co_names) if name in code.co_names else set())
