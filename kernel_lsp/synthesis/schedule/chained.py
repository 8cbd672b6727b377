"""Two products in one kernel (``passes/chains.py``): a program goes along the keys, with a tile of scores at a time.

Where the first product's results go through exp(x - the row's greatest x), the greatest x so far, the sum of the exponentials and the
rows of the result are carried along, and rescaled when the greatest grows. Of the keys that come after a row and count for nothing
only those are gone through that share a tile with others; keys that all rows of the tile see have a loop of their own, without masks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import sympy
import torch

from ..graph.sizes import ONE, ZERO, Index
from ..graph.value import Contract, Reduce, Value
from ..kernel.arguments import Arguments
from ..kernel.build import Builder, masked, spread
from ..kernel.ir import (
    Apply,
    Arange,
    Axis,
    AxisIndex,
    Dot,
    Expr,
    FoldAxis,
    For,
    Full,
    Number,
    ProgramId,
    Ref,
    Role,
    Set,
    Statement,
    Variable,
    apply,
    plus,
)
from ..kernel.steps import Chain, Hints, Kernel, hint
from ..passes.hiding import Assumed, Places, hidden_beyond
from .chain_atoms import ChainAtoms, chain_atoms
from .contract import is_half, is_plain, strides
from .elementwise import blocked, mask_of
from .extents import multiplied, total
from .program import Blocks, PowerOfTwo, Program, fixed, set_all
from .schedules import Chained
from .tilings import START

_HALVES = {torch.float16: "to_float16", torch.bfloat16: "to_bfloat16"}


@dataclass
class _Parts:
    """What the statements of a chained kernel share."""

    kernel: Kernel
    chain: Chain
    atoms: ChainAtoms
    program: Program
    tile: Chained
    stored: set[Value]
    strided: dict[Value, list[sympy.Symbol]]
    outside: list[Axis]  # what is a scalar: the batch
    rows: Axis
    cols: Axis
    ends: dict[str, Expr]
    blocks: dict[str, Variable]
    precisions: dict[Value, Variable | None]
    whole: dict[str, bool]  # whether a program has all of the columns, and of what the first product sums over
    totals: dict[Value, Ref] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    starts: dict[Expr, Variable] = field(default_factory=dict)  # parts of offsets that were computed before the loops
    depths: dict[tuple[int, int], Axis] = field(default_factory=dict)

    def name(self, wanted: str) -> Variable:
        """The variable of the kernel that would be called so."""
        if wanted not in self.variables:
            self.variables[wanted] = self.program.arguments.variable(wanted)
        return self.variables[wanted]

    def row(self, wanted: str) -> Ref:
        """A number of each row."""
        return Ref(self.name(wanted), frozenset({self.rows}), torch.float32)

    @property
    def acc(self) -> Ref:
        """The rows of the result so far."""
        return Ref(fixed("acc"), frozenset({self.rows, self.cols}), torch.float32)

    def builder(self, axes: list[Axis]) -> Builder:
        built = Builder(
            self.kernel.domain, [*self.outside, *axes], self.program.arguments, self.stored, self.kernel.placed
        )
        built.strided, built.starts = self.strided, self.starts
        return built


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
    program = Program(name, arguments, num_warps=tile.warps, num_stages=tile.stages)
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
    parts = _Parts(
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


def _order(parts: _Parts, sizes: dict[str, sympy.Expr]) -> None:
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


def _loops(parts: _Parts, exact: dict[str, bool], hidden: Assumed | None) -> None:
    """What is carried along, and the loops over the keys: those that all rows see, then those with masks."""
    program, chain, ends = parts.program, parts.chain, parts.ends
    query: Expr | None = None
    if parts.whole["E"]:
        before = _Operand(parts, 0)
        program.body += set_all((parts.name("depth"), Arange(parts.blocks["E"], before.axis((1, 2)))))
        query, lines, _ = before.loaded(parts.rows, (1, 2))
        program.body += lines
    over_rows = frozenset({parts.rows})
    if chain.highest is not None:
        start = Full((parts.blocks["M"], None), -math.inf, torch.float32, over_rows)
        program.body += set_all((parts.name("highest"), start))
    for i, v in enumerate(chain.totals):
        parts.totals[v] = parts.row(f"total{i or ''}")
        start = Full((parts.blocks["M"], None), 0.0, torch.float32, over_rows)
        program.body += set_all((parts.totals[v].variable, start))
    zeros = Full((parts.blocks["M"], parts.blocks["D"]), 0.0, torch.float32, parts.acc.axes)
    program.body += set_all((parts.acc.variable, zeros))
    if hidden is None and exact["N"]:
        _walk(parts, Number(0), ends["N"], query, chain.score, masks=False)
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
    _walk(parts, Number(0), Ref(parts.name("seen")), query, plain, masks=False)
    shared = {*parts.variables.values(), *parts.starts.values()}
    program.arguments.release(mark)
    program.arguments.free = [v for v in program.arguments.free if v not in shared]
    _walk(parts, Ref(parts.name("seen")), end, query, chain.score, masks=not exact["N"])
    program.arguments.free = []


@dataclass
class _Operand:
    """An operand of the two products: 0 and 1 of the first, 2 the right one of the second."""

    parts: _Parts
    number: int

    @property
    def op(self) -> Contract:
        return self.parts.kernel.product if self.number == 2 else self.parts.chain.product

    @property
    def value(self) -> Value:
        return self.op.right if self.number else self.op.left

    def index(self) -> Index:
        """Where an element of it stands."""
        kernel, chain = self.parts.kernel, self.parts.chain
        product = chain.first if self.number < 2 else kernel.contract
        assert product is not None
        at = dict(zip(self.op.axes, kernel.placed[product], strict=True))
        at |= dict(zip(self.op.summed, [chain.key] if self.number == 2 else chain.depth, strict=True))
        letters = self.op.right_axes if self.number else self.op.left_axes
        return tuple(ZERO if n == ONE else at[x] for x, n in zip(letters, self.value.shape, strict=True))

    def axis(self, lane: tuple[int, int]) -> Axis:
        """The axis along the first product's sum."""
        parts = self.parts
        if lane not in parts.depths:
            role: Role = "tile" if parts.whole["E"] else "loop"
            axis = parts.depths[lane] = Axis(parts.name("depth"), parts.chain.depth, role, lane=lane)
            size = total(parts.kernel.domain, parts.chain.depth)
            if not (size.is_number and int(size) % parts.tile.k == 0):
                axis.mask = apply("lt", AxisIndex(axis), parts.ends["E"], dtype=torch.bool)
        return parts.depths[lane]

    def loaded(self, side: Axis, lane: tuple[int, int]) -> tuple[Expr, list[Statement], list[Statement]]:
        """Its tile along ``side`` and what is summed, which lies at ``lane``; statements before the loop, and inside it."""
        along = self.axis(lane) if self.number < 2 else side
        across = side if self.number < 2 else self.parts.cols
        axes = [across, along] if lane == (1, 2) else [along, across]
        builder, index = self.parts.builder(axes), self.index()
        builder.raw_half = is_plain(self.value, self.parts.stored)
        builder.reduced_axis = along if len(along.atoms) > 1 else None
        builder.count(self.value, index)
        term = builder.value(self.value, index)
        beyond = term.pad if along in term.axes else None
        for axis in axes:
            term = spread(term, axis)
        if along.mask is not None and beyond != 0:
            term = masked(term, along.mask, 0.0, self.value.dtype)
        half = _HALVES.get(multiplied(self.op))
        if half is not None and not (builder.raw_half or is_half(self.value)):
            term = Apply(half, (term,), multiplied(self.op))
        if not isinstance(term, Ref):
            term = builder.assign(("left", "right", "values")[self.number], term, multiplied(self.op))
        return term, builder.lines, builder.inner


def _walk(parts: _Parts, begin: Expr, end: Expr, query: Expr | None, score: Value, *, masks: bool) -> None:
    """The loop over keys from ``begin`` to ``end``. ``score``: what it computes of the first product's results."""
    place, atoms = parts.name("keys"), [parts.chain.key]
    keys, down = Axis(place, atoms, "loop", lane=(1, 2)), Axis(place, atoms, "loop", lane=(0, 2))
    for axis in (keys, down) if masks else ():
        axis.mask = apply("lt", AxisIndex(axis), parts.ends["N"], dtype=torch.bool)
    body = set_all((place, plus(Ref(START), Arange(parts.blocks["N"], keys))))
    body += _first_product(parts, keys, query)
    builder = parts.builder([parts.rows, keys])
    builder.reduced[parts.chain.first] = Ref(parts.name("products"), frozenset({parts.rows, keys}), torch.float32)
    if parts.chain.highest is not None:
        weights = _softmax(parts, builder, keys, score)
    else:
        weights = _elements(parts, builder, keys, score)
    parts.program.body += builder.lines
    body += builder.inner
    values, lines, inner = _Operand(parts, 2).loaded(down, (0, 2))
    parts.program.body += lines
    half = _HALVES.get(multiplied(parts.kernel.product))
    if half is not None:
        weights = Apply(half, (weights,), multiplied(parts.kernel.product))
    assert parts.kernel.contract is not None
    body += [*inner, Set(parts.acc.variable, Dot(weights, values, parts.acc, parts.precisions[parts.kernel.contract]))]
    if parts.chain.highest is not None:
        body += set_all((parts.name("highest"), parts.row("reached")))
    parts.program.body.append(For(START, begin, end, parts.blocks["N"], tuple(body)))


def _first_product(parts: _Parts, keys: Axis, query: Expr | None) -> list[Statement]:
    """The tile of the first product: with its left operand at hand, or in steps along what it sums over."""
    precision, name = parts.precisions[parts.chain.first], parts.name("products")
    axes = frozenset({parts.rows, keys})
    zeros = Full((parts.blocks["M"], parts.blocks["N"]), 0.0, torch.float32, axes)
    if query is not None:
        term, lines, inner = _Operand(parts, 1).loaded(keys, (0, 2))
        parts.program.body += lines
        return [*inner, Set(name, Dot(query, term, zeros, precision))]
    left, right = _Operand(parts, 0), _Operand(parts, 1)
    query, before, inner = left.loaded(parts.rows, (1, 2))
    term, lines, beside = right.loaded(keys, (0, 2))
    parts.program.body += [*before, *lines]
    step = set_all((parts.name("depth"), plus(Ref(parts.name("part")), Arange(parts.blocks["E"], left.axis((1, 2))))))
    step += [*inner, *beside, Set(name, Dot(query, term, Ref(name, axes, torch.float32), precision))]
    return [Set(name, zeros), For(parts.name("part"), Number(0), parts.ends["E"], parts.blocks["E"], tuple(step))]


def _tile(parts: _Parts, builder: Builder, value: Value, index: Index, keys: Axis, beyond: float, name: str) -> Ref:
    """A value of the scores' tile in a variable; ``beyond``: what it has to be after the last key."""
    builder.pad_hint = beyond
    term = builder.value(value, index)
    pad = term.pad if keys in term.axes else None
    for axis in (parts.rows, keys):
        term = spread(term, axis)
    if keys.mask is not None and pad != beyond:
        term = masked(term, keys.mask, beyond, torch.float32)
    return term if isinstance(term, Ref) else builder.assign(name, term, torch.float32)


def _softmax(parts: _Parts, builder: Builder, keys: Axis, score: Value) -> Expr:
    """The exponentials of a tile, with what is carried along brought up to it."""
    index = parts.kernel.placed[parts.chain.score]
    builder.count(score, index)
    term = _tile(parts, builder, score, index, keys, -math.inf, "scores")
    highest, reached, shift, rescaled = map(parts.row, ("highest", "reached", "shift", "rescaled"))
    infinite = apply("eq", _number("abs", reached), Number(math.inf), dtype=torch.bool)
    weights = Ref(parts.name("weights"), term.axes, torch.float32)
    builder.inner += set_all(
        (reached.variable, _number("maximum_int", highest, _folded("max", term, keys))),
        (shift.variable, _number("where", infinite, Number(0.0), reached)),
        (rescaled.variable, _number("exp", _number("sub", highest, shift))),
        (weights.variable, _number("exp", _number("sub", term, shift))),
    )
    for carried in (*parts.totals.values(), parts.acc):
        kept = _number("mul", carried, rescaled)
        whole = kept if carried == parts.acc else _number("add", kept, _folded("sum", weights, keys))
        builder.inner += set_all((carried.variable, whole))
    return weights


def _elements(parts: _Parts, builder: Builder, keys: Axis, element: Value) -> Expr:
    """The elements of a tile where they need no number of the row, with their sums carried along."""
    chain, placed = parts.chain, parts.kernel.placed
    folded = [fold.op.operand for fold in chain.totals if isinstance(fold.op, Reduce)]
    for v in (chain.element, *folded):
        builder.count(v, placed[v])
    for carried, v in zip(parts.totals.values(), folded, strict=True):
        term = _tile(parts, builder, v, placed[v], keys, 0.0, "summed")
        builder.inner += set_all((carried.variable, _number("add", carried, _folded("sum", term, keys))))
    return _tile(parts, builder, element, placed[chain.element], keys, 0.0, "weights")


def _number(function: str, *operands: Expr) -> Apply:
    return apply(function, *operands, dtype=torch.float32)


def _folded(kind: str, term: Expr, keys: Axis) -> FoldAxis:
    """A number of each row: the elements of a tile along its keys."""
    return FoldAxis(kind, term, keys, 1, True, False, torch.float32)


# -- the end ----------------------------------------------------------------------------------------------------


def _finish(parts: _Parts) -> None:
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
        number = builder.value(factor, kernel.placed[factor])
        builder.lines += set_all((parts.acc.variable, _number(function, parts.acc, number)))
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
