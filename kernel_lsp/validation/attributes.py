"""Plain tensor attributes that a call assigns or changes: whether a candidate does with them what the module does.

Of memory: whether an attribute holds another tensor afterwards, whether the one before was written to, and which inputs
and results the one that it holds shares memory with. What it holds is compared like a buffer (``checks``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from kernel_lsp.validation import state
from kernel_lsp.validation.aliasing import overlap
from kernel_lsp.validation.chunks import identical


def plain_tensors(module: torch.nn.Module, paths: Iterable[str] | None = None) -> dict[str, torch.Tensor]:
    """The tensors themselves that the module's tree holds in plain attributes, by path; of ``paths``, where given."""
    found: dict[str, torch.Tensor] = {}
    for path, child in module.named_modules():
        prefix = f"{path}." if path else ""
        found |= {prefix + name: value for name, value in vars(child).items() if _is_plain(value)}
    return found if paths is None else {path: found[path] for path in paths if path in found}


def _is_plain(value: Any) -> bool:
    return type(value) in (torch.Tensor, FakeTensor) and value.layout is torch.strided


def replaced(module: torch.nn.Module, before: dict[str, torch.Tensor], known: Iterable[str]) -> dict[str, Any]:
    """Copies of what attributes hold that hold another tensor than ``before``, if one of the same numbers; but for those ``known``."""
    now = plain_tensors(module)
    return {
        path: now[path].detach().clone()
        for path, old in before.items()
        if path not in known and now.get(path, old) is not old
    }


def handled(
    module: torch.nn.Module,
    before: dict[str, torch.Tensor],
    values: dict[str, torch.Tensor],
    others: list[torch.Tensor],
    paths: Iterable[str],
) -> dict[str, list[int]]:
    """For each of ``paths`` that holds a tensor: [it is another one, the one before was changed, which ``others`` it shares memory with].

    ``before``: what attributes held, ``values``: copies of that; ``others``: inputs, then results.
    """
    facts = {}
    for path, now in plain_tensors(module, paths).items():
        old = before.get(path)
        another = old is None or not overlap(old, now)
        written = old is not None and path in values and not identical(old.detach(), values[path])
        facts[path] = [int(another), int(written), *(i for i, t in enumerate(others) if overlap(now, t.detach()))]
    return facts


def difference(path: str, mine: list[int] | None, theirs: list[int], names: list[str]) -> str:
    """What a candidate does with an attribute that the module does not, or the other way round; empty where that is the same."""
    if mine is None:
        return f"it leaves no tensor in attribute {path}, the module does"
    if mine[:1] != theirs[:1]:
        does = ("assigns", "does not assign") if mine[:1] == [1] else ("does not assign", "assigns")
        return f"it {does[0]} attribute {path}, the module {does[1]} it"
    if mine[1:2] != theirs[1:2]:
        does = ("writes", "does not") if mine[1:2] == [1] else ("does not write", "does")
        return f"it {does[0]} to the tensor that attribute {path} held before, the module {does[1]}"
    if odd := sorted(set(mine[2:]) ^ set(theirs[2:])):
        other = names[odd[0]] if odd[0] < len(names) else f"output {odd[0] - len(names)}"
        does = ("shares", "does not") if odd[0] in mine[2:] else ("does not share", "does")
        return f"its attribute {path} {does[0]} memory with {other}, the module's {does[1]}"
    return ""


def come_about(module: torch.nn.Module, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What a first call makes of attributes for all that follow it: tensors where there were none, or on another device, or of another kind.

    ``before`` and ``after`` are as ``state.snapshot`` and ``state.changed`` give them.
    """
    plain = plain_tensors(module, after)
    return {path: after[path] for path in plain if _kind(before.get(path)) != _kind(after[path])}


def _kind(value: Any) -> Any:
    return (value.dtype, value.device, value.shape) if isinstance(value, torch.Tensor) else None


@contextlib.contextmanager
def at_first(module: torch.nn.Module, first: dict[str, Any], made: Iterable[str]) -> Any:
    """Within the context attributes are as before the first call: ``first``, and of ``made`` those are absent that it has not."""
    now = state.snapshot(module)
    try:
        state.put_back(module, first, only_known=True)
        for path in set(made) - first.keys():
            owner, _, name = path.rpartition(".")
            delattr(module.get_submodule(owner), name)
        yield
    finally:
        state.put_back(module, now)


def give(module: torch.nn.Module, values: dict[str, torch.Tensor]) -> None:
    """Assign copies of tensors to attributes, by path."""
    for path, value in values.items():
        owner, _, name = path.rpartition(".")
        setattr(module.get_submodule(owner), name, value.clone())


def widened(module: torch.nn.Module) -> None:
    """Floats in plain attributes to float64, as ``double()`` does with buffers."""
    for path, tensor in plain_tensors(module).items():
        if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            owner, _, name = path.rpartition(".")
            wide = torch.float64 if tensor.dtype.is_floating_point else torch.complex128
            setattr(module.get_submodule(owner), name, tensor.to(wide))
