"""What a product's kernel notes of the range of an operand that it rounds itself, see ``graph.value.Sample``."""

from __future__ import annotations

import sympy
import torch

from ..graph.sizes import ONE, ZERO
from ..graph.value import Contract, Sample, Value
from ..kernel.arguments import Arguments
from ..kernel.build import Builder, loaded, masked, spread
from ..kernel.domain import Domain
from ..kernel.ir import Apply, Axis, Expr, FoldAxis, Load, Number, Ref, Variable, apply
from ..kernel.statements import Set, Statement, Store
from .elementwise import blocked, mask_of
from .program import fixed, set_all


def note_sample(
    sample: Value,
    op: Contract,
    at: dict[str, sympy.Expr],
    depth: list[sympy.Symbol],
    axes: list[Axis],
    total: Ref,
    rows: Axis,
    cols: Axis,
    block: Variable,
    ends: dict[str, Expr],
    arguments: Arguments,
    domain: Domain,
    stored: set[Value],
    earlier: list[Statement],
) -> list[Statement]:
    """The statements that look at a column of the left operand and at the sums in ``total``, a tile of ``rows`` and ``cols``.

    Each program takes another column. They belong before the stores: after them the sums would stay in registers for longer.
    ``at``: the index of each of the product's letters; ``depth``: the summed atoms; ``axes``: those that the program's place gives; ``block``: how many rows a tile has;
    ``earlier``: the statements before.
    """
    assert isinstance(sample.op, Sample)
    operand = sample.op.operand
    some, column = Axis(fixed("some_rows"), rows.atoms, "tile"), Axis(fixed("column"), depth, "grid")
    found: list[Statement] = set_all(
        (some.variable, blocked(Ref(fixed("row_block")), block, some)),
        mask_of(some, "some_mask", ends["M"]),
        (column.variable, apply("mod_int", Ref(fixed("tile")), ends["K"])),
    )
    builder = Builder(domain, [*axes, column, some], arguments, stored, {})
    builder.before, builder.beside = loaded(earlier), "sample"
    letters = op.left_axes.replace(op.planes, "") if op.planes else op.left_axes
    index = tuple(ZERO if n == ONE else at[x] for x, n in zip(letters, operand.shape, strict=True))
    builder.count(operand, index)
    some_elements = spread(builder.value(operand, index), some)
    if some_elements.pad != 0:
        assert some.mask is not None
        some_elements = masked(some_elements, some.mask, 0.0, torch.float32)
    magnitude = FoldAxis("max", Apply("abs", (some_elements,), torch.float32), some, 0, False, False, torch.float32)
    zero: Expr = Apply("mul", (total, Number(0.0)), torch.float32)  # NaN where a sum is not finite
    for place, axis in ((1, cols), (0, rows)):
        zero = FoldAxis("sum", zero, axis, place, False, False, torch.float32)
    finite, peak = arguments.variable("finite"), arguments.variable("peak")
    pointer = arguments.outputs[sample]
    known = Load(pointer, Number(0), (), 0.0, torch.float32)
    more = apply("gt", Ref(peak), known, dtype=torch.bool)  # most programs need not wait for the others
    found += [
        *builder.lines,
        Set(finite, apply("eq", zero, Number(0.0), dtype=torch.bool)),
        Set(peak, Apply("where", (Ref(finite), magnitude, Number(float("inf"))), torch.float32)),
        Store(pointer, Number(0), Ref(peak), (more,), atomic=True),
    ]
    return found
