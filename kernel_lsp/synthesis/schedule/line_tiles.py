"""Products whose kernels reduce lines of their result and store what follows for each element: a norm over a convolution's last dimension.

The elements of a line are neighbours in the tile, along its rows or its columns. So the tile is reshaped to have one dimension more, along which a
line goes; what is reduced keeps that dimension with size one, and is combined with the tile as it is. Where the results of two phases of a
transposed convolution alternate in a line, the tile has both.
"""

from __future__ import annotations

import torch

from ..kernel.build import Builder, loaded
from ..kernel.execution_plan import Kernel
from ..kernel.ir import Arange, Axis, Expr, Grouped, Number, Ref, Variable, apply
from ..kernel.statements import Set, Statement
from .elementwise import blocked, mask_of
from .folding import Lines
from .program import Program, fixed, set_all
from .reduction import in_one_tile
from .schedules import Product
from .tilings import Tiling


def in_lines(
    kernel: Kernel,
    program: Program,
    ending: Builder,
    tiled: list[Axis],
    along: Axis,
    lines: Lines,
    blocks: dict[str, Variable],
    tile: Product,
    one: tuple[bool, ...],
    exact: tuple[bool, ...],
    ends: dict[str, Expr],
) -> list[Statement]:
    """The statements that reduce each line of a tile along ``along``, one of its axes ``tiled``, and store what follows.

    ``ending``: knows the product's tile. ``blocks``: the constants of the tile's sizes. ``one``: whether all rows, and all columns, are in one
    block; ``exact``: whether they fill their blocks. ``ends``: how many there are.
    """
    product = kernel.contract
    assert product is not None
    inner, place, side = len(kernel.domain.reduced), tiled.index(along), 0 if lines.side == "M" else 1
    both = 1 if lines.pair is None else 2
    whole = Axis(fixed("lines"), along.atoms[:-inner], "tile")
    within = Axis(fixed("line_places"), along.atoms[-inner:], "tile")
    (beside,) = (axis for axis in tiled if axis is not along)
    block = program.block("BLOCK_LINES", both * (tile.m if side == 0 else tile.n) // lines.length)
    length = program.block("LINE", lines.length)
    axes = [whole, within]
    axes.insert(0 if place else 2, beside)
    lanes = {axis: (d, 3) for d, axis in enumerate(axes)}
    found: list[Statement] = []
    for axis, size, at, name, end in (
        (whole, block, side, "line", apply("floordiv_int", ends["MN"[side]], Number(lines.length // both))),
        (beside, blocks["NM"[side]], 1 - side, ("row", "col")[1 - side], ends["NM"[side]]),
    ):
        first: Expr = Arange(size, axis, lanes[axis])
        number = Ref(fixed(("row_block", "col_block")[at]))
        found += set_all((axis.variable, first if one[at] else blocked(number, size, axis, lanes[axis])))
        if not exact[at]:
            found += set_all(mask_of(axis, f"{name}_mask", end))
    found += set_all((within.variable, Arange(length, within, lanes[within])))
    sizes = (block, blocks["N"]) if place == 0 else (blocks["NM"[side]], block)
    grouped = Ref(program.arguments.variable("in_lines"), frozenset(axes), torch.float32)
    held = ending.reduced[product]
    found.append(Set(grouped.variable, Grouped(held, place, lines.length, sizes, grouped.axes)))
    after = Builder(
        kernel.domain,
        [*(axis for axis in ending.axes if axis not in tiled), *axes],
        program.arguments,
        ending.stored,
        kernel.placed,
    )
    after.reduced[product], after.before, after.reduced_axis = grouped, loaded(program.body), within
    shape = tuple(block if axis is whole else length if axis is within else blocks["NM"[side]] for axis in axes)
    tiling = Tiling(axes, within, axes.index(within), 3, shape, None, Number(0), Number(0), [], [])
    return [*found, *in_one_tile(kernel, after, tiling)]
