"""Checks that indices lie in their table, written before the launch of the kernel that reads by them.

Eager raises an IndexError where an index is out of range; a kernel returns what lies there. With ``bounds = "check"`` the
host function looks at the indices first. Every operator that is lowered to a ``Gather`` takes 0 to size - 1 and
nothing negative (embedding, gather, index_select, the targets of nll_loss and cross_entropy); indexing that counts
negative numbers from the end stays with torch, which checks it itself.
"""

from __future__ import annotations

from typing import Any

import sympy

from kernel_lsp.size_text import python

from ..graph.division import is_size, nonnegative, terms
from ..graph.lowered import Graph
from ..graph.order import topological
from ..graph.sizes import ONE, ZERO, same
from ..graph.value import Gather, Input, Iota, Pointwise, Scalar, TorchCall, Value, View, operands
from ..kernel.execution_plan import Kernel

#: The function of the generated file that looks at a tensor of indices.
HELPER = '''def _check_indices(name, indices, size):
    """Raise IndexError unless all indices are from 0 to size - 1, as eager does on the CPU.

    One reduction over the indices on their device, and a wait for its result: it synchronises the
    host with the GPU, and cannot be captured in a CUDA graph.
    """
    if indices.numel() == 0:
        return
    least, most = torch.stack(torch.aminmax(indices)).tolist()
    if least < 0 or most >= size:
        found = least if least < 0 else most
        raise IndexError(f"{name} holds the index {found}, which is out of range for size {size}")'''


def computed(graph: Graph) -> set[Value]:
    """Indices that are computed, and have to be in memory before the kernel that reads by them."""
    found: set[Value] = set()
    for value in topological(graph.outputs):
        if isinstance(value.op, Gather) and _span(value.op.index) is None:
            missing = _not_in_memory(value.op.index)
            if missing is not None:
                missing.name = missing.name or "indices"
                found.add(missing)
    return found


def statements(
    step: Kernel, variables: dict[Value, str], texts: dict[sympy.Symbol, str], written: set[str]
) -> list[str]:
    """What the host function checks before ``step`` is launched, but for what is in ``written``; adds to that.

    ``variables``: the values that are in memory by then; ``texts``: Python for each size symbol.
    """
    lines = []
    for gather in _gathers(step, variables):
        op = gather.op
        assert isinstance(op, Gather)
        size = op.table.shape[op.dim]
        span = _span(op.index)
        if span is None:
            name = variables[_base(op.index)]
            line = f'_check_indices("{name}", {_text(op.index, variables, texts)}, {python(size, texts)})'
            new = [line]
        elif _inside(span, size):
            continue
        else:
            needed, there = python(sympy.expand(span[1] + 1), texts), python(size, texts)
            line = f"if {needed} > {there}:"
            said = f"there are {there if size.is_number else f'{{{there}}}'} positions, {{{needed}}} are asked for"
            new = [line, f'    raise IndexError(f"{said}")']
        if line not in written:
            written.add(line)
            lines += new
    return lines


def _gathers(step: Kernel, variables: dict[Value, str]) -> list[Value]:
    """What the kernel reads by an index, operands first."""
    found: list[Value] = []
    seen: set[Value] = set()

    def visit(value: Value) -> None:
        if value in seen or value in variables:
            return
        seen.add(value)
        for operand in operands(value):
            visit(operand)
        if isinstance(value.op, Gather):
            found.append(value)

    for value, _ in step.stores:
        visit(value)
    return found


def _counted(value: Value) -> tuple[Value, Any] | None:
    """(targets, the one that a loss ignores) of ``where(targets != ignored, targets, 0)``; None for anything else."""
    op = value.op
    if not (isinstance(op, Pointwise) and op.function == "where"):
        return None
    condition, kept, otherwise = op.operands
    asked = condition.op if isinstance(condition, Value) else None
    if isinstance(asked, Pointwise) and asked.function == "ne" and asked.operands[0] is kept and otherwise == 0:
        return (kept, asked.operands[1]) if isinstance(asked.operands[1], int) else None
    return None


def _widened(value: Value) -> Value | None:
    """The integers that ``value`` is in a dtype at least as wide; None where it is something else."""
    op = value.op
    if isinstance(op, Pointwise) and (op.function == "identity" or op.function.startswith("to_int")):
        operand = op.operands[0]
        if isinstance(operand, Value) and not operand.dtype.is_floating_point:
            return operand if operand.dtype.itemsize <= value.dtype.itemsize else None
    return None


def _not_in_memory(index: Value) -> Value | None:
    """The value that has to be stored for ``_text`` to have something to begin with; None where there is something."""
    if isinstance(index.op, Input | TorchCall):
        return None
    if isinstance(index.op, View):
        return _not_in_memory(index.op.operand) if _chosen(index.op, {}) is not None else index
    inner = _counted(index)
    narrower = _widened(index)
    if inner is not None:
        return _not_in_memory(inner[0])
    return _not_in_memory(narrower) if narrower is not None else index


def _chosen(view: View, texts: dict[sympy.Symbol, str]) -> str | None:
    """Python's subscript for the elements that a view takes, in any order: empty for all of them, None for another kind."""
    map = view.map
    if map.guard:
        return None
    if map.inverse is not None:
        return ""
    parts: list[str] = []
    free = set(map.ranges)
    for e, n in zip(map.index, map.operand, strict=True):
        if is_size(e):
            parts.append(python(e, texts))
            continue
        ((step, dim),) = moving if len(moving := [(c, f) for c, f in terms(e) if f != ONE]) == 1 else [(ZERO, ZERO)]
        if dim not in free or not nonnegative(step - 1):
            return None  # as in a diagonal, whose dimensions go together
        free.remove(dim)
        start = sympy.expand(e - step * dim)
        stop = sympy.expand(start + step * (map.ranges[dim] - 1) + 1)
        begin = "" if start == ZERO else python(start, texts)
        end = "" if same(stop, n) else python(stop, texts)
        parts.append(f"{begin}:{end}{'' if step == ONE else f':{python(step, texts)}'}")
    while parts and parts[-1] == ":":
        parts.pop()
    return f"[{', '.join(parts)}]" if parts else ""


def _base(index: Value) -> Value:
    """The value in memory that the indices are taken from."""
    missing = _not_in_memory(index)
    if missing is not None:
        return missing
    while not isinstance(index.op, Input | TorchCall):
        inner = _counted(index)
        index = inner[0] if inner is not None else operands(index)[0]
    return index


def _text(index: Value, variables: dict[Value, str], texts: dict[sympy.Symbol, str]) -> str:
    """Python for the indices that are read, in any order: views that only rearrange them are left out."""
    if index in variables:
        return variables[index]
    op = index.op
    if isinstance(op, View):
        chosen = _chosen(op, texts)
        assert chosen is not None
        return _text(op.operand, variables, texts) + chosen
    counted = _counted(index)
    if counted is not None:
        text = _text(counted[0], variables, texts)
        return f"{text}.masked_fill({text} == {counted[1]}, 0)"
    return _text(operands(index)[0], variables, texts)


def _span(index: Value) -> tuple[sympy.Expr, sympy.Expr] | None:
    """(least, greatest) of what follows from sizes alone (positions, constants); None where tensors decide."""
    op = index.op
    if isinstance(op, View):
        return None if op.map.guard else _span(op.operand)
    if isinstance(op, Iota):
        ends = (op.start, sympy.expand(op.start + op.step * (index.shape[op.dim] - 1)))
        return ends if op.step.is_number and op.step > 0 else None
    if not isinstance(op, Pointwise):
        return None
    if op.function == "constant":
        return (sympy.sympify(op.operands[0]),) * 2
    if op.function == "identity" or op.function.startswith("to_int"):
        return _span(op.operands[0]) if isinstance(op.operands[0], Value) else None
    if op.function == "minimum_int" and (held := _held(op)) is not None:
        return held
    numbers = [v for v in op.operands if isinstance(v, int)]
    values = [v for v in op.operands if isinstance(v, Value)]
    if op.function in ("add", "mul") and len(numbers) == len(values) == 1 and numbers[0] >= 0:
        inner = _span(values[0])
        if inner is None:
            return None
        least, most = (end + numbers[0] if op.function == "add" else end * numbers[0] for end in inner)
        return sympy.expand(least), sympy.expand(most)
    return None


def _held(op: Pointwise) -> tuple[sympy.Expr, sympy.Expr] | None:
    """(least, greatest) of min(max(a value, a number), a size)."""
    larger, most = op.operands
    if not (isinstance(larger, Value) and isinstance(larger.op, Pointwise) and larger.op.function == "maximum_int"):
        return None
    least = larger.op.operands[1]
    if not (isinstance(least, int) and isinstance(most, int | Scalar)):
        return None
    return sympy.Integer(least), most.expr if isinstance(most, Scalar) else sympy.Integer(most)


def _inside(span: tuple[sympy.Expr, sympy.Expr], size: sympy.Expr) -> bool:
    """Whether a span lies in 0 to size - 1 whatever the sizes are."""
    least, room = span[0], sympy.expand(size - 1 - span[1])
    return bool(least.is_number and least >= ZERO and room.is_number and room >= ZERO)
