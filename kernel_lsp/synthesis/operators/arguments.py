"""An exported node's arguments as a lowering declares them: what its annotations do not take is not lowered.

So a lowering need not ask whether it was given a constant where it computes with a tensor, a size that varies where it needs a
number, or an overload with other arguments.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from typing import Any

import torch

from ..graph.build import NotLowered, shape_of
from ..graph.value import Pointwise, Scalar, Value
from .registry import Lowering

#: Keywords that say where and how a result is stored, which a kernel decides by itself.
_OF_STORAGE = frozenset(
    ["dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking", "copy", "implicit", "generator"]
)
_WORDS = {Value: "a tensor", int: "an integer", float: "a number", bool: "a truth value", str: "a word"}


def bound(lowering: Lowering, args: Any, kwargs: Any, fakes: tuple[Any, Any], fake: Any) -> inspect.BoundArguments:
    """What ``lowering`` is to be called with.

    ``fakes``: the same arguments as torch's fake tensors, for the dtype of a constant; ``fake``: the node's result. A constant becomes a
    ``Value`` where one is declared.

    Raises:
        NotLowered: the lowering does not take an argument as it is.
    """
    signature, hints = _declared(lowering)
    given = _keywords(signature, fake, kwargs)
    if "contiguous" in signature.parameters:  # whether the operand's memory was row-major, from its beginning
        first = fakes[0][0]
        given["contiguous"] = bool(first.is_contiguous() and first.storage_offset() == 0)
    try:
        result = signature.bind(*args, **given)
        seen = signature.bind(*fakes[0], **{key: fakes[1].get(key) for key in given})
    except TypeError:
        raise NotLowered("a form of the operator with other arguments") from None
    for name, value in result.arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) and name in hints:
            result.arguments[name] = _taken(hints[name], value, seen.arguments.get(name), name)
    return result


@functools.cache
def _declared(lowering: Lowering) -> tuple[inspect.Signature, dict[str, Any]]:
    return inspect.signature(lowering), typing.get_type_hints(lowering)


def _keywords(signature: inspect.Signature, fake: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The node's own keywords, and out dtype, shape or shapes of the result where the lowering asks for them."""
    parameters = signature.parameters
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    results = [fake] if isinstance(fake, torch.Tensor) else [f for f in fake if isinstance(f, torch.Tensor)]
    known: dict[str, Any] = {"out": results[0].dtype, "shape": shape_of(results[0].shape)}
    if not isinstance(fake, torch.Tensor):
        known["shapes"] = [shape_of(f.shape) for f in results]
    given = {key: item for key, item in known.items() if key in parameters}
    if "shapes" in parameters and "shapes" not in given:
        raise NotLowered("a form of the operator with one result")
    for key, item in kwargs.items():
        if key in parameters or open_ended:
            given.setdefault(key, item)
        elif key not in _OF_STORAGE:
            raise NotLowered(f"the argument {key}")
    return given


def _taken(hint: Any, value: Any, seen: Any, name: str) -> Any:
    """``value`` as the annotation ``hint`` declares it.

    Raises:
        NotLowered: it cannot be taken so.
    """
    if hint is Any:
        return value
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        exact = next((kind for kind in inner if kind is not Value and _is(kind, value)), None)
        return value if exact is not None else _taken(Value if Value in inner else inner[0], value, seen, name)
    if origin in (list, tuple):
        if not isinstance(value, list | tuple):
            raise NotLowered(f"{name} that is no list")
        if origin is tuple:
            return value
        kind = inner[0] if inner else Any
        fakes = seen if isinstance(seen, list | tuple) and len(seen) == len(value) else [None] * len(value)
        return [_taken(kind, item, f, name) for item, f in zip(value, fakes, strict=True)]
    if hint is Value and isinstance(value, bool | int | float) and isinstance(seen, torch.Tensor):
        return Value(Pointwise("constant", (value,)), (), seen.dtype)
    if _is(hint, value):
        return value
    raise NotLowered(
        f"{name} that is {'a size' if isinstance(value, Scalar) else 'not ' + _WORDS.get(hint, str(hint))}"
    )


def _is(kind: Any, value: Any) -> bool:
    """Whether ``value`` is one of ``kind``; torch hands an integer where a float is declared, never the reverse."""
    if typing.get_origin(kind) in (list, tuple):
        return isinstance(value, list | tuple)
    if kind is float:
        return isinstance(value, int | float)
    return isinstance(value, kind) if isinstance(kind, type) else True
