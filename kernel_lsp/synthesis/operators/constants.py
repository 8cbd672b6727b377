"""Tensors that forward makes from Python data (``torch.tensor([1, 2, 4])``, ``x[:, [0, 2]]``): their elements are written in the kernel."""

from __future__ import annotations

import itertools

import sympy
import torch

from ..graph.build import Build, NotLowered, Operand
from ..graph.value import Value

#: elements beyond which a choice between numbers takes longer than to read them
_MOST = 16


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
