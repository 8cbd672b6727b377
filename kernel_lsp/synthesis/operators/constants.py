"""Tensors that forward makes from Python data (``torch.tensor([1, 2, 4])``, ``x[:, [0, 2]]``): their elements are written in the kernel."""

from __future__ import annotations

import itertools
from typing import Any

import sympy
import torch

from ..graph.build import Build, NotLowered, Operand
from ..graph.value import Value

#: elements beyond which a choice between numbers takes longer than to read them
_MOST = 16


def as_tensor(found: Any, node: Any) -> Any:
    """``found``, which an exported node came to, as a value where it is a number and the node a tensor.

    Lowerings take the number of a constant of one element. What torch is given, and what forward returns, has to be a tensor.
    """
    fake = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    if not isinstance(found, bool | int | float) or not isinstance(fake, torch.Tensor):
        return found
    constant = Build.pointwise("constant", found, dtype=fake.dtype)
    return Build.expand(constant, tuple(map(sympy.Integer, fake.shape))) if fake.dim() else constant


def written(tensor: torch.Tensor) -> Value:
    """A value with the tensor's elements, of its shape and dtype.

    Raises:
        NotLowered: they are too many and no arithmetic progression, or none.
    """
    numbers = tensor.flatten().tolist()
    if not numbers:
        raise NotLowered("a tensor without numbers")
    shape = tuple(map(sympy.Integer, tensor.shape))
    place = Build.iota((sympy.Integer(len(numbers)),), 0, torch.int32, "position")
    steps = {after - before for before, after in itertools.pairwise(numbers)}
    whole = not tensor.is_floating_point() and tensor.dtype != torch.bool
    if len(set(map(repr, numbers))) == 1:
        value = Build.pointwise("constant", numbers[0], dtype=tensor.dtype)
        return Build.expand(value, shape)
    if whole and len(steps) == 1:
        value = Build.cast(place, tensor.dtype)
        for function, number, neutral in (("mul", steps.pop(), 1), ("add", numbers[0], 0)):
            value = value if number == neutral else Build.pointwise(function, value, number, dtype=tensor.dtype)
    elif len(numbers) <= _MOST:
        *others, last = numbers
        chosen: Operand = last
        for i, number in reversed([*enumerate(others)]):
            chosen = Build.pointwise("where", Build.comparison("eq", place, i), number, chosen, dtype=tensor.dtype)
        assert isinstance(chosen, Value)
        value = chosen
    else:
        raise NotLowered("a tensor of many numbers")
    return value if value.shape == shape else Build.reshape(value, shape)
