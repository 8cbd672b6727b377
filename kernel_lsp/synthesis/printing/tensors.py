"""Python for shapes, views and pieces of tensors in the host function."""

from __future__ import annotations

from collections.abc import Mapping

import sympy

from kernel_lsp.size_text import python, unwrapped

from ..graph.map import dim
from ..graph.sizes import ZERO
from ..graph.value import Concat, Shape, Value, View
from ..kernel.execution_plan import Kernel


def listed(items: list[str]) -> str:
    """A tuple."""
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def shape(sizes_of: Shape, sizes: dict[sympy.Symbol, str]) -> str:
    """A shape; ``sizes``: Python for each size symbol."""
    return listed([unwrapped(n, sizes) for n in sizes_of])


def piece(kernel: Kernel, variables: Mapping[Value, str], sizes: dict[sympy.Symbol, str]) -> str:
    """What a kernel stores of a concatenation: ``out[:, 64:128]``."""
    whole, stored = kernel.whole, kernel.results[0]
    assert whole is not None and isinstance(whole.op, Concat)
    op, place = whole.op, whole.op.operands.index(stored)
    ends = [sum((one.shape[op.dim] for one in op.operands[:n]), ZERO) for n in (place, place + 1)]
    begin, end = (unwrapped(sympy.expand(end), sizes) for end in ends)
    bounds = f"{'' if place == 0 else begin}:{'' if place == len(op.operands) - 1 else end}"
    return f"{variables[whole]}[{', '.join([*[':'] * op.dim, bounds])}]"


def view(value: Value, sizes: dict[sympy.Symbol, str]) -> str:
    """What comes after a tensor's name for the view ``value`` of it."""
    op = value.op
    assert isinstance(op, View)
    if op.name == "permute":
        return f".permute({', '.join(map(str, op.map.permutation or ())) or '()'})"
    if op.name == "slice":
        start, steps = op.map.index[0].subs(dim(0), 0), value.shape[0]
        return f"[{start}:]" if start else f"[:{python(steps, sizes)}]"
    if op.name == "select":
        return f"[{op.map.index[0]}]"
    if op.name == "expand":
        return f".expand{shape(value.shape, sizes)}" if value.shape else ".expand(())"
    extents = [python(n, sizes) for n in value.shape]
    return f".view({', '.join(extents) or '()'})"
