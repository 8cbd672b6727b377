"""How tensors get from the referee to the trial and back.

The referee lends the trial a block of memory, of the GPU or of the host, with the inputs, each between guards, and room
for as many bytes of results as it expects. The trial says which dtype and shape its results have; only what is of the
expected size is looked at. What happened to the inputs and their guards the referee sees for itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from kernel_lsp.validation import channel, guards, memory
from kernel_lsp.validation.chunks import identical
from kernel_lsp.validation.device_memory import Block, Lent, Unsupported

_ALIGNED = 256
#: tensors of one answer
MOST_TENSORS = 10_000


@dataclass
class Answer:
    """What came back: the message, its tree of tensors, what was said of each tensor, and what the referee saw itself."""

    message: dict[str, Any]
    tree: Any
    metas: list[dict[str, Any]]
    mutated: list[int] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    seconds: float = 0.0  # that it took, by the referee's clock


def _padded(count: int) -> int:
    return -(-count // _ALIGNED) * _ALIGNED


def _strided(data: torch.Tensor, offset: int, like: Any) -> torch.Tensor:
    """A tensor with the dtype, shape and strides of ``like`` at a byte offset of lent memory."""
    dtype, shape, stride = like
    if 0 in shape:
        return torch.empty_strided(shape, stride, dtype=dtype, device=data.device)
    tensor = torch.empty(0, dtype=dtype, device=data.device)
    return tensor.set_(data.untyped_storage(), offset // dtype.itemsize, shape, stride)


class Loan:
    """A message's tensors in a block of lent memory, and room for ``expected`` results."""

    def __init__(self, tree: Any, expected: list[torch.Tensor], names: list[str], device: torch.device) -> None:
        self.inputs: list[torch.Tensor] = []
        self.described = channel.describe(tree, self.inputs)
        self.names = [*names, *["an argument"] * (len(self.inputs) - len(names))]
        self.expected = expected
        offset = 0
        self.places: list[int] = []
        for tensor in self.inputs:
            self.places.append(offset + guards.GUARD)
            offset += guards.GUARD + _padded(memory.span(tensor)) + guards.GUARD
        self.rooms: list[tuple[int, int]] = []
        for tensor in expected:
            count = tensor.numel() * tensor.element_size()
            self.rooms.append((offset, count))
            offset += _padded(count)
        memory.release()  # the trial needs it now
        try:
            self.block = Block(max(offset, _ALIGNED), device)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()  # also the little that ``release`` keeps
            self.block = Block(max(offset, _ALIGNED), device)
        self._fill()

    def _fill(self) -> None:
        data = self.block.data
        for tensor, place in zip(self.inputs, self.places, strict=True):
            end = place + _padded(memory.span(tensor)) + guards.GUARD
            if tensor.is_contiguous():
                data[place - guards.GUARD : place].fill_(guards.INPUT_GUARD)
                data[place + memory.span(tensor) : end].fill_(guards.INPUT_GUARD)
            else:  # the gaps between its elements, too
                data[place - guards.GUARD : end].fill_(guards.INPUT_GUARD)
            if tensor.numel():
                once, target = _once(tensor), _once(self._placed(tensor, place))
                target.copy_(once)
        for begin, count in self.rooms:
            # Fresh memory may hold what this process freed, the right answer among it.
            data[begin : begin + count].fill_(guards.FRESH)
        memory.wait([data])  # nothing orders the trial's work behind what this process has begun on the device

    def _placed(self, tensor: torch.Tensor, place: int) -> torch.Tensor:
        return _strided(self.block.data, place, (tensor.dtype, tensor.shape, tensor.stride()))

    def message(self) -> dict[str, Any]:
        """What the trial needs in order to open it."""
        slots = [
            [place, str(t.dtype).removeprefix("torch."), list(t.shape), list(t.stride())]
            for t, place in zip(self.inputs, self.places, strict=True)
        ]
        return {"block": self.block.key, "tree": self.described, "slots": slots, "rooms": self.rooms}

    def results(self, described: Any, metas: list[dict[str, Any]]) -> Any:
        """The tree of results. What is not of the expected size has no values, only its claimed shape and dtype.

        Raises:
            ValueError: the description is malformed.
        """
        tensors = []
        if not isinstance(metas, list) or len(metas) > MOST_TENSORS:
            raise ValueError("a list of tensors that is none, or too long")
        for i, meta in enumerate(metas):
            dtype = getattr(torch, str(meta["dtype"]), None)
            shape = channel.sizes(meta["shape"])
            if not isinstance(dtype, torch.dtype):
                raise ValueError("a tensor of no known dtype")
            like = self.expected[i] if i < len(self.expected) else None
            fits = like is not None and dtype is like.dtype and shape == list(like.shape)
            if fits and not meta.get("here"):
                raise ValueError(f"a result of shape {shape} that fits was not handed over")
            if like is None or not fits:
                tensors.append(torch.empty(shape, dtype=dtype, device="meta"))
            elif like.numel() == 0:
                tensors.append(torch.empty(shape, dtype=dtype, device=self.block.device))
            else:
                begin, count = self.rooms[i]
                tensors.append(self.block.data[begin : begin + count].view(dtype).reshape(shape))
        return channel.rebuild(described, tensors)

    def mutated(self) -> list[int]:
        """Which inputs the trial changed."""
        return [
            i
            for i, (tensor, place) in enumerate(zip(self.inputs, self.places, strict=True))
            if tensor.numel() and not identical(_once(tensor), _once(self._placed(tensor, place)))
        ]

    def damaged(self) -> list[str]:
        """A sentence for every guard of an input that was written to."""
        found = []
        for tensor, place, name in zip(self.inputs, self.places, self.names, strict=True):
            span = memory.span(tensor)
            end = place + _padded(span) + guards.GUARD
            found += guards.written_to(
                self.block.data[place - guards.GUARD : place],
                self.block.data[place + span : end],
                guards.INPUT_GUARD,
                name,
            )
        return found

    def free(self) -> None:
        """Give the lent memory back."""
        self.block.free()


def _once(tensor: torch.Tensor) -> torch.Tensor:
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[dim] > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def supported(device: torch.device) -> bool:
    """Whether memory of the device can be lent to another process here."""
    if device.type != "cuda":
        return True
    try:
        Block(_ALIGNED, device).free()
    except Unsupported:
        return False
    return True


# the trial's side


class Opened:
    """A message's tensors, in memory that was lent; usable until ``close``."""

    def __init__(self, given: dict[str, Any], file: int | None, device: torch.device) -> None:
        self.lent = Lent(given["block"], file, device)
        self.rooms = given["rooms"]
        tensors = [
            _strided(self.lent.data, place, (getattr(torch, dtype), shape, stride))
            for place, dtype, shape, stride in given["slots"]
        ]
        self.tree = channel.rebuild(given["tree"], tensors)

    def put(self, result: Any) -> dict[str, Any]:
        """Copy the results that fit where they belong; what to say of them."""
        tensors: list[torch.Tensor] = []
        described = channel.describe(result, tensors)
        metas = []
        for i, tensor in enumerate(tensors):
            here = i < len(self.rooms) and tensor.numel() * tensor.element_size() == self.rooms[i][1]
            if here and tensor.numel():
                begin, count = self.rooms[i]
                room = self.lent.data[begin : begin + count].view(tensor.dtype).reshape(tensor.shape)
                if (
                    tensor.dtype is torch.bool
                ):  # byte for byte: a copy of bools makes a one of each byte that is not zero
                    room.view(torch.uint8).copy_(tensor.view(torch.uint8))
                else:
                    room.copy_(tensor)
            metas.append(
                {
                    "dtype": str(tensor.dtype).removeprefix("torch."),
                    "shape": list(tensor.shape),
                    "stride": list(tensor.stride()),
                    "device": tensor.device.type,
                    "here": here,
                }
            )
        return {"described": described, "metas": metas}

    def close(self) -> None:
        """Drop the tensors and the memory that they lie in."""
        self.tree = None
        self.lent.close()


def expected_of(tree: Any) -> list[torch.Tensor]:
    """The tensors of a tree as ``channel.describe`` orders them."""
    tensors: list[torch.Tensor] = []
    channel.describe(tree, tensors)
    return tensors
