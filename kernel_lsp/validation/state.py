"""What a forward may change in a module: its buffers, and plain values that it keeps in attributes.

Every comparison begins in one state, for module and candidate and for each call: running averages, counters and lazily made
tables are put back after each call.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_lsp.validation.chunks import identical

_OF_EVERY_MODULE = frozenset(vars(torch.nn.Module())) | {"training"}
_SCALARS = (bool, int, float, str, type(None))


def snapshot(module: torch.nn.Module) -> dict[str, Any]:
    """Copies of the buffers and of the attributes that hold numbers, texts, tensors or containers of these, by path."""
    found: dict[str, Any] = {}
    for path, child in module.named_modules():
        prefix = f"{path}." if path else ""
        for name, buffer in child._buffers.items():
            if buffer is not None:
                found[prefix + name] = _copied(buffer)
        own = type(child).__module__.startswith("torch.")
        for name, value in vars(child).items():
            if name not in _OF_EVERY_MODULE and not (own and name.startswith("_")) and _is_state(value):
                found[prefix + name] = _copied(value)
    return found


def changed(module: torch.nn.Module, before: dict[str, Any]) -> dict[str, Any]:
    """Copies of what is not as it was in ``before``, by path; what is new as well."""
    now = snapshot(module)
    return {path: value for path, value in now.items() if path not in before or not _same(before[path], value)}


def put_back(module: torch.nn.Module, before: dict[str, Any], *, only_known: bool = False, anew: bool = False) -> None:
    """Give buffers and attributes the values of ``before``; what has come up since goes, unless ``only_known``.

    ``anew``: attributes also where they have these values, since they may lie in memory that is written next (an input
    of the call before that was kept).
    """
    owners = dict(module.named_modules())
    for path, value in before.items():
        place, _, name = path.rpartition(".")
        owner = owners.get(place)
        if owner is None:
            continue
        there = owner._buffers.get(name)
        if there is not None and there.grad_fn is not None:  # written to where gradients were required
            there = owner._buffers[name] = there.detach()
        if there is not None and isinstance(value, torch.Tensor) and there.shape == value.shape:
            if not identical(there.detach(), value.to(there)):
                with torch.no_grad():
                    there.copy_(value)
        elif name in owner._buffers:
            owner._buffers[name] = _copied(value)
        elif anew or name not in vars(owner) or not _same(vars(owner)[name], value):
            setattr(owner, name, _copied(value))
    if only_known:
        return
    for path in snapshot(module).keys() - before.keys():
        place, _, name = path.rpartition(".")
        delattr(owners[place], name)


@contextlib.contextmanager
def unchanged(module: torch.nn.Module) -> Iterator[dict[str, Any]]:
    """The state at the beginning, which the module is in again afterwards."""
    before = snapshot(module)
    try:
        yield before
    finally:
        put_back(module, before)


def _is_state(value: Any) -> bool:
    if isinstance(value, _SCALARS) or (type(value) is torch.Tensor and value.layout is torch.strided):
        return True
    if type(value) in (list, tuple):
        return len(value) <= 1000 and all(map(_is_state, value))
    if type(value) is dict:
        return len(value) <= 1000 and all(isinstance(k, _SCALARS) and _is_state(v) for k, v in value.items())
    return False


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, _SCALARS):
        return value
    return pytree.tree_map(lambda v: v.detach().clone() if isinstance(v, torch.Tensor) else copy.copy(v), value)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)) or a.is_meta or b.is_meta:
            return False
        return a.shape == b.shape and a.dtype == b.dtype and a.device == b.device and identical(a.detach(), b)
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    return bool(a == b or (a != a and b != b))
