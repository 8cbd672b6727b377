"""float32 products of a chained kernel by float16 halves, as those of ``halved_tiles.py``.

The rows' operand is split once, keys and values in each step. Whether float16 held a program's numbers it finds out at its end, and goes
along the keys again in ``Chained.precision`` where it did not. What is too large makes the rows of the result NaN: a number of the rows'
operand or of a key becomes an infinite half and one of the other sign, whose products add up to NaN, and so do the exponential, the sums
and the result. That takes functions between the two products that give NaN for NaN. A weight lies between 0 and 1, which takes exponentials
of what is at most the greatest. Whether all numbers are small tell the rows' operand, and keys and values at some places. Of values that
are 10^5 times smaller than others of a program bits are lost, as with planes.
"""

from __future__ import annotations

import torch

from ..kernel.ir import Apply, Axis, Expr, FoldAxis, Number, ProgramId, Ref, apply
from ..kernel.statements import Set
from ..passes.planes import LEAST_PEAK
from .chain_tiles import Operand, Parts
from .elementwise import blocked
from .halved_tiles import SAMPLES, Halves, split
from .range_samples import zero_if_finite
from .schedules import Chained

#: Keys at a time of a tile that is computed again, by the width of the operands: fewer, since TF32's parts are held in registers.
_AGAIN, _LEAST = 2048, 16


def split_rows(parts: Parts, query: Ref) -> tuple[Halves, Ref]:
    """The halves of the rows' operand, and its largest magnitude, after statements that are added before the loops."""
    arguments, body = parts.program.arguments, parts.program.body
    peak = Ref(arguments.variable("query_peak"))
    body.append(Set(peak.variable, _magnitude(query, Operand(parts, 0).axis((1, 2)), parts.rows)))
    return split(arguments, query, "query", body), peak


def outside(parts: Parts, peak: Ref, end: Expr) -> Expr:
    """Whether float16 did not hold a number of the program's, after statements that find out.

    ``peak``: of the rows' operand; ``end``: the keys that are gone through.
    """
    program, arguments = parts.program, parts.program.arguments
    inside = apply("eq", zero_if_finite(parts.acc, parts.rows, parts.cols), Number(0.0), dtype=torch.bool)
    inside = apply("and", inside, _large(peak), dtype=torch.bool)
    samples, place = program.block("SAMPLES", SAMPLES), arguments.variable("some_keys")
    some, down = (Axis(place, [parts.chain.key], "loop", lane=lane) for lane in ((1, 2), (0, 2)))
    end = apply("maximum_int", end, Number(1))
    program.body.append(Set(place, apply("mod_int", blocked(ProgramId(0), samples, some, None), end)))
    depth = Operand(parts, 1).axis((0, 2))
    for number, side, inner, outer in ((1, some, some, depth), (2, down, parts.cols, down)):
        term, before, within = Operand(parts, number).loaded(side, (0, 2))
        found = Ref(arguments.variable("peak"))
        program.body += [*before, *within, Set(found.variable, _magnitude(term, inner, outer))]
        inside = apply("and", inside, _large(found), dtype=torch.bool)
    return apply("not", inside, dtype=torch.bool)


def keys_again(tile: Chained) -> int:
    """Keys at a time where a tile is computed again."""
    return max(_LEAST, min(tile.n, _AGAIN // max(tile.d, tile.k)))


def _magnitude(term: Expr, inner: Axis, outer: Axis) -> FoldAxis:
    """The largest magnitude of a tile [outer, inner]."""
    sizes: Expr = Apply("abs", (term,), torch.float32)
    return FoldAxis(
        "max", FoldAxis("max", sizes, inner, 1, False, False, torch.float32), outer, 0, False, False, torch.float32
    )


def _large(peak: Ref) -> Apply:
    return apply("ge", peak, Number(LEAST_PEAK), dtype=torch.bool)
