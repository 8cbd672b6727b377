"""Checks a graph for consistency after lowering and after the passes, so that a mistake is found in the stage that made it."""

from __future__ import annotations

from itertools import zip_longest

import sympy

from .loops import result_shape
from .lowered import Graph
from .map import dim, dims
from .order import topological
from .sizes import ONE
from .value import (
    Below,
    Concat,
    Contract,
    Fold,
    Gather,
    Given,
    Held,
    Input,
    Peak,
    Pointwise,
    Recur,
    Recurrence,
    Sample,
    Shape,
    Value,
    View,
    operands,
)


class Malformed(Exception):
    """A graph that would not mean anything: a bug of the synthesizer. The message says which value and why."""


def verify(graph: Graph) -> None:
    """Check a graph, which every pass has to leave whole.

    Raises:
        Malformed: unless

            - each input that is read is one of the graph's;
            - elementwise operands broadcast to their result, a view's map is from its operand's shape to its own, what is folded keeps its
              other sizes, pieces of a concatenation add up, and a contraction's letters have one size each;
            - what a recurrence begins with and is given has the shape of what stands for it in the body, which holds together itself, and the
              states after a step have the shape of those before it;
            - what is known of a rounded tensor (its peak, what stands for it out of range) belongs to the same product.
    """
    given = set(graph.inputs)
    sizes = _Sizes(graph.hints)
    for value in topological(graph.outputs):
        if isinstance(value.op, Input) and value not in given:
            raise Malformed(f"{named(value)} is read, and is no input of the graph")
        if (why := _wrong(value, sizes)) is not None:
            raise Malformed(f"{named(value)}: {why}")


class _Sizes:
    """Compares sizes for the example inputs: that two are equal cannot always be told from their symbols."""

    def __init__(self, hints: dict[sympy.Symbol, int]) -> None:
        self.hints = {symbol: sympy.Integer(n) for symbol, n in hints.items()}

    def same(self, a: sympy.Expr, b: sympy.Expr) -> bool:
        if a == b:
            return True
        difference = (a - b).xreplace(self.hints)
        return not difference.is_number or difference == 0

    def alike(self, a: Shape, b: Shape) -> bool:
        return len(a) == len(b) and all(self.same(n, m) for n, m in zip(a, b, strict=True))

    def broadcasts(self, shape: Shape, result: Shape) -> bool:
        aligned = zip(reversed(shape), reversed(result), strict=False)
        return len(shape) <= len(result) and all(n == ONE or self.same(n, m) for n, m in aligned)


def _wrong(value: Value, sizes: _Sizes) -> str | None:
    op = value.op
    if isinstance(op, Pointwise):
        bad = next((o for o in operands(value) if not sizes.broadcasts(o.shape, value.shape)), None)
        return None if bad is None else f"an operand of shape {bad.shape} does not broadcast to {value.shape}"
    if isinstance(op, View):
        if not sizes.alike(op.map.operand, op.operand.shape) or not sizes.alike(op.map.shape, value.shape):
            return f"its map is from {op.map.operand} to {op.map.shape}, it is from {op.operand.shape} to {value.shape}"
        if len(op.map.index) != len(op.map.operand):
            return f"its map has {len(op.map.index)} indices for {len(op.map.operand)} dimensions"
    elif isinstance(op, Fold):
        kept = ((a, b) for d, (a, b) in enumerate(zip_longest(op.operand.shape, value.shape)) if d not in op.dims)
        if not all(a is not None and b is not None and sizes.same(a, b) for a, b in kept):
            return f"{op.kind} over {op.dims} of {op.operand.shape} has not the shape {value.shape}"
    elif isinstance(op, Concat):
        total = sympy.expand(sum(v.shape[op.dim] for v in op.operands))
        if not sizes.same(total, value.shape[op.dim]):
            return f"its pieces come to {total} along dimension {op.dim}, not to {value.shape[op.dim]}"
    elif isinstance(op, Contract):
        return _wrong_contraction(value, op, sizes)
    elif isinstance(op, Gather) and op.dim >= len(op.table.shape):
        return f"it picks along dimension {op.dim} of {op.table.shape}"
    elif isinstance(op, Recur):
        if not sizes.alike(value.shape, result_shape(op)):
            return f"a result of shape {value.shape} where its recurrence gives {result_shape(op)}"
        return _wrong_recurrence(op.loop, sizes)
    elif isinstance(op, Peak | Sample) and value.shape != (ONE,):
        return "a peak is one number"
    return None


def _wrong_contraction(value: Value, op: Contract, sizes: _Sizes) -> str | None:
    for operand, axes in ((op.left, op.left_axes), (op.right, op.right_axes)):
        if len(axes) != len(operand.shape):
            return f"{axes} names {len(axes)} axes of {operand.shape}"
        for letter, n in zip(axes, operand.shape, strict=True):
            if n != ONE and not sizes.same(n, op.size(letter)):
                return f"axis {letter} has the sizes {n} and {op.size(letter)}"
    if not sizes.alike(tuple(op.size(letter) for letter in op.axes), value.shape):
        return f"{op.axes} has not the shape {value.shape}"
    if not set(op.outer) <= set(op.summed):
        return f"{op.outer} is gone through, and not all of it is summed"
    if not {letter for letter, _ in op.lengths} <= set(op.outer):
        return "a letter that has fewer places for some results is not gone through place by place"
    batch = {dim(d) for d, letter in enumerate(op.axes) if op.varies(letter) == (True, True)}
    if any(length.free_symbols & {*dims(len(op.axes))} - batch for _, length in op.lengths):
        return "a letter has fewer places for some of a program's results"
    if op.exact is not None and any(not isinstance(peak.op, Peak | Sample) for peak in op.exact.peaks):
        return "its range is told by what is no peak"
    return None


def _wrong_recurrence(loop: Recurrence, sizes: _Sizes) -> str | None:
    several = () if loop.members is None else (sympy.Integer(loop.members),)
    for held, first, after in zip(loop.held, loop.first, loop.next, strict=True):
        if not sizes.alike(first.shape, (*several, *held.shape)) or not sizes.alike(after.shape, held.shape):
            return f"a state of shape {held.shape} begins as {first.shape} and becomes {after.shape}"
    for part, given in zip(loop.parts, loop.given, strict=True):
        along = part.op.along if isinstance(part.op, Given) else None
        of_member = given.shape[len(several) :]
        place = of_member if along is None else (*of_member[:along], *of_member[along + 1 :])
        if not sizes.alike(place, part.shape):
            return f"what its body has as {part.shape} is given as {given.shape}"
    known = {*loop.held, *loop.parts, loop.below}
    for value in topological(list(loop.next)):
        if isinstance(value.op, Held | Given | Below) and value not in known:
            return "its body reads a value that is neither one of its states nor given"
        if (why := _wrong(value, sizes)) is not None:
            return f"{named(value)} in its body: {why}"
    return None


def named(value: Value) -> str:
    """What a message calls the value: its name, the exported node's, or the kind of its operation."""
    return value.name or value.node or type(value.op).__name__
