"""Dataclasses that forward returns, as pytree nodes that torch.export takes apart.

``torch.export`` knows no dataclasses but those that are registered as pytree nodes, and what a registered class keeps of its
fields is up to who registers it: transformers' ``ModelOutput`` leaves out those that are None. So nothing is registered for the
user's classes. Forward is traced with each dataclass in its result replaced by a ``Record`` of its class and all its fields.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import torch
from torch.utils import _pytree as pytree

_MISSING = object()


class NotRebuilt(Exception):
    """A dataclass whose objects its constructor does not make again from their fields; ``kind``: its name, ``why``: what is in the way."""

    def __init__(self, kind: str, why: str) -> None:
        self.kind, self.why = kind, why
        super().__init__(f"{kind} cannot be made from its fields: {why}")


@dataclasses.dataclass(frozen=True)
class Form:
    """What a record is made into: a class, and the keywords of its constructor."""

    kind: type
    names: tuple[str, ...]


class Record:
    """An object of a dataclass, in parts: ``values`` has one for each name of the form."""

    def __init__(self, form: Form, values: tuple[Any, ...]) -> None:
        self.form, self.values = form, values


def _flatten(record: Record) -> tuple[list[Any], Form]:
    return list(record.values), record.form


def _unflatten(values: Any, form: Form) -> Record:
    return Record(form, tuple(values))


pytree.register_pytree_node(Record, _flatten, _unflatten)


def return_records(module: torch.nn.Module) -> None:
    """Let forward of ``module``, which has to be a copy, return records where it returns dataclasses."""
    forward = module.forward

    def taking_apart(*args: Any, **kwargs: Any) -> Any:
        return taken_apart(forward(*args, **kwargs))

    taking_apart.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
    module.forward = taking_apart  # type: ignore[method-assign]


def taken_apart(result: Any) -> Any:
    """The result with a ``Record`` for each dataclass in it, also inside tuples, named tuples, lists, dicts and dataclasses.

    Raises:
        NotRebuilt: a dataclass holds something that its constructor is not given.
    """
    kind = type(result)
    if dataclasses.is_dataclass(kind) and not isinstance(result, torch.Tensor):
        return _record(result)
    if kind is dict:
        parts = {key: taken_apart(value) for key, value in result.items()}
        return parts if any(parts[key] is not value for key, value in result.items()) else result
    if kind in (list, tuple) or pytree.is_namedtuple_class(kind):
        values = [taken_apart(value) for value in result]
        if all(value is before for value, before in zip(values, result, strict=True)):
            return result
        return kind(values) if kind in (list, tuple) else kind(*values)
    return result


def _record(result: Any) -> Record:
    """Made anew from its fields it has to hold the same, whatever ``__post_init__`` or a constructor of its own does."""
    kind = type(result)
    names = tuple(field.name for field in dataclasses.fields(kind) if field.init)
    given = {name: getattr(result, name, _MISSING) for name in names}
    for name, value in given.items():
        if value is _MISSING:
            raise NotRebuilt(kind.__name__, f"the field {name} is not set")
    try:
        again = kind(**given)
    except Exception as error:
        raise NotRebuilt(kind.__name__, f"its constructor raises {type(error).__name__}") from error
    held, made = _held(result), _held(again)
    for name in [*held, *(name for name in made if name not in held)]:
        if not _same(held.get(name, _MISSING), made.get(name, _MISSING)):
            raise NotRebuilt(kind.__name__, f"its constructor does not set {name} to what forward returns there")
    return Record(Form(kind, names), tuple(taken_apart(value) for value in given.values()))


def _held(one: Any) -> dict[str, Any]:
    """All that an object holds: attributes, also in slots, and the entries of a dict under their keys in brackets."""
    slots = [getattr(base, "__slots__", ()) for base in type(one).__mro__]
    names = [name for some in slots for name in ([some] if isinstance(some, str) else some)]
    found = {name: getattr(one, name) for name in names if not name.startswith("__") and hasattr(one, name)}
    found |= getattr(one, "__dict__", {})
    for field in dataclasses.fields(one):  # a default stays an attribute of the class where the field is not set
        if hasattr(one, field.name):
            found[field.name] = getattr(one, field.name)
    if isinstance(one, dict):
        found |= {f"[{key!r}]": value for key, value in one.items()}
        found["the order of its keys"] = [*map(repr, one)]
    return found


def _same(one: Any, other: Any) -> bool:
    """Whether two values are one, or equal in type and parts; tensors have to be one and the same."""
    if one is other:
        return True
    if type(one) is not type(other) or isinstance(one, torch.Tensor):
        return False
    if dataclasses.is_dataclass(one):
        held, others = _held(one), _held(other)
        return held.keys() == others.keys() and all(_same(value, others[name]) for name, value in held.items())
    if isinstance(one, dict):
        return [*one] == [*other] and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    try:
        return bool(one == other)
    except Exception:  # of arrays and the like there is no one answer
        return False
