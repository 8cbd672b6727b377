"""Which tile a program of a product computes, and the indices of that tile's rows and columns.

The order follows the Triton matmul tutorial's idea: programs are numbered so that GROUP row blocks are finished column by column,
which keeps the tiles that neighbouring programs share in L2.
"""

from __future__ import annotations

import functools

import sympy
import torch

from ..graph.sizes import ONE
from ..kernel.domain import Domain
from ..kernel.ir import Arange, Axis, AxisIndex, Expr, Number, ProgramId, Ref, Variable, apply, plus
from ..kernel.statements import For, Set, Statement
from .elementwise import blocked
from .extents import total
from .program import Program, fixed, set_all


def tile_order(
    domain: Domain,
    program: Program,
    ends: dict[str, Expr],
    blocks: dict[str, Variable],
    group: Variable | None,
    one: tuple[bool, ...],
    few: tuple[bool, ...],
    batch: list[sympy.Symbol],
    together: bool,
    batch_name: str,
    turns: bool,
) -> list[Axis]:
    """The statements that give a program its tile, and the axis of the batch where there is one.

    ``group``: row blocks of which all columns come before the next ones; None where rows, or columns, are in so ``few`` blocks that the order
    does not matter. ``one``: whether all rows, and all columns, are in one block.
    ``together``: one tile of all of a batch runs before the next tile, since those are neighbours in the result.
    ``turns``: the number of the tile is set by a loop (``in_turn``), and not the program's own.
    """
    tile, row_blocks, col_blocks = Ref(fixed("tile")), Ref(fixed("row_blocks")), Ref(fixed("col_blocks"))
    in_group, group_rows = Ref(fixed("group")), Ref(fixed("group_rows"))
    program.grid = [[ONE, ONE]]
    place: Expr = tile if turns else ProgramId(0)
    program.body += [] if turns else set_all((tile.variable, place))
    program.body += set_all(
        (row_blocks.variable, apply("cdiv", ends["M"], Ref(blocks["M"]))),
        (col_blocks.variable, apply("cdiv", ends["N"], Ref(blocks["N"]))),
    )
    axes: list[Axis] = []
    if batch:
        axes.append(Axis(fixed(batch_name), batch, "grid"))
        tiles = col_blocks if one[0] else row_blocks if one[1] else apply("mul", row_blocks, col_blocks)
        within_batch = [apply("floordiv_int", tile, tiles), apply("mod_int", tile, tiles)]
        if together:
            count = program.arguments.size(total(domain, batch))
            within_batch = [apply("mod_int", tile, count), apply("floordiv_int", tile, count)]
        if all(one):
            program.body += set_all((axes[0].variable, tile))
        else:
            place = within_batch[1]
            program.body += set_all((axes[0].variable, within_batch[0]))
            program.body += [] if any(one) else set_all((tile.variable, place))
        program.grid[0].append(total(domain, batch))
    row_block, col_block = fixed("row_block"), fixed("col_block")
    if any(one):
        program.body += set_all(
            (row_block, Number(0) if one[0] else place), (col_block, Number(0) if one[1] else place)
        )
        return axes
    if group is None and few[0]:
        program.body += set_all(
            (row_block, apply("mod_int", tile, row_blocks)), (col_block, apply("floordiv_int", tile, row_blocks))
        )
        return axes
    if group is None:
        program.body += set_all(
            (row_block, apply("floordiv_int", tile, col_blocks)), (col_block, apply("mod_int", tile, col_blocks))
        )
        return axes
    wide = apply("mul", Ref(group), col_blocks)
    left = apply("sub", row_blocks, apply("mul", in_group, Ref(group)))
    within = apply("mod_int", tile, wide)
    row = plus(apply("mul", in_group, Ref(group)), apply("mod_int", within, group_rows))
    program.body += set_all(
        (in_group.variable, apply("floordiv_int", tile, wide)),
        (group_rows.variable, apply("minimum_int", left, Ref(group))),
        (row_block, row),
        (col_block, apply("floordiv_int", within, group_rows)),
    )
    return axes


def in_turn(program: Program, begun: int, one: tuple[bool, ...], batch: Expr | None, programs: int) -> None:
    """Let each program take one tile after another: what its body has from ``begun`` on becomes a loop over them.

    ``one``: whether all rows, and all columns, are in one block; ``batch``: how many matrices there are.
    """
    counts = (fixed("row_blocks"), fixed("col_blocks"))
    body = program.body[begun:]
    counted = [s for s in body if isinstance(s, Set) and s.variable in counts]
    factors: list[Expr] = [Ref(count) for count, all_in_one in zip(counts, one, strict=True) if not all_in_one]
    factors += [] if batch is None else [batch]
    tiles = functools.reduce(lambda a, b: apply("mul", a, b), factors)
    step = program.block("PROGRAMS", programs)
    loop = For(fixed("tile"), ProgramId(0), tiles, step, tuple(s for s in body if s not in counted))
    program.body[begun:] = [*counted, loop]
    program.programs = programs


def places(
    rows: Axis,
    cols: Axis,
    blocks: dict[str, Variable],
    ends: dict[str, Expr],
    one: tuple[bool, ...],
    exact: tuple[bool, ...],
    pairs: bool = False,
) -> list[Statement]:
    """The statements that give each row and column of the tile its index, and tell which lie inside.

    ``one``: whether all rows, and all columns, are in one block; ``exact``: whether they fill their blocks.
    ``pairs``: rows are the tile's last dimension, and twice as many as ``ends`` says, which twice might not fit into 32 bits.
    """
    lanes = ((1, 2), (0, 2)) if pairs else ((0, 2), (1, 2))
    sides = ((rows, "row", "M"), (cols, "col", "N"))
    found: list[Statement] = []
    for (axis, side, size), lane, whole in zip(sides, lanes, one, strict=True):
        first = Arange(blocks[size], axis, lane)
        index: Expr = first if whole else blocked(Ref(fixed(f"{side}_block")), blocks[size], axis, lane)
        found.append(Set(axis.variable, index))
    for (axis, side, size), filled in zip(sides, exact, strict=True):
        if filled:
            continue
        place: Expr = AxisIndex(axis)
        if pairs and axis is rows:
            place = apply("floordiv_int", place, Number(2))
        inside = apply("lt", place, ends[size], dtype=torch.bool)
        axis.mask = Ref(fixed(f"{side}_mask"), inside.axes, torch.bool)
        found.append(Set(fixed(f"{side}_mask"), inside))
    return found
