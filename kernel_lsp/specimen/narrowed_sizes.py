"""Sizes that the graph fixes though forward takes others: calls with those run eagerly beside any kernel of the graph."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree

from kernel_lsp import class_schema
from kernel_lsp.specimen import examples, faking
from kernel_lsp.validation import state
from kernel_lsp.validation.duplicates import duplicate

#: seconds for all that is tried; for a call with elements, and bytes of a module that is copied for it
_SECONDS, _OF_A_CALL, _BYTES = 0.5, 0.1, 1 << 26

_Place = tuple[int, int]  # tensor, dimension


def note(
    inputs: list[class_schema.TensorSpec],
    module: torch.nn.Module,
    example: examples.Example,
    mode: FakeTensorMode | None,
) -> None:
    """Fill in ``narrowed`` of each input: equal sizes are tried together first, free ones too, then each by itself, until the time is over.

    ``mode``: that the module was made in, if it is fake. The calls are made without elements where that does.
    """
    groups = list(_groups(inputs))
    if not groups:
        return
    with state.unchanged(module) if mode is None else contextlib.nullcontext():  # a fake call counts in a real buffer
        called = _caller(module, example, mode) or (lambda *_: False)
        end = time.monotonic() + _SECONDS
        for fixed, free in groups:
            together = next((fixed for places in ([*fixed, *free], fixed) if called(places, end)), [])
            for tensor, dimension in together or [place for place in fixed if len(fixed) > 1 and called([place], end)]:
                inputs[tensor].narrowed.append(dimension)


def _groups(inputs: list[class_schema.TensorSpec]) -> Iterable[tuple[list[_Place], list[_Place]]]:
    """The dimensions of each size that are fixed, where there are some, and those that are free."""
    found: dict[int, tuple[list[_Place], list[_Place]]] = {}
    for tensor, spec in enumerate(inputs):
        for dimension, (size, symbol) in enumerate(zip(spec.shape, spec.dynamic, strict=True)):
            if size:
                found.setdefault(size, ([], []))[symbol is not None].append((tensor, dimension))
    return [group for group in found.values() if group[0]]


def _caller(
    module: torch.nn.Module, example: examples.Example, mode: FakeTensorMode | None
) -> Callable[[list[_Place], float], bool] | None:
    """What says whether forward takes twice the size at some places, or one more; None where no call can be made in short time."""
    fake = mode or faking.mode()
    leaves, form = pytree.tree_flatten((example.args, example.kwargs))
    if faking.run(module, example.args, example.kwargs, fake) is not None:
        leaves = [fake.from_tensor(leaf) if _has_elements(leaf) else leaf for leaf in leaves]
        around: Any = fake
        call = _without_elements(module, fake)
    elif mode is None and sum(t.nbytes for t in [*module.parameters(), *module.buffers()]) < _BYTES:
        around = contextlib.nullcontext()
        call = _with_elements(module)
        began = time.monotonic()
        if not call(example.args, example.kwargs) or time.monotonic() - began > _OF_A_CALL:
            return None
    else:
        return None
    tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def called(places: list[_Place], end: float) -> bool:
        for more in (None, 1):
            if time.monotonic() > end:
                return False
            changed = list(leaves)
            with around:
                for tensor, dimension in places:
                    one = changed[tensors[tensor]]
                    changed[tensors[tensor]] = torch.cat(
                        [one, one.narrow(dimension, 0, more or one.shape[dimension])], dimension
                    )
            if call(*pytree.tree_unflatten(changed, form)):
                return True
        return False

    return called


def _without_elements(module: torch.nn.Module, mode: FakeTensorMode) -> Callable[[Any, Any], bool]:
    return lambda args, kwargs: faking.run(module, args, kwargs, mode) is not None


def _with_elements(module: torch.nn.Module) -> Callable[[Any, Any], bool]:
    def call(args: Any, kwargs: Any) -> bool:
        try:
            args, kwargs = pytree.tree_map(
                lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs)
            )
            with torch.no_grad(), torch.random.fork_rng([]):
                duplicate(module)(*args, **kwargs)
            return True
        except Exception:
            return False

    return call


def _has_elements(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and not isinstance(leaf, FakeTensor)
