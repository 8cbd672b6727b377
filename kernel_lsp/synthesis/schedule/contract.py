"""Contractions (matrix products, einsum, convolution): tiled, grouped tile order, masked edges, operands in any stride, prologue and epilogue fused.

float32 products are computed to float32 accuracy: ``tf32x3`` splits each operand into two tf32 parts and adds
three products (error about 2e-7 relative, as cuBLAS in float32 has), ``bf16x6`` uses three bfloat16 parts.

float8 products are added up in float32, but tensor cores have about 14 bits for the sum until a kernel takes it from them
(Hopper; Liu et al., "DeepSeek-V3 Technical Report", 2024, section 3.3.2). ``Product.restart`` says after how many summed elements.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import sympy
import torch

from ..graph.build import FLOAT8, Build
from ..graph.map import Map, dim, dims
from ..graph.names import variable_name
from ..graph.sizes import ONE, ZERO
from ..graph.value import Contract, Input, Pointwise, Value, View
from ..kernel.access import reshaped_leaf
from ..kernel.arguments import Arguments
from ..kernel.build import Builder, loaded, masked, spread
from ..kernel.domain import Domain
from ..kernel.ir import (
    Apply,
    Axis,
    Dot,
    Expr,
    Full,
    Joined,
    Load,
    Number,
    Ref,
    Variable,
    apply,
)
from ..kernel.statements import Add, Comment, Leave, Set, Statement
from ..kernel.steps import Hints, Kernel
from ..passes.float8_products import of_float8
from .extents import alternating, contract_atoms, multiplied, total
from .noting import note_sample
from .pointwise import name_pixels
from .program import Blocks, Program, fixed
from .schedules import Product
from .summation import Summation, summation
from .tile_order import places, tile_order


def strided_operands(kernel: Kernel, stored: set[Value]) -> list[Value]:
    """Tensors that the product addresses by their own strides: arguments, and what the module holds that is not contiguous."""
    op: Contract = kernel.product
    sides = [(op, op.left, op.left_axes), (op, op.right, op.right_axes)]
    if kernel.chain is not None:
        first = kernel.chain.product
        sides[0:1] = [(first, first.left, first.left_axes), (first, first.right, first.right_axes)]
    result: list[Value] = []
    for op, operand, axes in sides:
        base = operand
        split = of_float8(op)  # a copy of a weight would take longer than its product
        while isinstance(base.op, View) and (base.op.map.picks_strides or (split and _linear(base.op.map))):
            base = base.op.operand
        # Where several axes are rows, or columns, or summed, they are one index if the operand is contiguous.
        alone = [axis for axis in axes if op.varies(axis) != (True, True)]
        folded = reshaped_leaf(operand, stored) not in (None, operand) or len(alone) > 1 or len(op.summed) > 1
        free = isinstance(base.op, Input) and (base.op.kind == "argument" or not base.op.contiguous)
        if free and base in stored and not folded:
            result.append(base)
    return result


def _linear(map: Map) -> bool:
    """Whether each index is a sum of multiples of the view's own, as of a dimension that is cut in equal parts."""
    own = dims(len(map.shape))
    for expr in map.index:
        multiples = {symbol: sympy.expand(expr).coeff(symbol, 1) for symbol in own}
        rest = sympy.expand(expr - sum(symbol * factor for symbol, factor in multiples.items()))
        if any(not e.free_symbols.isdisjoint(own) for e in (rest, *multiples.values())):
            return False
    return True


def contract(
    kernel: Kernel,
    name: str,
    arguments: Arguments,
    hints: Hints,
    stored: set[Value],
    strided: set[Value],
    tile: Product,
) -> Program:
    """A contraction with its epilogue: its axes flattened into a batch, rows, columns and what is summed."""
    value = kernel.contract
    assert value is not None
    op, domain = exchanged(kernel.product) if tile.exchanged else kernel.product, kernel.domain.copy()
    at = dict(zip(op.axes, kernel.placed[value], strict=True))
    at |= {letter: domain.atom("r", op.size(letter), reduced=True) for letter in op.summed}
    atoms = contract_atoms(kernel, op)
    depth, outer = _summed(op, at, tile)
    m, n, k_size = (total(domain, group) for group in (atoms.rows, atoms.cols, depth))
    program = Program(name, arguments, num_warps=tile.warps, num_stages=tile.stages)
    for v in kernel.outputs:
        arguments.outputs[v] = arguments.variable(f"{variable_name(v)}_ptr" if v in kernel.peaks else "out_ptr")
    for text, size in (("M", m), ("N", n), ("K", k_size)):
        arguments.name_size(size, text)
    name_pixels(kernel, arguments)
    arguments.phases |= {sympy.expand(domain.size[atom]) for atom in (*atoms.rows, *atoms.cols)}
    ends = {text: arguments.size(size) for text, size in (("M", m), ("N", n), ("K", k_size))}
    blocks = {side: program.block(f"BLOCK_{side}", getattr(tile, side.lower())) for side in "MNK"}
    one = tuple(end.is_number and end <= size for end, size in ((m, tile.m), (n, tile.n)))  # all in one block
    group = None if any(one) else program.block("GROUP", tile.group)
    exact = tuple(end.is_number and int(end) % size == 0 for end, size in ((m, tile.m), (n, tile.n)))
    rows, cols = Axis(fixed("rows"), atoms.rows, "tile"), Axis(fixed("cols"), atoms.cols, "tile")
    if kernel.exact:
        program.body += _leave_in_range(value, arguments)
    # Phases and groups of a convolution are neighbours in memory; the matrices of a batch are not, and each is read again by its tiles.
    together = op.exact is not None and op.exact.product.convolves
    pair = alternating(kernel, atoms) if tile.joined else None
    axes = tile_order(domain, program, ends, blocks, group, one, [a for a in atoms.batch if a is not pair], together)
    program.grid[0][:2] = [Blocks(m, tile.m), Blocks(n, tile.n)]
    program.body += places(rows, cols, blocks, ends, one, exact)
    parts = _Parts(domain, program, tile, op, axes, rows, cols, depth, outer, ends, blocks, stored, strided)
    tiled = [rows, cols]
    if pair is None:
        total_of_all = _sum(parts, at)
    else:
        total_of_all, tiled = _joined(parts, at, pair, one, exact)
    for v in kernel.peaks:
        program.body += note_sample(
            v, op, at, depth, total_of_all, rows, cols, blocks["M"], ends, arguments, domain, stored, program.body
        )
    ending = Builder(domain, [*axes, *tiled], arguments, stored, kernel.placed)
    ending.reduced[value] = total_of_all
    ending.before = loaded(program.body)
    for v, i in kernel.stores:
        ending.count(v, i)
    for v, i in kernel.stores:
        ending.store(v, i, kernel.destination(v, i))
    program.body += ending.lines
    of = " of the transposed result" if tile.exchanged else " of each of two phases" if pair is not None else ""
    only = "Only where the rounded operands leave their range. " if kernel.exact else ""
    program.tiling = f"{only}One program computes a {tile.m} x {tile.n} tile{of} in steps of {tile.k} along K."
    if group is not None:
        program.tiling += f" Tile order: column by column within {tile.group} row blocks."
    return program


@dataclass
class _Parts:
    """What the statements of a contraction share; ``axes``: those that the program's place gives."""

    domain: Domain
    program: Program
    tile: Product
    op: Contract
    axes: list[Axis]
    rows: Axis
    cols: Axis
    depth: list[sympy.Symbol]
    outer: list[sympy.Symbol]
    ends: dict[str, Expr]
    blocks: dict[str, Variable]
    stored: set[Value]
    strided: set[Value]


def _sum(parts: _Parts, at: dict[str, sympy.Expr]) -> Ref:
    """The statements that sum one tile over all that is summed; the variable that holds it. ``at``: the index of each letter."""
    domain, program, tile, op = parts.domain, parts.program, parts.tile, parts.op
    rows, cols, depth, outer = parts.rows, parts.cols, parts.depth, parts.outer
    ends, blocks = parts.ends, parts.blocks
    arguments, acc = program.arguments, Ref(fixed("acc"), frozenset({rows, cols}), torch.float32)
    dtype = multiplied(op)
    eighths = dtype in FLOAT8
    lengths = {} if tile.flat else _lengths(op, at, outer, Builder(domain, parts.axes, arguments, parts.stored, {}))
    if lengths:
        op = _without_what_ends_early(op)
    whole = dataclasses.replace(tile, restart=0) if eighths else tile
    scaled = 1.0 if tile.together else op.scaled
    walk = summation(program, whole, ends["K"], domain, depth, outer, scaled, lengths)
    zeros = Full((blocks["M"], blocks["N"]), 0.0, torch.float32, acc.axes)
    program.body.append(walk.before(acc, zeros))
    loop: list[Statement] = list(walk.begin)
    if tile.together:
        return _planes_together(parts, op, at, walk, loop, acc, zeros)
    terms = _terms(parts, op, at, walk, loop)
    precision = program.block("PRECISION", tile.precision) if dtype == torch.float32 else None
    if eighths and tile.restart:
        short = program.block("RESTART", tile.restart)
        loop.append(Add(acc.variable, Dot(terms[0], terms[1], zeros, short=short)))
    else:
        loop.append(Set(acc.variable, Dot(terms[0], terms[1], acc, precision)))
    program.body += walk.loops(acc, zeros, loop)
    return walk.result(acc)


def _planes_together(
    parts: _Parts,
    op: Contract,
    at: dict[str, sympy.Expr],
    walk: Summation,
    loop: list[Statement],
    acc: Ref,
    zeros: Full,
) -> Ref:
    """Each step reads a low and a high plane of each operand; the sum of the products with a low one is scaled at the end."""
    program, plane = parts.program, at[op.planes]
    names = ("low", "high"), ("high", "low")  # of the left's plane and the right's, in the first product and the second
    (low, right_high), (high, right_low) = (
        _terms(parts, op, {x: e.xreplace({plane: sympy.Integer(p)}) for x, e in at.items()}, walk, loop, names[p])
        for p in (0, 1)
    )
    small = dataclasses.replace(acc, variable=program.arguments.variable("small_acc"))
    program.body += [
        Comment(f"Of the products with a low plane, which is stored times {round(1 / op.scaled)}."),
        Set(small.variable, zeros),
    ]
    for left, right in ((low, right_high), (high, right_low)):
        loop.append(Set(small.variable, Dot(left, right, small)))
    loop.append(Set(acc.variable, Dot(high, right_high, acc)))
    program.body += walk.loops(acc, zeros, loop)
    scaled = apply("mul", small, Number(op.scaled), dtype=torch.float32)
    program.body.append(Set(acc.variable, apply("add", acc, scaled, dtype=torch.float32)))
    return acc


def _terms(
    parts: _Parts,
    op: Contract,
    at: dict[str, sympy.Expr],
    walk: Summation,
    loop: list[Statement],
    suffixes: tuple[str, str] = ("", ""),
) -> tuple[Expr, Expr]:
    """The operands of a step's product, as a tensor core takes them. What they need is added to the ``loop``, and before it.

    ``at``: the index of each letter. ``suffixes``: of the names of the tiles.
    """
    domain, program, stored = parts.domain, parts.program, parts.stored
    arguments, dtype = program.arguments, multiplied(op)
    terms: list[Expr] = []
    ends_early: list[Expr | None] = []
    beyond: list[float | None] = []  # what a side holds beyond K
    raw: list[bool] = []
    for operand, letters, side, lane, suffix in (
        (op.left, op.left_axes, parts.rows, (1, 2), suffixes[0]),
        (op.right, op.right_axes, parts.cols, (0, 2), suffixes[1]),
    ):
        along = walk.along(lane)
        index = tuple(ZERO if n == ONE else at[x] for x, n in zip(letters, operand.shape, strict=True))
        builder = Builder(domain, [*parts.axes, *walk.outside, *_in_order(side, along)], arguments, stored, {})
        builder.strided = {v: strides(v, arguments) for v in parts.strided}
        builder.raw_half = is_plain(operand, stored)
        builder.reduced_axis = along if len(parts.depth) > 1 else None
        builder.whole = side if dtype in FLOAT8 else None
        builder.before, builder.beside, builder.suffix = loaded(loop), "right", suffix
        builder.count(operand, index)
        term = builder.value(operand, index)
        beyond.append(term.pad if along in term.axes else None)
        for axis in (side, along):  # it may not vary along the tile: a constant, an expanded operand
            term = spread(term, axis)
        program.body += [line for line in builder.lines if line not in program.body]
        loop += builder.inner
        terms.append(term)
        ends_early.append(along.mask)
        raw.append(builder.raw_half or is_half(operand))
    terms = [
        term if mask is None or harmless else masked(term, mask, 0.0, operand.dtype)
        for term, mask, harmless, operand in zip(
            terms, ends_early, _harmless(*beyond), (op.left, op.right), strict=True
        )
    ]
    if dtype in (torch.float16, torch.bfloat16):
        cast = "to_float16" if dtype == torch.float16 else "to_bfloat16"
        terms = [term if half else Apply(cast, (term,), dtype) for term, half in zip(terms, raw, strict=True)]
    return terms[0], terms[1]


def _joined(
    parts: _Parts, at: dict[str, sympy.Expr], pair: sympy.Symbol, one: tuple[bool, ...], exact: tuple[bool, ...]
) -> tuple[Ref, list[Axis]]:
    """Both phases along ``pair``, whose results alternate, as one tile with twice the rows; the axes as its dimensions lie.

    Alone each phase stores every second element, which takes 1.6 times as long (docs/performance.md).
    """
    program, blocks = parts.program, parts.blocks
    found: list[Expr] = []
    for phase in range(2):
        summed = _sum(parts, {letter: index.xreplace({pair: sympy.Integer(phase)}) for letter, index in at.items()})
        kept = program.arguments.variable(("even", "odd")[phase])
        program.body.append(Set(kept, summed))
        found.append(dataclasses.replace(summed, variable=kept))
    both = Axis(parts.rows.variable, [*parts.rows.atoms, pair], "tile")
    blocks = blocks | {"M": program.block("BLOCK_PAIRS", 2 * parts.tile.m)}
    program.body += places(both, parts.cols, blocks, parts.ends, one, exact, pairs=True)
    axes = frozenset({both, parts.cols})
    result = Ref(program.arguments.variable("both"), axes, torch.float32)
    program.body.append(Set(result.variable, Joined(found[0], found[1], (blocks["N"], blocks["M"]), axes)))
    return result, [parts.cols, both]


def exchanged(op: Contract) -> Contract:
    """The same product with its operands exchanged: its rows are the columns of the other's."""
    return dataclasses.replace(op, left=op.right, right=op.left, left_axes=op.right_axes, right_axes=op.left_axes)


def _leave_in_range(product: Value, arguments: Arguments) -> list[Statement]:
    """The program ends at once where the rounded operands stayed in their range."""
    assert isinstance(product.op, Contract) and product.op.exact is not None
    exact = product.op.exact
    found: list[Statement] = []
    inside: Expr | None = None
    for peak in dict.fromkeys(exact.peaks):
        pointer = arguments.pointers[peak] = arguments.variable(f"{variable_name(peak)}_ptr")
        variable = arguments.variable(variable_name(peak))
        found.append(Set(variable, Load(pointer, Number(0), (), 0.0, torch.float32)))
        for function, bound in (("ge", exact.least), ("le", exact.most)):
            holds = apply(function, Ref(variable), Number(bound), dtype=torch.bool)
            inside = holds if inside is None else apply("and", inside, holds, dtype=torch.bool)
    assert inside is not None
    return [*found, Leave(inside)]


def _summed(op: Contract, at: dict[str, sympy.Expr], tile: Product) -> tuple[list[sympy.Symbol], list[sympy.Symbol]]:
    """The summed atoms: those that a tile has, and those that a loop around goes through.

    None of a window's is among these where the schedule is ``flat``, and not that of the planes where they are taken ``together``.
    """
    found = {letter: atom for letter in op.summed if isinstance(atom := at[letter], sympy.Symbol)}
    around = op.planes if tile.flat else op.outer
    inner = [atom for letter, atom in found.items() if letter not in around]
    outer = [letter for letter in found if letter in around and not (tile.together and letter in op.planes)]
    return inner, [found[letter] for letter in outer]


def _without_what_ends_early(op: Contract) -> Contract:
    """The same without the guards that tell where a letter has fewer places: no more of them are gone through."""
    windows = op.left
    assert isinstance(windows.op, View)
    early = {dim(op.left_axes.index(letter)) for letter, _ in op.lengths}
    guard = tuple(one for one in windows.op.map.guard if one[0].free_symbols.isdisjoint(early))
    map = dataclasses.replace(windows.op.map, guard=guard, pad=windows.op.map.pad if guard else None)
    return dataclasses.replace(op, left=Build.view(windows.op.operand, map, windows.op.name))


def _lengths(
    op: Contract, at: dict[str, sympy.Expr], outer: list[sympy.Symbol], program: Builder
) -> dict[sympy.Expr, Expr]:
    """How many places the outer atoms have of which that depends on the program's place; for 0 how many all those of one place have."""
    if set(outer) <= {at[letter] for letter in op.planes}:
        return {}
    place = {dim(d): at[letter] for d, letter in enumerate(op.axes)}
    found: dict[sympy.Expr, Expr] = {}
    for letter, length in op.lengths:
        count, atom = program.index(length.xreplace(place)), at[letter]
        found[atom] = apply("mul", found[atom], count) if atom in found else count
    return found


def _in_order(side: Axis, along: Axis) -> list[Axis]:
    """The tile's axes as its dimensions lie."""
    return [side, along] if along.lane == (1, 2) else [along, side]


def _harmless(left: float | None, right: float | None) -> tuple[bool, bool]:
    """Which sides may keep what they hold beyond K: one has to be 0 there, the other finite, since 0 times infinity is NaN."""
    finite = [pad is not None and math.isfinite(pad) for pad in (left, right)]
    return finite[0], finite[1] and 0 in (left, right)


def is_plain(operand: Value, stored: set[Value]) -> bool:
    """Whether an operand is a stored value as it is, or as views of it address it."""
    while operand not in stored and isinstance(operand.op, View):
        operand = operand.op.operand
    return operand in stored


def is_half(operand: Value) -> bool:
    """Whether what it computes is in half precision, and not in float32."""
    while isinstance(operand.op, View):
        operand = operand.op.operand
    return isinstance(operand.op, Pointwise) and operand.op.function in ("to_float16", "to_bfloat16")


def strides(value: Value, arguments: Arguments) -> list[sympy.Symbol]:
    """Stride symbols of a tensor argument; each becomes a kernel argument when first used."""
    name = variable_name(value)
    symbols = [sympy.Symbol(f"{name}_stride_{d}", integer=True, positive=True) for d in range(len(value.shape))]
    for d, symbol in enumerate(symbols):
        arguments.symbols.setdefault(symbol, symbol.name)
        arguments.strides[symbol] = (value, d)
    return symbols
