"""Which results share memory with what: with an input, with each other."""

from __future__ import annotations

from collections import deque

import torch

from kernel_lsp.validation.trees import PLAIN

#: results of earlier calls that are remembered, and bytes of all of them
_MOST_CALLS, _MOST_BYTES = 32, 64 << 20
#: elements up to which it is looked at exactly which bytes two tensors have in common
_EXACTLY = 1 << 16


def shared(outputs: list[torch.Tensor], inputs: list[torch.Tensor]) -> list[list[int]]:
    """Pairs (output, other) that share an element's memory; ``other`` counts the inputs first, then the outputs before this one."""
    others = [*inputs, *outputs]
    return [
        [i, j]
        for i, out in enumerate(outputs)
        for j, other in enumerate(others)
        if j < len(inputs) + i and overlap(out, other)
    ]


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors have an element's memory in common.

    Of tensors with more than 65536 elements, and of those that begin at one address, it is enough that their spans overlap.
    """
    if type(a) not in PLAIN or type(b) not in PLAIN or a.numel() == 0 or b.numel() == 0:
        return False
    if a.device != b.device or a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr():
        return False
    (low, high), (other_low, other_high) = _span(a), _span(b)
    if high <= other_low or other_high <= low:
        return False
    if max(a.numel(), b.numel()) > _EXACTLY or low == other_low:
        return True
    return not _places(a).isdisjoint(_places(b))


class Earlier:
    """Results of the last calls. While they are kept no allocator gives their memory away: a later result that lies there was written over an earlier one."""

    def __init__(self) -> None:
        self.calls: deque[list[torch.Tensor]] = deque()
        self.bytes = 0

    def shares(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor]) -> bool:
        """Whether a result lies in the memory of one of an earlier call, which is not that of an input of now."""
        return any(shared(outputs, one) and not shared(one, inputs) for one in self.calls)

    def add(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor]) -> None:
        """Remember the results of a call, but for those in the memory of its inputs; what is remembered is bounded."""
        own = [t.detach() for t in outputs if not any(overlap(t, one) for one in inputs)]
        self.calls.append(own)
        self.bytes += _bytes(own)
        while len(self.calls) > 1 and (len(self.calls) > _MOST_CALLS or self.bytes > _MOST_BYTES):
            self.bytes -= _bytes(self.calls.popleft())
        if self.bytes > _MOST_BYTES:
            self.calls.clear()
            self.bytes = 0


def _bytes(tensors: list[torch.Tensor]) -> int:
    """Of the memory that is held, which on a GPU is longer than the tensors for its guards."""
    kept = [t for t in tensors if type(t) is torch.Tensor and t.layout is torch.strided and t.device.type != "meta"]
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in kept}.values())


def _span(t: torch.Tensor) -> tuple[int, int]:
    reach = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))
    return t.data_ptr(), t.data_ptr() + reach * t.element_size()


def _places(t: torch.Tensor) -> set[int]:
    places = torch.zeros(1, dtype=torch.int64)
    for n, s in zip(t.shape, t.stride(), strict=True):
        places = (places.unsqueeze(-1) + torch.arange(n) * s).reshape(-1)
    return {int(p) * t.element_size() + t.data_ptr() for p in places.unique()}
