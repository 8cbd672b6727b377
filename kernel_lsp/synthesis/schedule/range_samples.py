"""What a product's kernel notes of the range of an operand that it rounds itself, see ``graph.value.Sample``."""

from __future__ import annotations

import sympy
import torch

from ..graph.sizes import ONE, ZERO
from ..graph.value import Sample, Value
from ..kernel.build import Builder, loaded, masked, spread
from ..kernel.ir import Apply, Axis, Expr, FoldAxis, Load, Number, ProgramId, Ref, Variable, apply
from ..kernel.statements import Set, Statement, Store
from .elementwise import blocked, mask_of
from .operand_tiles import Parts, strides
from .program import fixed, set_all

#: An axis's place among a tile's dimensions, and how many there are; None: it is the only one.
Lane = tuple[int, int] | None


def note_samples(samples: list[Value], parts: Parts, at: dict[str, sympy.Expr], total: Ref) -> list[Statement]:
    """The statements that look at the sums in ``total``, the tile, and at some elements: of the left operand for the first sample, of the right one for the second.

    Each program takes another place of the sum. They belong before the stores: after them the sums would stay in registers for longer.
    ``at``: the index of each of the product's letters.
    """
    op, arguments = parts.op, parts.program.arguments
    found: list[Statement] = []
    finite = Ref(arguments.variable("finite"))
    told = Set(
        finite.variable, apply("eq", zero_if_finite(total, parts.rows, parts.cols), Number(0.0), dtype=torch.bool)
    )
    for sample, of, letters in zip(samples, ("rows", "cols"), (op.left_axes, op.right_axes), strict=False):
        assert isinstance(sample.op, Sample)
        letters = letters.replace(op.planes, "") if op.planes else letters
        before = [*parts.program.body, *found]
        statements, magnitude = largest_of_some(parts, sample.op.operand, letters, at, of, before)
        found += statements
        peak = arguments.variable("peak")
        pointer = arguments.outputs[sample]
        known = Load(pointer, Number(0), (), 0.0, torch.float32)
        more = apply("gt", Ref(peak), known, dtype=torch.bool)  # most programs need not wait for the others
        if sample is samples[0]:
            found.append(told)
        found += [
            Set(peak, Apply("where", (finite, magnitude, Number(float("inf"))), torch.float32)),
            Store(pointer, Number(0), Ref(peak), (more,), atomic=True),
        ]
    return found


def zero_if_finite(total: Ref, rows: Axis, cols: Axis) -> Expr:
    """0 where all sums of a tile [rows, cols] are finite, else NaN."""
    zero: Expr = Apply("mul", (total, Number(0.0)), torch.float32)
    for place, axis in ((1, cols), (0, rows)):
        zero = FoldAxis("sum", zero, axis, place, False, False, torch.float32)
    return zero


def largest_of_some(
    parts: Parts,
    operand: Value,
    letters: str,
    at: dict[str, sympy.Expr],
    of: str,
    earlier: list[Statement],
    places: Variable | None = None,
) -> tuple[list[Statement], FoldAxis]:
    """The largest magnitude of an operand's elements in a tile's rows or columns, ``of``, at some places of the sum; and the statements that it needs.

    Each program takes other places: one, or as many as ``places`` says. ``letters``: of the operand's dimensions, of which ``at`` has the indices;
    ``earlier``: the statements before.
    """
    arguments, blocks, ends = parts.program.arguments, parts.blocks, parts.ends
    side = parts.rows if of == "rows" else parts.cols
    block, size, other = ("row_block", "M", "column") if of == "rows" else ("col_block", "N", "row")
    some, one = (
        Axis(fixed(f"some_{of}"), side.atoms, "tile"),
        Axis(fixed(other), parts.depth, "tile" if places else "grid"),
    )
    lanes: tuple[Lane, Lane] = (None, None) if places is None else ((0, 2), (1, 2))
    at_places = ProgramId(0) if places is None else blocked(ProgramId(0), places, one, lanes[1])
    found = set_all(
        (some.variable, blocked(Ref(fixed(block)), blocks[size], some, lanes[0])),
        mask_of(some, "some_mask", ends[size]),
        (one.variable, apply("mod_int", at_places, ends["K"])),
    )
    order = (one, some) if places is None else (some, one)
    builder = Builder(parts.domain, [*parts.axes, *order], arguments, parts.stored, {})
    builder.strided = {v: strides(v, arguments) for v in parts.strided}
    builder.before, builder.beside = loaded([*earlier, *found]), "sample"
    index = tuple(ZERO if n == ONE else at[x] for x, n in zip(letters, operand.shape, strict=True))
    builder.count(operand, index)
    elements = spread(builder.value(operand, index), some)
    if places is not None:
        elements = spread(elements, one)
    if elements.pad != 0:
        assert some.mask is not None
        elements = masked(elements, some.mask, 0.0, torch.float32)
    sizes: Expr = Apply("abs", (elements,), torch.float32)
    if places is not None:
        sizes = FoldAxis("max", sizes, one, 1, False, False, torch.float32)
    magnitude = FoldAxis("max", sizes, some, 0, False, False, torch.float32)
    return [*found, *builder.lines], magnitude
