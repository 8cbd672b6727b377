"""What forward depends on besides tensors: settings that a module holds, itself or in an object (``self.config``)."""

from __future__ import annotations

import dis
import enum
import functools
import math
from typing import Any

import torch

from .errors import Unwritable
from .reading import methods

_LONGEST = 1000  # characters of a condition; comparing more at every call costs more than a kernel saves
_OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))


def literal(value: Any) -> str | None:
    """Python for a constant, also inside tuples, lists and dictionaries; None for anything else.

    Of the subclasses of numbers and strings (numpy.float64, string enums) the value alone is written.
    """
    if value is None or isinstance(value, bool | torch.dtype | torch.device):
        return repr(value) if not isinstance(value, torch.device) else f'torch.device("{value}")'
    for kind in (int, str):
        if isinstance(value, kind):
            return kind.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value) if math.isfinite(value) else f'float("{float.__repr__(value)}")'
    if isinstance(value, list | tuple):
        items = [literal(item) for item in value]
        if None in items:
            return None
        inner = ", ".join(str(item) for item in items)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(items) == 1 else ''})"
    if isinstance(value, dict):
        pairs = [(literal(key), literal(item)) for key, item in value.items()]
        return None if any(None in pair for pair in pairs) else "{" + ", ".join(f"{k}: {v}" for k, v in pairs) + "}"
    return None


def setting(source: str, value: Any) -> str | None:
    """The condition that a setting is what it was, None for what is no setting and for NaN.

    Raises:
        Unwritable: a list or dictionary is too long to compare at every call.
    """
    if value is None or isinstance(value, bool):
        return f"{source} is {value}"
    if isinstance(value, enum.Enum) and not isinstance(value, int | str | float):
        return f"{source}.name == {value.name!r}"
    if isinstance(value, functools.partial):
        kept = (literal(value.args), literal(value.keywords), getattr(value.func, "__name__", None))
        if None in kept:
            return None
        return f'{source}.func.__name__ == "{kept[2]}" and ({source}.args, {source}.keywords) == ({kept[0]}, {kept[1]})'
    if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    text = literal(value)
    if text is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if len(text) > _LONGEST:
        raise Unwritable("forward", f"{source} is too long to be compared at every call")
    return f"{source} == {text}"


def absent(source: str, module: torch.nn.Module, carried: frozenset[str] = frozenset()) -> list[str]:
    """Conditions that the module still lacks what its methods ask for with hasattr or getattr and do not find.

    ``carried``: the Python of attributes that it may have got since.
    """
    asked = {word for method in methods(type(module)) for word in _asked(method.__code__)}
    return [
        f'not hasattr({source}, "{word}")'
        for word in sorted(asked)
        if not (hasattr(module, word) or f"{source}.{word}" in carried)
    ]


def _asked(code: Any) -> set[str]:
    """The names in ``hasattr(…, "name")`` and ``getattr(…, "name", …)``."""
    words, asking = set(), False
    for instruction in dis.get_instructions(code):
        value = instruction.argval
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            asking = value in ("hasattr", "getattr")
        elif asking and instruction.opname == "LOAD_CONST" and isinstance(value, str):
            asking = False
            if value.isidentifier():
                words.add(value)
    return words


def of_every_module(name: str) -> bool:
    """Whether ``torch.nn.Module`` itself keeps something under ``name``."""
    return name in _OF_EVERY_MODULE
