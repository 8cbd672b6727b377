"""Which functions may read what a module holds: those of its class, and the user's functions that these mention. All by spelling."""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any

import torch

#: what a class holds of its own that is found by a name and is no setting
_CODE = (types.FunctionType, property, functools.cached_property, classmethod, type)


def methods(owner: type) -> list[Any]:
    """The functions that a class and its bases up to torch's define, also behind properties; without decorators and the constructor."""
    held = [value for base in _own(owner) for name, value in vars(base).items() if name != "__init__"]
    return _functions(held)


def function_of(value: Any) -> Any:
    """The function behind what a class holds: a method, a property, a static or class method; None where there is none."""
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, functools.cached_property):
        value = value.func
    elif isinstance(value, classmethod):
        value = value.__func__
    if not callable(value):
        return None
    function = inspect.unwrap(value)
    return function if inspect.isfunction(function) else None


def reads(owner: type, name: str) -> bool:
    """Whether a method of a class mentions an attribute ``name``, or a function of the user's that it calls."""
    return any(name in words(one.__code__) for method in methods(owner) for one in (method, *called(method)))


def mentioning(owner: type, name: str) -> list[set[str]]:
    """The names in each method of a class that mentions ``name``, and in the user's functions that it calls, which may be given what is held there."""
    found = [method for method in methods(owner) if name in words(method.__code__)]
    return [words(method.__code__).union(*(words(one.__code__) for one in called(method))) for method in found]


@functools.lru_cache(maxsize=1024)  # each schedule of a kernel asks
def called(method: Any) -> frozenset[Any]:
    """The user's functions that a method mentions, and those that these mention, by a global name or as part of a module."""
    return frozenset(_followed([method]) - {method})


def words(code: types.CodeType) -> set[str]:
    """The names in ``code`` and in the functions inside it."""
    inner = [constant for constant in code.co_consts if inspect.iscode(constant)]
    return set(code.co_names).union(*map(words, inner))


def class_attributes(module: torch.nn.Module, among: frozenset[str]) -> dict[str, Any]:
    """What the module finds in the user's classes, not in itself, and is neither method nor property. ``among``: the names that count."""
    result: dict[str, Any] = {}
    for name in sorted(among):
        base = next((base for base in type(module).__mro__ if name in vars(base)), None)
        if base is None or base not in _own(type(module)) or name in vars(module) or name.startswith("__"):
            continue
        held = vars(base)[name]
        if not isinstance(held, _CODE) and not (isinstance(held, staticmethod) and _written_in(base, held)):
            with contextlib.suppress(Exception):  # a descriptor may raise anything
                result[name] = getattr(module, name)
    return result


def _written_in(base: type, held: staticmethod[Any, Any]) -> bool:
    """Whether a static method was written in the class, not given to it: ``act = staticmethod(torch.relu)``."""
    return getattr(held.__func__, "__qualname__", "").startswith(f"{base.__qualname__}.")


@functools.lru_cache(maxsize=8)  # each schedule of a kernel asks
def read_in_a_call(tree: frozenset[type]) -> frozenset[str]:
    """The names in the forward of each of the user's classes of a tree and in what these may call, with those that they give to getattr.

    That is: methods and properties of any of the classes, and the user's functions, which may be given a module.
    """
    classes = {base for kind in tree for base in _own(kind)}

    def of_a_class(mentioned: set[str]) -> list[Any]:
        return [vars(base)[word] for base in classes for word in mentioned & vars(base).keys() - {"__init__"}]

    reached = _followed(_functions(vars(base).get("forward") for base in classes), of_a_class)
    return frozenset().union(*(words(one.__code__) | _strings(one.__code__) for one in reached))


def _strings(code: types.CodeType) -> set[str]:
    """The constants in ``code`` that may be a name given to getattr."""
    inner = [_strings(constant) for constant in code.co_consts if inspect.iscode(constant)]
    return {one for one in code.co_consts if isinstance(one, str) and one.isidentifier()}.union(*inner)


def _followed(begin: list[Any], further: Callable[[set[str]], list[Any]] = lambda words: []) -> set[Any]:
    """Functions, and all that they mention: the user's functions, and what ``further`` has for the words of one."""
    found = set(begin)
    waiting = list(begin)
    while waiting:
        function = waiting.pop()
        mentioned = words(function.__code__)
        held = [function.__globals__.get(word) for word in mentioned]
        held += [vars(one).get(word) for one in held if isinstance(one, types.ModuleType) for word in mentioned]
        mine = [one for one in held if inspect.isfunction(one) and not one.__module__.startswith("torch.")]
        new = {*_functions([*mine, *further(mentioned)])} - found
        found |= new
        waiting += new
    return found


def _functions(held: Iterable[Any]) -> list[Any]:
    return [function for function in map(function_of, held) if function is not None]


def _own(owner: type) -> list[type]:
    """A class and its bases, without torch's."""
    return [base for base in owner.__mro__ if base is not object and not base.__module__.startswith("torch.")]
