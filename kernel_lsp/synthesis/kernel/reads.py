"""What a kernel reads of what has memory: the inputs, and what the steps before it stored."""

from __future__ import annotations

from collections.abc import Collection

from ..graph.functions import FUNCTIONS
from ..graph.value import Pointwise, Sample, Scan, Value, operands
from .execution_plan import Kernel


def read(kernel: Kernel, stored: set[Value]) -> list[Value]:
    """All of it: what the statements load, what a product multiplies, and what is asked before a product is computed again."""
    result = dict.fromkeys(kernel.leaves)
    if kernel.chunked is not None and isinstance(kernel.chunked.op, Scan) and kernel.chunked.op.start is not None:
        result[kernel.chunked.op.start] = None
    result |= dict.fromkeys(multiplied(kernel, stored))
    for peak in kernel.peaks:
        if isinstance(peak.op, Sample):
            result |= dict.fromkeys(beneath([peak.op.operand], stored))
    if kernel.exact:
        result |= dict.fromkeys(kernel.stands_for.peaks)
    return list(result)


def multiplied(kernel: Kernel, stored: set[Value]) -> list[Value]:
    """What the operands of its product are computed from; they are read elsewhere than at the elements that it stores.

    What lies between two products of a chain it computes itself from what it loads, whether or not another kernel stores it, too.
    """
    if kernel.contract is None:
        return []
    if (chain := kernel.chain) is not None:
        operands_of_both = [chain.product.left, chain.product.right, kernel.product.right]
        return list(dict.fromkeys([*kernel.leaves, *beneath(operands_of_both, stored)]))
    return beneath([kernel.product.left, kernel.product.right], stored)


def calls_library(kernel: Kernel) -> bool:
    """Whether what it computes of its product, or of what it loads, calls libdevice: tens of instructions and registers an element."""
    functions = {
        v.op.function for v in computed(kernel, {*kernel.leaves, kernel.contract}) if isinstance(v.op, Pointwise)
    }
    return any(FUNCTIONS[name].library for name in functions if name in FUNCTIONS)  # a constant is none of them


def computed(kernel: Kernel, known: Collection[Value | None]) -> set[Value]:
    """What it computes of what is ``known`` to have been loaded or computed before."""
    found: set[Value] = set()
    stack = [v for v, _ in kernel.stores]
    while stack:
        v = stack.pop()
        if v not in found and v not in known:
            found.add(v)
            stack.extend(operands(v))
    return found


def beneath(roots: list[Value], stored: set[Value]) -> list[Value]:
    """The stored values that ``roots`` are computed from."""
    found: dict[Value, None] = {}
    seen: set[Value] = set()
    stack = roots[::-1]
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        if v in stored:
            found[v] = None
        else:
            stack.extend(operands(v)[::-1])
    return list(found)
