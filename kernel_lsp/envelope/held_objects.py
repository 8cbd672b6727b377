"""What forward reads of objects that a module holds beside numbers and texts: nested configs, helpers with methods, closures.

By spelling, as ``reading``: what has a name that a method mentions counts as read, so there may be a condition too many.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from dataclasses import dataclass
from typing import Any

import torch

from .counters import only_changed
from .errors import Unwritable
from .module_settings import literal, setting
from .reading import called, function_of, mentioning, words

_DEEPEST = 4  # self.config.model.rope.theta
_MOST_ENTRIES = 32
_NOT_THE_USERS = frozenset([*sys.stdlib_module_names, "torch", "numpy"])


def settings_in(
    owner: type, source: str, name: str, value: Any, tree: dict[int, str], users: frozenset[type]
) -> list[str]:
    """Conditions for what the methods of ``owner`` read of what a module holds under ``name``, with all that lies below it.

    Every attribute name counts that is in a method that mentions ``name``, in the functions that it calls, and in the methods
    of the object that these mention. ``tree``: the id of each submodule, parameter and buffer, with its Python inside forward: where
    one of them lies in an object, too, it has to be that one still. ``users``: the user's classes of that tree; what their methods and the
    object's change and never read, a counter of calls, is left out.
    """
    mentioned = set().union(*mentioning(owner, name))
    return list(dict.fromkeys(_below(source, value, _Read(mentioned, tree, users), ()))) if mentioned else []


@dataclass(frozen=True)
class _Read:
    """The names that count as read, the module's tree, and the classes whose methods may read or change what is held."""

    mentioned: set[str]
    tree: dict[int, str]
    classes: frozenset[type]


def closure_conditions(source: str, function: Any) -> list[str]:
    """Conditions for what a function of the user's was given beside its arguments: its defaults, and names of the function around it."""
    if not inspect.isfunction(function):
        return []
    given = [(f"{source}.__defaults__", function.__defaults__)] if function.__defaults__ else []
    for i, cell in enumerate(function.__closure__ or ()):
        with contextlib.suppress(ValueError):  # nothing has been put into it
            given.append((f"{source}.__closure__[{i}].cell_contents", cell.cell_contents))
    return [text for place, value in given for text in _of_a_name(place, value)]


def _of_a_name(source: str, value: Any) -> list[str]:
    if inspect.isroutine(value) and hasattr(value, "__qualname__"):
        return [f"{source}.__qualname__ == {value.__qualname__!r}"]
    with contextlib.suppress(Unwritable):  # one too long to be compared
        return [text for text in [setting(source, value)] if text is not None]
    return []


def _below(source: str, value: Any, read: _Read, above: tuple[Any, ...]) -> list[str]:
    """``above``: the objects through which it was reached."""
    if len(above) >= _DEEPEST or any(value is one for one in above):
        return []
    if isinstance(value, list | tuple | dict):
        return _entries(source, value, read, (*above, value))
    if not _is_read_by_name(value):
        return []
    kind: Any = type(value)
    names = _with_methods(kind, frozenset(read.mentioned), callable(value))
    classes = read.classes | {kind} if _is_of_the_user(kind) else read.classes
    further = _Read({*names}, read.tree, classes)
    result: list[str] = []
    for word in sorted(names - only_changed(classes)):
        with contextlib.suppress(Exception):  # a property may raise anything; then forward did not read it
            result += _one(f"{source}.{word}", getattr(value, word), further, (*above, value))
    return result


def _entries(source: str, held: Any, read: _Read, above: tuple[Any, ...]) -> list[str]:
    """Of a list, tuple or dictionary with objects in it; one of numbers and texts alone is a setting itself."""
    keys = list(held) if isinstance(held, dict) else list(range(len(held)))
    if not keys or len(keys) > _MOST_ENTRIES or literal(held) is not None or literal(keys) is None:
        return []
    inner: list[str] = []
    for key in keys:
        with contextlib.suppress(Unwritable):  # one too long to be compared
            inner += _one(f"{source}[{literal(key)}]", held[key], read, above)
    same = f"[*{source}] == {literal(keys)}" if isinstance(held, dict) else f"len({source}) == {len(keys)}"
    kind = next(kind for kind in (list, tuple, dict) if isinstance(held, kind))
    return [f"isinstance({source}, {kind.__name__}) and {same}", *inner] if inner else []  # else it may be None


def _one(source: str, value: Any, read: _Read, above: tuple[Any, ...]) -> list[str]:
    if id(value) in read.tree:
        return [f"{source} is {read.tree[id(value)]}"]
    text = setting(source, value)
    return [text] if text is not None else _below(source, value, read, above)


def _is_read_by_name(value: Any) -> bool:
    """Whether it is an object whose attributes are settings: no module, tensor, class or function, which have rules of their own."""
    if isinstance(value, type | torch.nn.Module | torch.Tensor | functools.partial) or inspect.ismodule(value):
        return False
    of_others = callable(value) and not _is_of_the_user(type(value))
    return hasattr(value, "__dict__") and not inspect.isroutine(value) and not of_others


def _is_of_the_user(kind: type) -> bool:
    return kind.__module__.partition(".")[0] not in _NOT_THE_USERS


@functools.lru_cache(maxsize=1024)  # each schedule of a kernel asks
def _with_methods(kind: type, mentioned: frozenset[str], is_called: bool) -> frozenset[str]:
    """The names, and those in the methods of a class of the user's that they name. ``is_called``: forward may call the object itself."""
    found = {*mentioned, *(["__call__"] if is_called else [])}
    waiting = list(found)
    own = [base for base in kind.__mro__ if _is_of_the_user(base)]
    while waiting:
        word = waiting.pop()
        for method in (function_of(vars(base).get(word)) for base in own):
            if method is not None:
                new = words(method.__code__).union(*(words(one.__code__) for one in called(method))) - found
                found |= new
                waiting += new
    return frozenset(found - {"__call__"})
