"""Products whose kernels reduce windows of their rows or columns: pooling behind a convolution, of windows that do not overlap.

The elements of a window are neighbours in the tile. So the tile is reshaped to have one dimension more, which is reduced. What is pooled is never stored,
and what follows is computed for the results alone.
"""

from __future__ import annotations

from ..graph.names import variable_name
from ..kernel.build import Builder, loaded
from ..kernel.execution_plan import Kernel, fold_operand_index
from ..kernel.ir import Arange, Axis, Expr, FoldAxis, Grouped, Number, Ref, Variable, apply
from ..kernel.statements import Set, Statement
from .elementwise import blocked, mask_of
from .program import Program, fixed, set_all
from .reduction import fold_of, keeps_nan
from .schedules import Product


def pooled(
    kernel: Kernel,
    program: Program,
    ending: Builder,
    sides: tuple[Axis, Axis],
    along: Axis,
    length: int,
    blocks: dict[str, Variable],
    tile: Product,
    one: tuple[bool, ...],
    exact: tuple[bool, ...],
    ends: dict[str, Expr],
) -> list[Statement]:
    """The statements that reduce each ``length`` neighbours of a tile along ``along``, one of its ``sides``, and store what follows.

    ``ending``: computes what is reduced. ``blocks``: the constants of the tile's sizes. ``one``: whether all rows, and all columns, are in one block; ``exact``: whether they fill their blocks.
    ``ends``: how many there are.
    """
    place = sides.index(along)
    side, size = ("row", "M") if place == 0 else ("col", "N")
    inner = len(kernel.domain.reduced)
    results, window = (
        Axis(fixed(name), atoms, "tile")
        for name, atoms in (("results", along.atoms[:-inner]), ("window", along.atoms[-inner:]))
    )
    block = program.block("BLOCK_RESULTS", (tile.m if place == 0 else tile.n) // length)
    shape = (block, blocks["N"]) if place == 0 else (blocks["M"], block)
    tiled = [results if axis is along else axis for axis in sides]
    after = Builder(
        kernel.domain,
        [*(axis for axis in ending.axes if axis not in sides), *tiled],
        program.arguments,
        ending.stored,
        kernel.placed,
    )
    terms = {v: (fold_of(v).operand, fold_operand_index(kernel, v, kernel.placed[v])) for v in kernel.folds}
    for operand, index in terms.values():
        ending.count(operand, index)
    folded: list[Statement] = []
    for v, (operand, index) in terms.items():
        term: Expr = Grouped(ending.value(operand, index), place, length, shape, frozenset([*tiled, window]))
        if keeps_nan(v):  # it is needed twice
            variable = program.arguments.variable("windows")
            folded.append(Set(variable, term))
            term = Ref(variable, term.axes, operand.dtype)
        result = FoldAxis(fold_of(v).kind, term, window, place + 1, False, keeps_nan(v), v.dtype)
        variable = program.arguments.variable(variable_name(v))
        folded.append(Set(variable, result))
        after.reduced[v] = Ref(variable, result.axes, v.dtype)
    lane = (place, 2)
    first: Expr = Arange(block, results, lane)
    number = first if one[place] else blocked(Ref(fixed(f"{side}_block")), block, results, lane)
    folded += set_all((results.variable, number))
    if not exact[place]:
        folded += set_all(mask_of(results, "result_mask", apply("floordiv_int", ends[size], Number(length))))
    after.before = loaded([*program.body, *ending.lines])
    for v, index in kernel.stores:
        after.count(v, index)
    for v, index in kernel.stores:
        after.store(v, index, kernel.destination(v, index))
    return [*ending.lines, *folded, *after.lines]
