"""Two products in one kernel (``passes/chains.py``): a program goes along the keys, with a tile of scores at a time.

Where the first product's results go through exp(x - the row's greatest x), the greatest x so far, the sum of the exponentials and the
rows of the result are carried along, and rescaled when the greatest grows. Of the keys that come after a row and count for nothing
only those are gone through that share a tile with others; keys that all rows of the tile see have a loop of their own, without masks.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import sympy
import torch

from ..graph.functions import TO_HALF
from ..graph.value import Contract, Value
from ..kernel.arguments import Arguments
from ..kernel.execution_plan import Chain, Hints, Kernel, hint
from ..kernel.ir import Apply, Arange, Axis, AxisIndex, Dot, Expr, Full, Number, ProgramId, Ref, Variable, apply, plus
from ..kernel.statements import Add, Comment, For, Set, Statement, When
from ..passes.masked_keys import Assumed, Places, hidden_beyond
from .chain_atoms import ChainAtoms, chain_atoms
from .chain_halves import keys_again, outside, split_rows
from .chain_scores import elements, number, softmax
from .chain_tiles import Operand, Parts, first_product
from .elementwise import blocked, mask_of
from .extents import multiplied, total
from .halved_tiles import split, three_products
from .operand_tiles import strides
from .program import Blocks, PowerOfTwo, Program, fixed, set_all
from .schedules import Chained
from .tilings import START


def chained(
    kernel: Kernel,
    name: str,
    arguments: Arguments,
    hints: Hints,
    stored: set[Value],
    strided: set[Value],
    tile: Chained,
) -> Program:
    """The kernel of a ``Chain`` with its epilogue."""
    chain, second = kernel.chain, kernel.contract
    assert chain is not None and second is not None
    domain, atoms = kernel.domain, chain_atoms(kernel, hints)
    program = Program(name, arguments, num_warps=tile.warps, num_stages=tile.stages, registers=tile.registers)
    for v in kernel.outputs:
        arguments.outputs[v] = arguments.variable("out_ptr")
    sizes = {
        "M": total(domain, atoms.rows),
        "N": domain.size[chain.key],
        "D": total(domain, atoms.cols),
        "E": total(domain, chain.depth),
    }
    for text, size in sizes.items():
        arguments.name_size(size, text)
    ends = {text: arguments.size(size) for text, size in sizes.items()}
    given = {"M": tile.m, "N": tile.n, "D": tile.d, "E": tile.k}
    whole = {text: hint(size, hints) <= given[text] for text, size in sizes.items()}
    blocks = {}
    for text, size in sizes.items():
        held = text in "DE" and whole[text] and not size.is_number  # other sizes have other blocks, up to this one
        blocks[text] = program.block(f"BLOCK_{text}", PowerOfTwo(size, 16) if held else given[text])
        program.limits += [(size, given[text])] if held else []
    rows, cols = Axis(fixed("rows"), atoms.rows, "tile"), Axis(fixed("cols"), atoms.cols, "tile")
    precisions = _precisions(program, chain, kernel.product, tile)
    parts = Parts(
        kernel,
        chain,
        atoms,
        program,
        tile,
        stored,
        {v: strides(v, arguments) for v in strided},
        [],
        rows,
        cols,
        ends,
        blocks,
        {chain.first: precisions[0], second: precisions[1]},
        whole,
    )
    exact = {text: size.is_number and int(size) % given[text] == 0 for text, size in sizes.items()}
    _order(parts, sizes)
    program.body += [] if exact["M"] else set_all(mask_of(rows, "row_mask", ends["M"]))
    program.body += [] if exact["D"] else set_all(mask_of(cols, "col_mask", ends["D"]))
    hidden = _hidden(kernel, chain, atoms)
    _loops(parts, exact, hidden)
    _finish(parts)
    after = " Keys after a row are left out." if hidden is not None else ""
    after += " Each step splits its float32 tiles into a high and a low float16 half." if tile.halves else ""
    program.tiling = (
        f"One program takes {tile.m} rows and goes through the keys {tile.n} at a time; the scores stay on chip.{after}"
    )
    return program


def _precisions(
    program: Program, chain: Chain, second: Contract, tile: Chained
) -> tuple[Variable | None, Variable | None]:
    """How each product multiplies float32: a constant of the launch, None for halves."""
    whole = [multiplied(op) == torch.float32 for op in (chain.product, second)]
    variable = program.block("PRECISION", tile.precision) if any(whole) else None
    return (variable if whole[0] else None), (variable if whole[1] else None)


def _hidden(kernel: Kernel, chain: Chain, atoms: ChainAtoms) -> Assumed | None:
    """From where on keys count for nothing, where the rows are one dimension."""
    if len(atoms.rows) != 1:
        return None
    places = Places(kernel.domain, atoms.rows[0], chain.key, {chain.first, *kernel.leaves})
    nothing = 0.0 if chain.highest is None else -math.inf
    return hidden_beyond(chain.score, kernel.placed[chain.score], places, nothing)


def _order(parts: Parts, sizes: dict[str, sympy.Expr]) -> None:
    """The statements that give a program its tile: those of one batch come one after the other and share its keys in L2.

    The last rows come first, since they see most keys where later ones are hidden.
    """
    program, tile, blocks, domain = parts.program, parts.tile, parts.blocks, parts.kernel.domain
    place, row_block, row_blocks = Ref(fixed("tile")), Ref(fixed("row_block")), Ref(fixed("row_blocks"))
    program.grid = [[Blocks(sizes["M"], tile.m)]]
    program.body += set_all(
        (place.variable, ProgramId(0)), (row_blocks.variable, apply("cdiv", parts.ends["M"], Ref(blocks["M"])))
    )
    start: Expr = Number(0)
    if not parts.whole["D"]:
        across, col_block = Ref(fixed("col_blocks")), fixed("col_block")
        program.grid[0].append(Blocks(sizes["D"], tile.d))
        program.body += set_all(
            (across.variable, apply("cdiv", parts.ends["D"], Ref(blocks["D"]))),
            (col_block, apply("mod_int", place, across)),
            (place.variable, apply("floordiv_int", place, across)),
        )
        start = apply("mul", Ref(col_block), Ref(blocks["D"]))
    if parts.atoms.batch:
        batch = Axis(fixed("batch"), parts.atoms.batch, "grid")
        parts.outside.append(batch)
        program.grid[0].append(total(domain, parts.atoms.batch))
        program.body += set_all(
            (batch.variable, apply("floordiv_int", place, row_blocks)),
            (place.variable, apply("mod_int", place, row_blocks)),
        )
    columns = Arange(blocks["D"], parts.cols, (1, 2))
    last = apply("sub", apply("sub", row_blocks, Number(1)), place)
    program.body += set_all(
        (row_block.variable, last),
        (parts.rows.variable, blocked(row_block, blocks["M"], parts.rows, (0, 2))),
        (parts.cols.variable, columns if start == Number(0) else plus(start, columns)),
    )


# -- along the keys ---------------------------------------------------------------------------------------------


def _loops(parts: Parts, exact: dict[str, bool], hidden: Assumed | None) -> None:
    """What is carried along, and the loops over the keys: those that all rows see, then those with masks."""
    program, chain, ends = parts.program, parts.chain, parts.ends
    query: Expr | None = None
    if parts.whole["E"]:
        before = Operand(parts, 0)
        program.body += set_all((parts.name("depth"), Arange(parts.blocks["E"], before.axis((1, 2)))))
        query, lines, _ = before.loaded(parts.rows, (1, 2))
        program.body += lines
    peak: Ref | None = None
    if parts.tile.halves:
        assert isinstance(query, Ref)
        parts.split, peak = split_rows(parts, query)
    _begin(parts)
    mark = len(program.arguments.variables)
    if hidden is None and exact["N"]:
        _walk(parts, Number(0), ends["N"], query, chain.score, masks=False)
        if peak is not None:
            _again(parts, exact, peak, ends["N"], mark)
        return
    seen, end, plain = ends["N"], ends["N"], chain.score
    if hidden is not None:
        first, block = apply("mul", Ref(fixed("row_block")), Ref(parts.blocks["M"])), Ref(parts.blocks["M"])
        more, last = (program.arguments.size(sympy.expand(hidden.beyond + n)) for n in (1, 0))
        seen = apply("minimum_int", ends["N"], plus(first, more))  # as many keys as the first row sees
        end = plus(first, block) if last == Number(0) else plus(plus(first, block), last)
        program.body += set_all((parts.name("end"), apply("minimum_int", ends["N"], end)))
        end = Ref(parts.name("end"))
        if not (hidden.beyond + 1).is_nonnegative:
            seen = apply("maximum_int", seen, Number(0))
        plain = hidden.simplified(chain.score, parts.kernel.placed[chain.score])
    step = Ref(parts.blocks["N"])
    whole = apply("mul", apply("floordiv_int", seen, step), step)
    program.body += set_all((parts.name("seen"), whole))
    mark = len(program.arguments.variables)
    known = _walk(parts, Number(0), Ref(parts.name("seen")), query, plain, masks=False)
    _release(parts, mark)
    _walk(parts, Ref(parts.name("seen")), end, query, chain.score, masks=not exact["N"], known=known)
    program.arguments.free = []
    if peak is not None:
        _again(parts, exact, peak, end, mark)


def _begin(parts: Parts) -> None:
    """What is carried along, before the first key."""
    chain, body, over_rows = parts.chain, parts.program.body, frozenset({parts.rows})
    if chain.highest is not None:
        start = Full((parts.blocks["M"], None), -math.inf, torch.float32, over_rows)
        body += set_all((parts.name("highest"), start))
    for i, v in enumerate(chain.totals):
        parts.totals[v] = parts.row(f"total{i or ''}")
        start = Full((parts.blocks["M"], None), 0.0, torch.float32, over_rows)
        body += set_all((parts.totals[v].variable, start))
    body += set_all((parts.acc.variable, _zeros(parts)))


def _zeros(parts: Parts) -> Full:
    return Full((parts.blocks["M"], parts.blocks["D"]), 0.0, torch.float32, parts.acc.axes)


def _release(parts: Parts, mark: int) -> None:
    """Let a loop over keys take the names of the one before, which come after the first ``mark``."""
    arguments, shared = parts.program.arguments, {*parts.variables.values(), *parts.starts.values()}
    arguments.release(mark)
    arguments.free = [v for v in arguments.free if v not in shared]


def _again(parts: Parts, exact: dict[str, bool], peak: Ref, end: Expr, mark: int) -> None:
    """The keys up to ``end`` once more, in ``Chained.precision``, where float16 does not hold the program's numbers."""
    program = parts.program
    of_loops = len(program.arguments.variables)
    told = outside(parts, peak, end)
    samples = set(program.arguments.variables[of_loops:])
    block = program.block("BLOCK_N_AGAIN", keys_again(parts.tile))
    again = dataclasses.replace(
        parts, split=None, blocks={**parts.blocks, "N": block}, starts=dict(parts.starts), totals={}
    )
    _release(parts, mark)
    # Outside of a loop a name has one type.
    program.arguments.free = [v for v in program.arguments.free if v not in samples]
    before, program.body = program.body, []
    query, lines, inner = Operand(again, 0).loaded(parts.rows, (1, 2))  # held meanwhile it would take registers
    program.body += [*lines, *inner]
    _begin(again)
    _walk(again, Number(0), end, query, parts.chain.score, masks=not exact["N"])
    program.arguments.free = []
    note = Comment("Where float16 does not hold the program's numbers it goes along the keys again")
    program.body = [*before, note, When(told, tuple(program.body))]


def _walk(
    parts: Parts,
    begin: Expr,
    end: Expr,
    query: Expr | None,
    score: Value,
    *,
    masks: bool,
    known: Sequence[Statement] = (),
) -> list[Statement]:
    """The loop over keys from ``begin`` to ``end``. ``score``: what it computes of the first product's results.

    Returns what the scores need before the loop. What is ``known`` from a loop before is not computed again.
    """
    place, atoms = parts.name("keys"), [parts.chain.key]
    keys, down = Axis(place, atoms, "loop", lane=(1, 2)), Axis(place, atoms, "loop", lane=(0, 2))
    for axis in (keys, down) if masks else ():
        axis.mask = apply("lt", AxisIndex(axis), parts.ends["N"], dtype=torch.bool)
    body = set_all((place, plus(Ref(START), Arange(parts.blocks["N"], keys))))
    body += first_product(parts, keys, query)
    builder = parts.builder([parts.rows, keys])
    builder.reduced[parts.chain.first] = Ref(parts.name("products"), frozenset({parts.rows, keys}), torch.float32)
    if parts.chain.highest is not None:
        weights = softmax(parts, builder, keys, score)
    else:
        weights = elements(parts, builder, keys, score)
    parts.program.body += [line for line in builder.lines if line not in known]
    body += builder.inner
    values, lines, inner = Operand(parts, 2).loaded(down, (0, 2))
    parts.program.body += lines
    body += [*inner, *_second_product(parts, weights, values)]
    if parts.chain.highest is not None:
        body += set_all((parts.name("highest"), parts.row("reached")))
    parts.program.body.append(For(START, begin, end, parts.blocks["N"], tuple(body)))
    return builder.lines


def _second_product(parts: Parts, weights: Expr, values: Expr) -> list[Statement]:
    """Adds what the keys of a step give to the rows of the result."""
    if parts.split is not None:
        arguments, statements = parts.program.arguments, list[Statement]()
        left, right = (split(arguments, v, name, statements) for v, name in ((weights, "weight"), (values, "value")))
        small = Ref(parts.name("small_acc"), parts.acc.axes, torch.float32)
        last = three_products(left, right, _zeros(parts), small, statements)
        return [*statements, Add(parts.acc.variable, last)]
    half = TO_HALF.get(multiplied(parts.kernel.product))
    if half is not None:
        weights = Apply(half, (weights,), multiplied(parts.kernel.product))
    assert parts.kernel.contract is not None
    return [Set(parts.acc.variable, Dot(weights, values, parts.acc, parts.precisions[parts.kernel.contract]))]


# -- the end ----------------------------------------------------------------------------------------------------


def _finish(parts: Parts) -> None:
    """The numbers of each row that were left out, the epilogue, and what is stored."""
    kernel, chain = parts.kernel, parts.chain
    assert kernel.contract is not None
    builder = parts.builder([parts.rows, parts.cols])
    builder.strided = {}
    builder.reduced |= parts.totals
    if chain.highest is not None:
        builder.reduced[chain.highest] = parts.row("highest")
    for _, factor in chain.factors:
        builder.count(factor, kernel.placed[factor])
    for function, factor in chain.factors:
        term = builder.value(factor, kernel.placed[factor])
        builder.lines += set_all((parts.acc.variable, number(function, parts.acc, term)))
    builder.reduced[kernel.contract] = parts.acc
    for v, i in kernel.stores:
        builder.count(v, i)
    for v, i in kernel.stores:
        builder.store(v, i, kernel.destination(v, i))
    parts.program.body += builder.lines


def hides_half(kernel: Kernel, hints: Hints) -> bool:
    """Whether the keys after a row are left out."""
    assert kernel.chain is not None
    found = _hidden(kernel, kernel.chain, chain_atoms(kernel, hints))
    return found is not None and hint(found.beyond, hints) < hint(kernel.domain.size[kernel.chain.key], hints)
