"""Three products of two planes of each operand in one step, each plane read, or made, once."""

from __future__ import annotations

import dataclasses

import sympy
import torch

from ..graph.value import Contract
from ..kernel.ir import Dot, Expr, Full, Number, Ref, apply
from ..kernel.statements import Add, Comment, Set, Statement
from .extents import split_in_tile
from .operand_tiles import Known, Parts, operand_tiles
from .summation import Summation


def planes_together(
    parts: Parts, op: Contract, at: dict[str, sympy.Expr], walk: Summation, loop: list[Statement], acc: Ref, zeros: Full
) -> Ref:
    """The statements that sum a tile whose steps have a low and a high plane of each operand; the variable that holds the sum.

    The products with a low plane are summed apart, and scaled at the end. A sum that restarts does so in each step: then these products are summed
    first and scaled, and that of the high planes is added to them. Where the right operand has a raised plane (``Contract.raised``) all are one sum.
    """
    if op.raised:
        return _alike(parts, op, at, walk, loop, acc, zeros)
    program, begins_again = parts.program, bool(parts.tile.restart)
    (low, right_high), (high, right_low) = _tiles(parts, op, at, walk, loop)
    small = dataclasses.replace(acc, variable=program.arguments.variable("small_acc"))
    scaled = apply("mul", small, Number(op.scaled), dtype=torch.float32)
    times = f"the products with a low plane, which is {'made' if any(split_in_tile(op)) else 'stored'} times {round(1 / op.scaled)}."
    if begins_again:
        loop += [
            Comment(times.capitalize()),
            Set(small.variable, Dot(low, right_high, zeros)),
            Set(small.variable, Dot(high, right_low, small)),
            Set(small.variable, scaled),
            Add(acc.variable, Dot(high, right_high, small)),
        ]
        program.body += walk.loops(acc, zeros, loop)
        return acc
    loop += [
        Set(small.variable, Dot(low, right_high, small)),
        Set(small.variable, Dot(high, right_low, small)),
        Set(acc.variable, Dot(high, right_high, acc)),
    ]
    program.body += [
        Comment(f"Of {times}"),
        Set(small.variable, zeros),
        *walk.loops(acc, zeros, loop),
        Set(acc.variable, apply("add", acc, scaled, dtype=torch.float32)),
    ]
    return acc


def _alike(
    parts: Parts, op: Contract, at: dict[str, sympy.Expr], walk: Summation, loop: list[Statement], acc: Ref, zeros: Full
) -> Ref:
    """The same where all three products are scaled alike."""
    for left, right in _tiles(parts, op, at, walk, loop):
        loop.append(Set(acc.variable, Dot(left, right, acc)))
    whole = walk.result(acc)
    scaled = apply("mul", whole, Number(op.scaled), dtype=torch.float32)
    parts.program.body += [
        *walk.loops(acc, zeros, loop),
        Comment(f"Each product has a plane that is stored, or made, times {round(1 / op.scaled)}."),
        Set(whole.variable, scaled),
    ]
    return whole


def _tiles(
    parts: Parts, op: Contract, at: dict[str, sympy.Expr], walk: Summation, loop: list[Statement]
) -> list[tuple[Expr, Expr]]:
    """Of a step the left's low and the right's high plane, then the left's high and the right's low one; and its high and the right's raised one, if there is one."""
    plane = at[op.planes]
    # Both planes of what is split here are made of what is loaded once, and need no names of their own.
    in_tile = split_in_tile(op)
    left, right = ["low", "high"], ["high", "low"]
    if op.raised:
        left, right = [*left, "high"], [*right, "raised"]
    unnamed = [""] * len(left)
    names = zip(unnamed if in_tile[0] else left, unnamed if in_tile[1] else right, strict=True)
    alongs = walk.along((1, 2)), walk.along((0, 2))
    known: tuple[Known, Known] = {}, {}
    found: list[tuple[Expr, Expr]] = []
    for place, suffixes in enumerate(names):
        there = {letter: index.xreplace({plane: sympy.Integer(place)}) for letter, index in at.items()}
        found.append(operand_tiles(parts, op, there, walk, alongs, loop, suffixes, known))
    return found
