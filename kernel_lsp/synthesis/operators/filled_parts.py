"""Tensors that forward fills part by part with numbers, as the regions that a mask of shifted windows has.

Written step by step, each element would go through all the steps. What such a tensor holds is known before any input is, so
it is a concatenation of blocks that hold one number each, whatever the steps were.
"""

from __future__ import annotations

from typing import Any

import sympy
import torch
from torch.export import ExportedProgram

from ..graph.build import Build, NotLowered
from ..graph.value import Value
from .filling import full

_ATEN = torch.ops.aten
_STEPS = frozenset([_ATEN.slice_scatter.default, _ATEN.select_scatter.default])
#: operators that put numbers into tensors and move them, and compute nothing: their result is the same on every device
_MOVES = _STEPS | {
    *(_ATEN.zeros.default, _ATEN.ones.default, _ATEN.full.default),
    *(_ATEN.zeros_like.default, _ATEN.ones_like.default, _ATEN.full_like.default),
    *(_ATEN.fill.Scalar, _ATEN.fill.Tensor, _ATEN.copy.default, _ATEN.clone.default, _ATEN.lift_fresh_copy.default),
    *(_ATEN.slice.Tensor, _ATEN.select.int, _ATEN.expand.default, _ATEN.unsqueeze.default, _ATEN.squeeze.dim),
}
#: elements of a tensor beyond which it is not looked at
_MOST_ELEMENTS = 1 << 18
#: blocks beyond which a tensor is written step by step
_MOST_BLOCKS = 64
#: integers with the bits of numbers of so many bytes
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def in_blocks(exported: ExportedProgram) -> dict[Any, Value]:
    """The nodes whose tensors are filled in steps and of few blocks, with their values: those that more than the next step reads."""
    if all(node.target not in _STEPS for node in exported.graph.nodes):
        return {}
    known: dict[Any, torch.Tensor] = {}
    made: dict[Any, Value] = {}
    constants = exported.graph_signature.inputs_to_lifted_tensor_constants
    for node in exported.graph.nodes:
        if node.op == "placeholder":
            constant = exported.constants.get(constants.get(node.name, ""))
            if isinstance(constant, torch.Tensor) and not constant.dim() and "lifted_tensor" in constants[node.name]:
                known[node] = constant.cpu()
        elif node.target in _MOVES and all(source in known for source in node.all_input_nodes) and _is_small(node):
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), known.__getitem__)
            known[node] = node.target(*args, **{**kwargs, **({"device": "cpu"} if "device" in kwargs else {})})
    for node, tensor in known.items():
        if node.target in _STEPS and any(user not in known for user in node.users):
            try:
                made[node] = blocks(tensor)
            except NotLowered:
                continue
    return made


def _is_small(node: Any) -> bool:
    fake = node.meta.get("val")
    if not isinstance(fake, torch.Tensor) or fake.dtype.is_complex:
        return False
    return all(isinstance(n, int) for n in fake.shape) and 0 < fake.numel() <= _MOST_ELEMENTS


def blocks(tensor: torch.Tensor) -> Value:
    """A value with the tensor's elements, concatenated of blocks that hold one number.

    Raises:
        NotLowered: there would be too many.
    """
    # By their bits -0.0 is another number than 0.0, and NaN is itself.
    bits = tensor.contiguous().view(_BITS[tensor.element_size()])
    left = [_MOST_BLOCKS]

    def block(start: tuple[int, ...], sizes: tuple[int, ...], dim: int) -> Value:
        """That of ``sizes`` from ``start``, in the dimensions before ``dim`` all the same."""
        if dim == len(sizes):
            left[0] -= 1
            if left[0] < 0:
                raise NotLowered("a tensor of many numbers")
            return full(shape=tuple(map(sympy.Integer, sizes)), out=tensor.dtype, fill=tensor[start].item())
        part = bits[tuple(slice(begin, begin + size) for begin, size in zip(start, sizes, strict=True))]
        lines = part.movedim(dim, 0).flatten(1) if part.dim() > 1 else part.unsqueeze(1)
        changes = [*((lines[1:] != lines[:-1]).any(1).nonzero().flatten() + 1).tolist()]
        if len(changes) >= _MOST_BLOCKS:
            raise NotLowered("a tensor of many numbers")
        pieces = [
            block(_with(start, dim, start[dim] + first), _with(sizes, dim, last - first), dim + 1)
            for first, last in zip([0, *changes], [*changes, sizes[dim]], strict=True)
        ]
        shape = tuple(map(sympy.Integer, sizes))
        return pieces[0] if len(pieces) == 1 else Build.concat(tuple(pieces), dim, shape, tensor.dtype)

    return block((0,) * tensor.dim(), tuple(tensor.shape), 0)


def _with(numbers: tuple[int, ...], place: int, number: int) -> tuple[int, ...]:
    return (*numbers[:place], number, *numbers[place + 1 :])
