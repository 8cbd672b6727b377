"""How a product's sum is gone through: in steps along K, over the outer letters, begun again now and then."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import sympy
import torch

from ..graph.sizes import ZERO
from ..kernel.domain import Domain
from ..kernel.ir import Apply, Arange, Axis, AxisIndex, Expr, Full, Number, Ref, Variable, apply, plus
from ..kernel.statements import Add, Comment, For, Set, Statement
from .extents import total
from .program import Program, fixed, set_all
from .schedules import Product
from .tilings import START

_KS, _STEP, _CHUNK, _BLOCKS = fixed("ks"), fixed("step"), fixed("chunk"), fixed("k_blocks")


@dataclass
class Summation:
    """``begin``: the statements at the start of each step; ``outside``: the scalar axis of the outer atoms, if there is one.

    Without outer atoms one loop goes along K. With them a step is one of their places and one block of K. Where the sum
    restarts, a loop over chunks of K is around that.
    """

    depth: list[sympy.Symbol]
    end: Expr  # of K
    block: Variable
    exact: bool  # no block reaches beyond K
    outside: list[Axis] = field(default_factory=list)
    count: Expr = field(default_factory=lambda: Number(1))  # of the outer places
    but_last: Expr = field(default_factory=lambda: Number(0))  # how many come before the last
    restart: Variable | None = None
    scaled: float = 1.0  # what the sum over all outer places but the last is multiplied by
    ahead: list[Statement] = field(default_factory=list)  # before the loops
    begin: list[Statement] = field(default_factory=list)

    def along(self, lane: tuple[int, int]) -> Axis:
        """The axis along K of an operand's tile."""
        axis = Axis(_KS, self.depth, "loop", lane=lane)
        if not self.exact:
            axis.mask = apply("lt", AxisIndex(axis), self.end, dtype=torch.bool)
        return axis

    def result(self, acc: Ref) -> Ref:
        """The variable that holds the whole sum."""
        return Ref(fixed("full_sum"), acc.axes, acc.dtype) if self.restart is not None else acc

    def before(self, acc: Ref, zeros: Full) -> Statement:
        """The statement that begins the sum."""
        return Set(self.result(acc).variable, zeros)

    def loops(self, acc: Ref, zeros: Full, step: list[Statement]) -> list[Statement]:
        """The loops, with the statements of a ``step``."""
        first: Expr = Number(0)
        last = self.end
        if self.restart is not None:
            first, last = Ref(_CHUNK), apply("minimum_int", self.end, plus(Ref(_CHUNK), Ref(self.restart)))
        inside: list[Statement]
        if self.outside:
            length = last if self.restart is None else Ref(self.restart)
            before: list[Statement] = [*self.ahead, Set(_BLOCKS, apply("cdiv", length, Ref(self.block)))]
            steps = apply("mul", self.count, Ref(_BLOCKS))
            inside = [For(_STEP, Number(0), steps, Number(1), tuple(step))]
            if self.scaled != 1.0:
                small = apply("mul", self.but_last, Ref(_BLOCKS))
                scaled = Apply("mul", (acc, Number(self.scaled)), acc.dtype)
                inside = [
                    Comment(f"A high plane times a low one, which is stored times {round(1 / self.scaled)}."),
                    For(_STEP, Number(0), small, Number(1), tuple(step)),
                    Set(acc.variable, scaled),
                    Comment("The high planes."),
                    For(_STEP, small, steps, Number(1), tuple(step)),
                ]
        else:
            before, inside = [], [For(START, first, last, self.block, tuple(step))]
        if self.restart is None:
            return [*before, *inside]
        inside = [Set(acc.variable, zeros), *inside, Add(self.result(acc).variable, acc)]
        return [*before, For(_CHUNK, Number(0), self.end, self.restart, tuple(inside))]


def summation(
    program: Program,
    tile: Product,
    end: Expr,
    domain: Domain,
    depth: list[sympy.Symbol],
    outer: list[sympy.Symbol],
    scaled: float,
    lengths: dict[sympy.Expr, Expr],
) -> Summation:
    """How the sum over ``depth`` (up to ``end``) and ``outer`` is gone through with ``tile``; ``scaled``: see ``Contract``.

    ``lengths``: of outer atoms of which the program has not all places; for 0 of those that have one at most.
    """
    size = total(domain, depth)
    block = next(variable for variable in program.blocks if variable.wanted == "BLOCK_K")
    # Where the sum restarts every chunk has as many blocks: how many is known when the kernel is compiled.
    reach = tile.restart if tile.restart and outer else tile.k
    found = Summation(depth, end, block, size.is_number and int(size) % reach == 0)
    found.scaled = scaled
    if tile.restart:
        found.restart = program.block("RESTART", tile.restart)
    start: Expr = Ref(START)
    if outer:
        _go_through(found, program, domain, outer, lengths)
        start = apply("mul", apply("mod_int", Ref(_STEP), Ref(_BLOCKS)), Ref(block))
        if found.restart is not None:
            start = plus(Ref(_CHUNK), start)
    lane = Axis(_KS, depth, "loop", lane=(1, 2))
    found.begin += set_all((_KS, plus(start, Arange(block, lane))))
    return found


def _go_through(
    found: Summation, program: Program, domain: Domain, outer: list[sympy.Symbol], lengths: dict[sympy.Expr, Expr]
) -> None:
    """One loop for all outer atoms: they are one axis, or an axis each where some have ``lengths`` of their own."""
    size = program.arguments.size
    term = fixed("term")
    planes = outer[:1] if found.scaled != 1.0 else []
    found.begin = set_all((term, apply("floordiv_int", Ref(_STEP), Ref(_BLOCKS))))
    if not lengths:
        places = total(domain, outer)
        found.outside, found.count = [Axis(term, outer, "scalar")], size(places)
        if planes:
            found.but_last = size(places - total(domain, outer[len(planes) :]))
        return
    taps: list[Expr] = []
    for atom in outer[len(planes) :]:
        taps.append(lengths.get(atom) or size(domain.size[atom]))
        if atom in lengths:
            variable = program.arguments.variable("taps")
            found.ahead.append(Set(variable, taps[-1]))
            taps[-1] = Ref(variable)
    all_taps = functools.reduce(lambda a, b: apply("mul", a, b), taps)
    if ZERO in lengths:
        all_taps = apply("mul", all_taps, lengths[ZERO])
    if isinstance(all_taps, Apply):
        found.ahead.append(Set(fixed("places"), all_taps))
        all_taps = Ref(fixed("places"))
    found.count, left = all_taps, Ref(term)
    if planes:
        count = total(domain, planes)
        found.count, found.but_last = (apply("mul", size(n), all_taps) for n in (count, count - 1))
        axis = Axis(fixed("plane"), planes, "scalar")
        found.outside.append(axis)
        found.begin += set_all(
            (axis.variable, apply("floordiv_int", left, all_taps)), (term, apply("mod_int", left, all_taps))
        )
    for i, atom in enumerate(outer[len(planes) :]):
        within = functools.reduce(lambda a, b: apply("mul", a, b), taps[i + 1 :]) if taps[i + 1 :] else None
        axis = Axis(program.arguments.variable("tap"), [atom], "scalar")
        found.outside.append(axis)
        place = left if within is None else apply("floordiv_int", left, within)
        found.begin.append(Set(axis.variable, place if i == 0 else apply("mod_int", place, taps[i])))
