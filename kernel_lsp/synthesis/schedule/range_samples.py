"""What a product's kernel notes of the range of an operand that it rounds itself, see ``graph.value.Sample``."""

from __future__ import annotations

import sympy
import torch

from ..graph.sizes import ONE, ZERO
from ..graph.value import Contract, Sample, Value
from ..kernel.arguments import Arguments
from ..kernel.build import Builder, loaded, masked, spread
from ..kernel.domain import Domain
from ..kernel.ir import Apply, Axis, Expr, FoldAxis, Load, Number, ProgramId, Ref, Variable, apply
from ..kernel.statements import Set, Statement, Store
from .elementwise import blocked, mask_of
from .program import fixed, set_all


def note_samples(
    samples: list[Value],
    op: Contract,
    at: dict[str, sympy.Expr],
    depth: list[sympy.Symbol],
    axes: list[Axis],
    total: Ref,
    rows: Axis,
    cols: Axis,
    blocks: dict[str, Variable],
    ends: dict[str, Expr],
    arguments: Arguments,
    domain: Domain,
    stored: set[Value],
    earlier: list[Statement],
) -> list[Statement]:
    """The statements that look at the sums in ``total``, a tile of ``rows`` and ``cols``, and at some elements: of the left operand for the first sample, of the right one for the second.

    Each program takes another place of the sum. They belong before the stores: after them the sums would stay in registers for longer.
    ``at``: the index of each of the product's letters; ``depth``: the summed atoms; ``axes``: those that the program's place gives; ``blocks``: how many
    rows and columns a tile has; ``earlier``: the statements before.
    """
    zero: Expr = Apply("mul", (total, Number(0.0)), torch.float32)  # NaN where a sum is not finite
    for place, axis in ((1, cols), (0, rows)):
        zero = FoldAxis("sum", zero, axis, place, False, False, torch.float32)
    finite = Ref(arguments.variable("finite"))
    found: list[Statement] = []
    sides = (("rows", "row_block", "M", "column"), ("cols", "col_block", "N", "row"))
    for sample, side, (name, block, size, other), letters in zip(
        samples, (rows, cols), sides, (op.left_axes, op.right_axes), strict=False
    ):
        assert isinstance(sample.op, Sample)
        operand = sample.op.operand
        some, one = Axis(fixed(f"some_{name}"), side.atoms, "tile"), Axis(fixed(other), depth, "grid")
        found += set_all(
            (some.variable, blocked(Ref(fixed(block)), blocks[size], some)),
            mask_of(some, "some_mask", ends[size]),
            (one.variable, apply("mod_int", ProgramId(0), ends["K"])),
        )
        builder = Builder(domain, [*axes, one, some], arguments, stored, {})
        builder.before, builder.beside = loaded([*earlier, *found]), "sample"
        letters = letters.replace(op.planes, "") if op.planes else letters
        index = tuple(ZERO if n == ONE else at[x] for x, n in zip(letters, operand.shape, strict=True))
        builder.count(operand, index)
        elements = spread(builder.value(operand, index), some)
        if elements.pad != 0:
            assert some.mask is not None
            elements = masked(elements, some.mask, 0.0, torch.float32)
        magnitude = FoldAxis("max", Apply("abs", (elements,), torch.float32), some, 0, False, False, torch.float32)
        peak = arguments.variable("peak")
        pointer = arguments.outputs[sample]
        known = Load(pointer, Number(0), (), 0.0, torch.float32)
        more = apply("gt", Ref(peak), known, dtype=torch.bool)  # most programs need not wait for the others
        found += builder.lines
        if sample is samples[0]:
            found.append(Set(finite.variable, apply("eq", zero, Number(0.0), dtype=torch.bool)))
        found += [
            Set(peak, Apply("where", (finite, magnitude, Number(float("inf"))), torch.float32)),
            Store(pointer, Number(0), Ref(peak), (more,), atomic=True),
        ]
    return found
