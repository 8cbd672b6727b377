"""Example inputs and constructor arguments, from where the user gave them."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import random
import re
import traceback
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy
import torch
from torch.utils import _pytree as pytree

from kernel_lsp import errors
from kernel_lsp.specimen import faults, recorded

#: (args, kwargs)
Given = tuple[tuple[Any, ...], dict[str, Any]]
#: the entries of a table in pyproject.toml that give forward's inputs
_FORWARD = frozenset(["args", "kwargs", "examples"])
_TENSOR = re.compile(r"^(?P<dtype>[a-z]+[a-z0-9_]*)\[(?P<shape>[\d,\s]*)\](?:\s*<\s*(?P<below>\d+))?$")


@dataclass
class Example:
    """How to construct a module and call it. ``inputs_from`` names the source for a person.

    Attributes:
        init_from: the same of the constructor's arguments; empty where nothing gives any.
        count: how many examples that source gives, of which this is one.
        dtype: of its floating-point tensors; None where there are none, or of several.
        first_dtype: the same of the first example.
    """

    init_args: tuple[Any, ...] = ()
    init_kwargs: dict[str, Any] = field(default_factory=dict)
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    inputs_from: str = ""
    init_from: str = ""
    count: int = 1
    dtype: torch.dtype | None = None
    first_dtype: torch.dtype | None = None


#: between the seeds of parameters and inputs: with one seed for both, inputs can be equal to parameters
_APART = 1


def seed_all(seed: int) -> None:
    """Seed every generator that example inputs are made with."""
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def resolve(
    module: ModuleType,
    cls: type,
    path: str,
    class_name: str,
    table: dict[str, Any] | None,
    seed: int = 0,
    inside: contextlib.AbstractContextManager[None] | None = None,
    number: int = 0,
) -> Example:
    """Example inputs of ``cls``: its own functions, then the file's, then ``table``.

    ``table``: from pyproject.toml, and under ``recorded`` what ``kernel-lsp record`` saw, which comes last. With ``first``
    in it, the file's functions are for another class, of which this is a part, and come after all of it.

    ``inside``: entered while forward's inputs are made; the constructor's arguments are made outside of it.
    ``number``: which of several examples, from 0.

    Raises:
        NoExampleInputs: there are none in any of these places.
        ExampleInputsFailed: what gives them raises.
        DeviceMissing: it asks for a device that is not here.
    """
    example = Example()
    (example.init_args, example.init_kwargs), example.init_from = _constructor(module, cls, path, class_name, table)
    seed_all(seed + _APART)
    with inside or contextlib.nullcontext():
        given, example.inputs_from = _forward(module, cls, path, class_name, table)
        chosen = None
        for example.count, (args, kwargs) in enumerate(given, 1):  # the others are let go: only one may have the memory
            if example.count == 1:
                example.first_dtype = _dtype_of(args, kwargs)
            if example.count == number + 1:
                chosen = args, kwargs
        if chosen is None:
            detail = f"it gives {example.count} examples, and not one of number {number + 1}"
            raise errors.ExampleInputsFailed(path=path, line=None, function=example.inputs_from, detail=detail)
        example.args, example.kwargs = chosen
        example.dtype = _dtype_of(*chosen)
    return example


def _dtype_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.dtype | None:
    tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    found = {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
    return found.pop() if len(found) == 1 else None


def conversion(module: torch.nn.Module, example: Example) -> torch.dtype | None:
    """The dtype to which a module is converted for one of several examples, as by ``module.to(dtype)``; None: it stays as it is.

    It is converted where parameters and buffers have the dtype of the first example's tensors, and this example has another.
    """
    held = {t.dtype for t in [*module.parameters(), *module.buffers()] if t.is_floating_point()}
    if example.dtype in (None, example.first_dtype) or held != {example.first_dtype}:
        return None
    return example.dtype


def converted(given: dict[str, Any]) -> torch.dtype | None:
    """What a request says of the dtype that the module is converted to for its example (``conversion``)."""
    name = given.get("converted")
    return getattr(torch, name) if name else None


def constructor(
    module: ModuleType, cls: type, path: str, class_name: str, table: dict[str, Any] | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) for ``cls``: of its own function, the file's, ``table``, then a recorded call; none where there are none.

    Raises:
        ExampleInputsFailed: the function that gives them raises.
        DeviceMissing: it asks for a device that is not here.
    """
    return _constructor(module, cls, path, class_name, table)[0]


def _constructor(
    module: ModuleType, cls: type, path: str, class_name: str, table: dict[str, Any] | None
) -> tuple[Given, str]:
    """What ``constructor`` gives, and the source of it for a person."""
    own = function_for(module, "get_init_inputs", class_name)
    if own:
        return _call(own, path, class_name), f"{own.__name__}()"
    sources = [
        functools.partial(_shared_arguments, module, cls, path, class_name),
        functools.partial(_listed_arguments, module, cls, class_name, table),
    ]
    found = (source() for source in (reversed(sources) if _goes_first(table) else sources))
    return next((one for one in found if one is not None), (((), {}), ""))


def _shared_arguments(module: ModuleType, cls: type, path: str, class_name: str) -> tuple[Given, str] | None:
    """The constructor's arguments by the file's own ``get_init_inputs()``, where it takes them."""
    shared = getattr(module, "get_init_inputs", None)
    if not callable(shared):
        return None
    args, kwargs = _call(shared, path, class_name)
    return ((args, kwargs), "get_init_inputs()") if _constructs(cls, args, kwargs) else None


def _listed_arguments(
    module: ModuleType, cls: type, class_name: str, table: dict[str, Any] | None
) -> tuple[Given, str] | None:
    """The constructor's arguments that ``table`` has, or those of a recorded call."""
    if table and ("init" in table or "init-kwargs" in table):
        keys = " and ".join(key for key in ("init", "init-kwargs") if key in table)
        given = tuple(parse(table.get("init", []))), parse(table.get("init-kwargs", {}))
        return given, f"{keys} in the table of {class_name} under [tool.kernel-lsp.inputs] in pyproject.toml"
    if table and "recorded" in table and not (_inputs_given(module, class_name, table) and _accepts(cls, (), {})):
        return recorded.constructor(table["recorded"]), "the recorded call of its constructor"
    return None


def _goes_first(table: dict[str, Any] | None) -> bool:
    """Whether the table goes before the functions of the file that are named after no class."""
    return bool(table and table.get("first"))


def _inputs_given(module: ModuleType, class_name: str, table: dict[str, Any]) -> bool:
    """Whether forward's inputs are the user's own: recorded ones belong to the recorded constructor."""
    functions = [function_for(module, "get_inputs", class_name)]
    functions += [] if _goes_first(table) else [getattr(module, "get_inputs", None)]
    return any(map(callable, functions)) or not _FORWARD.isdisjoint(table)


def _forward(
    module: ModuleType, cls: type, path: str, class_name: str, table: dict[str, Any] | None
) -> tuple[Iterable[Given], str]:
    """The examples, at least one, each made when it is asked for; and where they come from."""
    own = function_for(module, "get_inputs", class_name)
    if own:
        return _each(own, path, class_name), f"{own.__name__}()"
    sources = [
        functools.partial(_shared_inputs, module, cls, path, class_name),
        functools.partial(_listed_inputs, table),
    ]
    found = (source() for source in (reversed(sources) if _goes_first(table) else sources))
    given = next((one for one in found if one is not None), None)
    if given is None:
        raise errors.NoExampleInputs(path=path, class_name=class_name)
    return given


def _shared_inputs(module: ModuleType, cls: type, path: str, class_name: str) -> tuple[Iterable[Given], str] | None:
    """The examples of the file's own ``get_inputs()``, where forward takes the first."""
    shared = getattr(module, "get_inputs", None)
    if not callable(shared):
        return None
    each = _each(shared, path, class_name)
    args, kwargs = first = next(each)
    if not _accepts(cls.forward, (None, *args), kwargs):  # type: ignore[attr-defined]
        return None
    return itertools.chain([first], each), "get_inputs()"


def _listed_inputs(table: dict[str, Any] | None) -> tuple[Iterable[Given], str] | None:
    """The examples that ``table`` has, or the recorded one."""
    if table and not _FORWARD.isdisjoint(table):
        try:
            tables = table.get("examples", [table])
            return [
                (tuple(parse(one.get("args", []))), parse(one.get("kwargs", {}))) for one in tables
            ], "pyproject.toml"
        except (ValueError, RuntimeError, AttributeError) as error:
            detail = faults.sentence(error)
            raise errors.ExampleInputsFailed(function="[tool.kernel-lsp.inputs]", line=None, detail=detail) from None
    if table and "recorded" in table:
        args, kwargs, inputs_from = recorded.forward(table["recorded"])
        return [(args, kwargs)], inputs_from
    return None


def function_for(module: ModuleType, prefix: str, class_name: str) -> Callable[[], Any] | None:
    """``get_inputs_Outer_Inner`` or ``get_inputs_Inner`` for the class ``Outer.Inner``."""
    for name in (class_name.replace(".", "_"), class_name.rpartition(".")[2]):
        found = getattr(module, f"{prefix}_{name}", None)
        if callable(found):
            return found
    return None


def _constructs(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the constructor takes the arguments. That of torch.nn.Module takes none, whatever its signature says."""
    if cls.__init__ is torch.nn.Module.__init__ and not getattr(cls, "call_super_init", False):  # type: ignore[misc]
        return not args and not kwargs
    return _accepts(cls, args, kwargs)


def _accepts(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:  # no signature to be had
        return True
    return True


def _call(function: Callable[[], Any], path: str, class_name: str) -> Given:
    """What a function gives; of several examples the first."""
    return next(_each(function, path, class_name))


def _each(function: Callable[[], Any], path: str, class_name: str) -> Iterator[Given]:
    """What a function gives: as many examples as it yields, one where it returns."""
    try:
        given = function()
        if not isinstance(given, types.GeneratorType):
            yield split(given)
            return
        one = next(given, None)
        if one is None:
            raise ValueError("it yields no example")
        while one is not None:
            yield split(one)
            one = next(given, None)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        line = faults.line_in(path, error)
        detail = faults.sentence(error)
        if device := faults.missing_device(error):
            raise errors.DeviceMissing(
                path=path, line=line, class_name=class_name, device=device, detail=detail
            ) from None
        raise errors.ExampleInputsFailed(
            path=path, line=line, function=f"{function.__name__}()", detail=detail
        ) from None


def split(given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) from a flat list (KernelBench), from ``[[args], {kwargs}]`` (KernelBook), a dict or one value."""
    if isinstance(given, dict):
        return (), given
    if isinstance(given, (list, tuple)):
        if len(given) == 2 and isinstance(given[0], (list, tuple)) and isinstance(given[1], dict):
            return tuple(given[0]), dict(given[1])
        return tuple(given), {}
    return (given,), {}


def parse(value: Any) -> Any:
    """A value of the pyproject table: "float32[8, 512]" becomes a tensor, "int64[8] < 100" one of integers below 100."""
    if isinstance(value, dict):
        return {k: parse(v) for k, v in value.items()}
    if isinstance(value, list):
        return [parse(v) for v in value]
    found = _TENSOR.match(value.strip()) if isinstance(value, str) else None
    dtype = getattr(torch, found["dtype"], None) if found else None
    if found is None or not isinstance(dtype, torch.dtype):
        return value
    shape = [int(n) for n in found["shape"].split(",") if n.strip()]
    if dtype is torch.bool:
        return torch.rand(shape) < 0.5
    if dtype.is_floating_point or dtype.is_complex:
        wide = torch.complex64 if dtype.is_complex else torch.float32
        return torch.randn(shape, dtype=wide).to(dtype)
    return torch.randint(0, int(found["below"] or 2), shape, dtype=dtype)
