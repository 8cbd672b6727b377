"""float32 products whose tiles are split into float16 halves in each step: three products of tensor cores for one.

As ``tf32x3`` it has about float32's accuracy, but tensor cores take float16 twice as fast, and what is split takes half the shared memory. Both
operands are split by each program that reads them; ``passes/planes.py`` and ``passes/thin_products.py`` split large ones before, or once. The
method and its range are those of ``passes/planes.py``.

Whether float16 holds a tile's numbers each program finds out at its end: too large ones make a sum infinite or NaN, and whether all are small
tell some places of the sum. There it sums the tile again, in ``Product.precision``.
"""

from __future__ import annotations

import dataclasses

import sympy
import torch

from ..graph.value import Contract
from ..kernel.arguments import Arguments
from ..kernel.ir import Dot, Expr, Full, Number, Ref, Variable, apply
from ..kernel.statements import Add, Comment, Set, Statement, When
from ..passes.planes import LEAST_PEAK
from .halves import RAISED, halves
from .operand_tiles import Parts
from .range_samples import largest_of_some, zero_if_finite
from .summation import Summation

#: Places of the sum at which a tile's operands are looked at: one may have zeros alone, as what a dead unit of a network gives.
SAMPLES = 16


def in_halves(
    parts: Parts,
    op: Contract,
    at: dict[str, sympy.Expr],
    walk: Summation,
    loop: list[Statement],
    terms: tuple[Expr, Expr],
    acc: Ref,
    zeros: Full,
    precision: Variable,
) -> None:
    """Add the statements that sum one tile into ``acc``, which is zero, over steps that ``loop`` begins and whose operands are ``terms``.

    ``at``: the index of each letter; ``precision``: of the sum where float16 does not hold a number.
    """
    program = parts.program
    arguments = program.arguments
    step = list(loop)
    left, right = (split(arguments, term, name, step) for term, name in zip(terms, ("left", "right"), strict=True))
    small = dataclasses.replace(acc, variable=arguments.variable("small_acc"))
    step.append(Add(acc.variable, three_products(left, right, zeros, small, step)))
    program.body += walk.loops(acc, zeros, step)
    outside = _out_of_range(parts, op, at, acc)
    again = [*loop, Set(acc.variable, Dot(*terms, acc, precision))]
    program.body += [
        Comment("Where float16 does not hold the tile's numbers it is summed again"),
        When(outside, (Set(acc.variable, zeros), *walk.loops(acc, zeros, again))),
    ]


#: A tile's low half, which is made times ``RAISED``, and its high one.
Halves = tuple[Ref, Ref]


def split(arguments: Arguments, term: Expr, name: str, statements: list[Statement]) -> Halves:
    """The halves of a tile."""
    return halves(arguments, term, name, Number(float(RAISED)), statements)


def three_products(left: Halves, right: Halves, zeros: Full, small: Ref, statements: list[Statement]) -> Dot:
    """The product of two tiles, after ``statements`` that sum its smaller parts into ``small``, which begins as ``zeros``."""
    statements += [
        Comment(f"The products with a low half, which is made times {RAISED}"),
        Set(small.variable, Dot(left[0], right[1], zeros)),
        Set(small.variable, Dot(left[1], right[0], small)),
        Set(small.variable, apply("mul", small, Number(1 / RAISED), dtype=torch.float32)),
    ]
    return Dot(left[1], right[1], small)


def _out_of_range(parts: Parts, op: Contract, at: dict[str, sympy.Expr], acc: Ref) -> Expr:
    """Whether a sum in ``acc`` is not finite, or an operand's elements at some places of the sum are all smaller than ``LEAST_PEAK``."""
    program = parts.program
    arguments = program.arguments
    finite = Ref(arguments.variable("finite"))
    told = apply("eq", zero_if_finite(acc, parts.rows, parts.cols), Number(0.0), dtype=torch.bool)
    program.body.append(Set(finite.variable, told))
    inside: Expr = finite
    places = program.block("SAMPLES", SAMPLES)
    for operand, letters, of in ((op.left, op.left_axes, "rows"), (op.right, op.right_axes, "cols")):
        statements, largest = largest_of_some(parts, operand, letters, at, of, program.body, places)
        program.body += statements
        peak = Ref(arguments.variable("peak"))
        program.body.append(Set(peak.variable, largest))
        inside = apply("and", inside, apply("ge", peak, Number(LEAST_PEAK), dtype=torch.bool), dtype=torch.bool)
    return apply("not", inside, dtype=torch.bool)
