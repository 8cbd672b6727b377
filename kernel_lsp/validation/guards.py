"""Guarded, poisoned memory for a trial: what is read before it is written, or past its end, does not go unnoticed.

Every buffer lies between two guard regions. Fresh memory and the guards of allocations are filled with 0xFF (NaN in
every float type), the guards of inputs with 0x7F (huge or NaN): so an element copied from past an input's end never
looks like the guard it lands in.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_lsp.validation import torch_work

#: bytes of a guard; a multiple of 256, so that buffers stay as aligned as torch makes them
GUARD = 65536
#: the same for what is allocated on a GPU, where a megabyte is filled in a microsecond
_GPU_GUARD = 4 << 20
#: bytes of such guards in one call; what it allocates beyond has small ones
_MOST_GUARDS = 256 << 20

FRESH, _FRESH_INTEGERS, INPUT_GUARD = 0xFF, 0x5B, 0x7F

_aten = torch.ops.aten
_UNINITIALISED = {
    _aten.empty.memory_format,
    _aten.empty_strided.default,
    _aten.empty_like.default,
    _aten.new_empty.default,
    _aten.new_empty_strided.default,
}
_FILLED = {
    _aten.zeros.default,
    _aten.ones.default,
    _aten.full.default,
    _aten.zeros_like.default,
    _aten.ones_like.default,
    _aten.full_like.default,
    _aten.new_zeros.default,
    _aten.new_ones.default,
    _aten.new_full.default,
    _aten.clone.default,
}


class Guards:
    """The guarded buffers of one call. ``integers``: what fresh integers hold instead of poison."""

    def __init__(self, integers: int | None = None) -> None:
        self.integers = integers
        # name, bytes, size of the guard before the payload, size of the payload, guard's fill
        self.buffers: list[tuple[str, torch.Tensor, int, int, int]] = []

    def allocate(
        self, like: torch.Tensor, name: str, is_input: bool = False, device: torch.device | None = None
    ) -> torch.Tensor:
        """A tensor of ``like``'s shape, strides and dtype between guards, filled with poison; on its device or another."""
        device = device or like.device
        reach = 1 + sum((n - 1) * s for n, s in zip(like.shape, like.stride(), strict=True))
        size = reach * like.element_size()
        padded = -(-size // 256) * 256
        fill = INPUT_GUARD if is_input else FRESH
        few = 2 * _GPU_GUARD * len(self.buffers) < _MOST_GUARDS
        guard = _GPU_GUARD if device.type == "cuda" and not is_input and few else GUARD
        buffer = torch.full((guard + padded + guard,), fill, dtype=torch.uint8, device=device)
        if not is_input:
            buffer[guard : guard + size].fill_(_fresh(like.dtype))
        self.buffers.append((name, buffer, guard, size, fill))
        tensor = torch.empty(0, dtype=like.dtype, device=device)
        tensor.set_(buffer.untyped_storage(), guard // like.element_size(), like.shape, like.stride())
        if self.integers is not None and not is_input and _fresh(like.dtype) == _FRESH_INTEGERS:
            tensor.fill_(self.integers)
        return tensor

    def place(self, tensor: torch.Tensor, name: str, device: torch.device) -> torch.Tensor:
        """A guarded copy of an input on ``device``, with its shape, dtype and strides."""
        if tensor.numel() == 0:
            return tensor.clone().to(device)
        placed = self.allocate(tensor, name, is_input=True, device=device)
        source, target = tensor, placed
        for dim, stride in enumerate(tensor.stride()):
            if stride == 0 and tensor.shape[dim] > 1:
                source, target = source.narrow(dim, 0, 1), target.narrow(dim, 0, 1)
        target.copy_(source)
        return placed

    def damaged(self) -> list[str]:
        """A sentence for every guard that was written to."""
        found = []
        for name, buffer, guard, size, fill in self.buffers:
            found += written_to(buffer[:guard], buffer[guard + size :], fill, name)
        return found


def written_to(before: torch.Tensor, after: torch.Tensor, fill: int, name: str) -> list[str]:
    """A sentence where the guards before or after ``name``, uint8 [bytes] each, no longer hold ``fill``; at most one."""
    behind, ahead = after != fill, before != fill
    if bool(behind.any()):
        return [f"it writes {1 + int(behind.nonzero()[0])} bytes or more past the end of {name}"]
    if bool(ahead.any()):
        return [f"it writes {len(before) - int(ahead.nonzero()[-1])} bytes or more before the start of {name}"]
    return []


def unwritten(tensor: torch.Tensor) -> torch.Tensor:
    """Which elements still hold the poison of fresh memory, as far as their bits can tell: bool, of the tensor's shape."""
    if tensor.numel() == 0:
        return torch.zeros(tensor.shape, dtype=torch.bool, device=tensor.device)
    flat = tensor.contiguous().reshape(-1)
    flat = flat.as_strided((flat.numel(), 1), (1, 1))  # one element that was expanded still has stride 0
    raw = flat.view(torch.uint8)
    return (raw == _fresh(tensor.dtype)).all(-1).reshape(tensor.shape)


def _fresh(dtype: torch.dtype) -> int:
    return FRESH if dtype.is_floating_point or dtype.is_complex else _FRESH_INTEGERS


def poison(tensor: torch.Tensor) -> None:
    """Fill all of the storage, also beyond the tensor's own elements, as fresh memory is."""
    raw = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
    raw.fill_(_fresh(tensor.dtype))


class Poisoned(TorchDispatchMode):
    """Within this mode memory that torch allocates is guarded and poisoned; ``operators`` is what torch computed.

    ``alone`` gets the checksums of results with as many elements as ``sought`` names: with muted launches, what torch
    computes without them.

    ``guarding`` is to be False while a backward runs. Autograd takes it that what it allocates begins at offset zero of
    its storage (the gradient of an in-place operation on a view is cut out of it by offset), so such memory is poisoned
    and has no guards.
    """

    def __init__(self, guards: Guards) -> None:
        super().__init__()
        self.guards = guards
        self.guarding = True
        self.operators: torch_work.Work = {}
        self.sought: frozenset[int] = frozenset()
        self.alone: list[list[int]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self.guarding and (func in _UNINITIALISED or func in _FILLED):
            out = func(*args, **kwargs)
            if func in _UNINITIALISED and _can_be_guarded(out):
                poison(out)
            return out
        if func in _UNINITIALISED and (guarded := self._instead(func, args, kwargs)) is not None:
            return guarded
        out = func(*args, **kwargs)
        if func in _UNINITIALISED or func in _FILLED:
            if not _can_be_guarded(out):
                return out
            guarded = self.guards.allocate(out, f"a buffer of shape {list(out.shape)} that it allocates")
            if func in _FILLED:
                guarded.copy_(out)
            return guarded
        if torch_work.note(self.operators, func, args, out) and self.sought:
            results = [t for t in pytree.tree_leaves(out) if isinstance(t, torch.Tensor)]
            self.alone += [torch_work.checksum(t) for t in results if t.numel() in self.sought]
        return out

    def _instead(self, func: Any, args: Any, kwargs: Any) -> torch.Tensor | None:
        """Guarded memory instead of what ``func`` would allocate, which is never made; None where that needs it made."""
        like = args[0] if args and isinstance(args[0], torch.Tensor) else None
        device = kwargs.get("device") or (like.device if like is not None else torch.get_default_device())
        if kwargs.get("pin_memory") or torch.device(device).type == "meta":
            return None
        try:
            out = func(*args, **{**kwargs, "device": torch.device("meta")})
        except (RuntimeError, TypeError, NotImplementedError):
            return None
        if not _can_be_guarded(out, on_meta=True):
            return None
        where = torch.device(device)
        return self.guards.allocate(out, f"a buffer of shape {list(out.shape)} that it allocates", device=where)


def _can_be_guarded(out: Any, on_meta: bool = False) -> bool:
    """Whether a new tensor is one that can be guarded."""
    if type(out) is not torch.Tensor or out.numel() == 0 or out.layout is not torch.strided:
        return False
    return on_meta or not (out.device.type == "meta" or out.is_pinned())
