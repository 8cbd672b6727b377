"""Contractions (matrix products, einsum, convolution): tiled, grouped tile order, masked edges, operands in any stride, prologue and epilogue fused.

float32 products are computed to float32 accuracy: ``tf32x3`` splits each operand into two tf32 parts and adds
three products (error about 2e-7 relative, as cuBLAS in float32 has), ``bf16x6`` uses three bfloat16 parts; ``halved_tiles.py`` has two
float16 parts.

float8 products are added up in float32, but tensor cores have about 14 bits for the sum until a kernel takes it from them
(Hopper; Liu et al., "DeepSeek-V3 Technical Report", 2024, section 3.3.2). ``Product.restart`` says after how many summed elements.
"""

from __future__ import annotations

import dataclasses

import sympy
import torch

from ..graph.build import FLOAT8, Build
from ..graph.map import Map, dim, dims
from ..graph.names import variable_name
from ..graph.value import Contract, Exact, Input, Value, View
from ..kernel.access import reshaped_leaf
from ..kernel.arguments import Arguments
from ..kernel.build import Builder, loaded
from ..kernel.execution_plan import Hints, Kernel
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
    apply,
)
from ..kernel.statements import Add, Leave, Set, Statement
from ..passes.float8_products import of_float8
from .convolution_axes import in_words, part_names
from .extents import alternating, contract_atoms, exchanged, multiplied, total
from .folding import folded_side, length_of_windows, lines_of_result, of_product
from .halved_tiles import in_halves
from .line_tiles import in_lines
from .operand_tiles import Parts, operand_tiles
from .planes import planes_together
from .pointwise import name_pixels
from .pooled_tiles import pooled
from .program import Blocks, Program, fixed
from .range_samples import note_samples
from .reduction import in_one_tile
from .schedules import Product
from .summation import summation
from .tile_order import in_turn, places, tile_order

#: said of a transposed convolution with a stride
_PHASES = (
    " Each phase of the stride is a convolution of its own. Along an axis, without padding and dilation, place q * stride + p of the result has"
    " phase p, and sums up place q - t of the input times place p + t * stride of the filter, for each tap t."
    "{} Where a phase has fewer results than another, what is beyond them is not stored."
)
_LEFT_OUT = " A phase with fewer taps takes fewer steps."
_MASKED = " A phase with fewer taps masks what is beyond them on both sides, since zero times infinity is NaN."


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
    program.part_names = part_names(op, at, domain)
    for v in kernel.outputs:
        own = v in kernel.peaks or v in kernel.partials
        arguments.outputs[v] = arguments.variable(f"{variable_name(v)}_ptr" if own else "out_ptr")
    for text, size in (("M", m), ("N", n), ("K", k_size)):
        arguments.name_size(size, text, least=2 if text == "K" else 16)
    name_pixels(kernel, arguments)
    alternate = any(name.startswith("phase") for name in program.part_names.values())
    of_result = arguments.phases if alternate else arguments.places
    of_result |= {sympy.expand(domain.size[atom]) for atom in (*atoms.rows, *atoms.cols)}
    ends = {text: arguments.size(size) for text, size in (("M", m), ("N", n), ("K", k_size))}
    blocks = {side: program.block(f"BLOCK_{side}", getattr(tile, side.lower())) for side in "MNK"}
    one = tuple(end.is_number and end <= size for end, size in ((m, tile.m), (n, tile.n)))  # all in one block
    # As few blocks as a group has are in L2 at once in any order. Tiles of two phases are left as they were timed: another order spills more.
    few = tuple(end.is_number and end <= size * tile.group for end, size in ((m, tile.m), (n, tile.n)))
    few = (False, False) if tile.joined else few
    group = None if any((*one, *few)) else program.block("GROUP", tile.group)
    exact = tuple(end.is_number and int(end) % size == 0 for end, size in ((m, tile.m), (n, tile.n)))
    rows, cols = Axis(fixed("rows"), atoms.rows, "tile"), Axis(fixed("cols"), atoms.cols, "tile")
    if kernel.exact:
        program.body += _leave_in_range(kernel.stands_for, arguments)
    pair = alternating(kernel, atoms) if tile.joined else None
    batch = [atom for atom in atoms.batch if atom is not pair]
    phases = bool(batch) and all(program.part_names.get(atom, "").startswith("phase") for atom in batch)
    some = bool(kernel.partials) and any(program.part_names.get(atom, "").startswith("phase") for atom in batch)
    # Phases of a convolution are neighbours in memory; the matrices of a batch are not, and each is read again by its tiles.
    together = phases or some or (op.written is not op and op.written.convolves and not kernel.partials)
    name_of_batch = "phase" if phases else "image" if kernel.partials and not some else "batch"
    begun, programs = len(program.body), _programs(tile, m, n, total(domain, batch))
    axes = tile_order(domain, program, ends, blocks, group, one, few, batch, together, name_of_batch, programs > 0)
    program.grid[0][:2] = [Blocks(m, tile.m), Blocks(n, tile.n)]
    program.body += places(rows, cols, blocks, ends, one, exact)
    parts = Parts(domain, program, tile, op, axes, rows, cols, depth, outer, ends, blocks, stored, strided)
    tiled, lines = [rows, cols], lines_of_result(kernel, op)
    if pair is None:
        total_of_all = _sum(parts, at)
    else:
        total_of_all, tiled = _joined(parts, at, pair, one, exact, lines is None)
    if kernel.peaks:
        program.body += note_samples(kernel.peaks, parts, at, total_of_all)
    ending = Builder(domain, [*axes, *tiled], arguments, stored, kernel.placed)
    ending.reduced[value] = total_of_all
    ending.before = loaded(program.body)
    both = rows if pair is None else tiled[-1]
    folded = both if folded_side(kernel, op) == "M" else cols
    length = length_of_windows(kernel)
    if lines is not None:
        along = tiled[1] if pair is not None else folded
        program.body += in_lines(kernel, program, ending, tiled, along, lines, blocks, tile, one, exact, ends)
    elif length:
        program.body += pooled(kernel, program, ending, (rows, cols), folded, length, blocks, tile, one, exact, ends)
    else:
        ending.reduced_axis = folded if kernel.folds else None
        chunk = Ref(fixed("col_block" if folded is cols else "row_block"))
        program.body += in_one_tile(kernel, ending, of_product(tiled, folded, blocks), chunk, pair)
    if programs:
        in_turn(program, begun, one, arguments.size(total(domain, batch)) if batch else None, programs)
    of = " of the transposed result" if tile.exchanged else " of each of two phases" if pair is not None else ""
    only = _only_where(kernel.stands_for) if kernel.exact else ""
    one_step = not outer and k_size.is_number and k_size <= tile.k
    steps = "in one step" if one_step else f"in steps of {tile.k}"
    program.tiling = f"{only}One program computes a {tile.m} x {tile.n} tile{of} {steps} along K."
    if programs:
        program.tiling = (
            f"{only}Each program computes {tile.m} x {tile.n} tiles{of}, one after another, {steps} along K."
        )
    if tile.halves:
        program.tiling += " Each step splits its float32 tiles into a high and a low float16 half."
    named = [[part for a in group if (part := program.part_names.get(a))] for group in (atoms.rows, atoms.cols, depth)]
    program.axes = in_words(*named)
    if alternate:
        program.axes = program.axes.replace("the pixels of all", "the pixels of one phase of all")
        program.axes = program.axes.replace("taps of the filter", "the phase's taps of the filter")
        taps = _LEFT_OUT if _end_early(op, at, outer, tile) else _MASKED
        program.axes += _PHASES.format(taps if _differ_in_taps(op) else "")
    if kernel.partials:
        side, of_one = "columns" if folded is cols else "rows", " and phase" if some and pair is None else ""
        program.tiling += (
            f" It reduces its {side}, which are pixels of one image{of_one}; later kernels put the tiles together."
        )
        if pair is not None:
            program.tiling += " What both phases come to is the part of the first; that of the second has no pixel."
    if length:
        program.tiling += (
            f" Each {length} {'rows' if folded is rows else 'columns'} are a window, of which it stores the result."
        )
    if lines is not None:
        program.tiling += f" It has whole lines of {lines.length} results along the last dimension, and reduces each."
    if group is not None:
        program.tiling += f" Tile order: column by column within {tile.group} row blocks."
    return program


def _programs(tile: Product, m: sympy.Expr, n: sympy.Expr, batch: sympy.Expr) -> int:
    """The most programs of the schedule; 0 where there are no more tiles than that."""
    known = all(size.is_number for size in (m, n, batch))
    return 0 if known and -(-m // tile.m) * -(-n // tile.n) * batch <= tile.programs else tile.programs


def _sum(parts: Parts, at: dict[str, sympy.Expr]) -> Ref:
    """The statements that sum one tile over all that is summed; the variable that holds it. ``at``: the index of each letter."""
    domain, program, tile, op = parts.domain, parts.program, parts.tile, parts.op
    rows, cols, depth, outer = parts.rows, parts.cols, parts.depth, parts.outer
    ends, blocks = parts.ends, parts.blocks
    arguments, acc = program.arguments, Ref(fixed("acc"), frozenset({rows, cols}), torch.float32)
    dtype = multiplied(op)
    eighths = dtype in FLOAT8
    lengths: dict[sympy.Expr, Expr] = {}
    if _end_early(op, at, outer, tile):
        lengths = _lengths(op, at, Builder(domain, parts.axes, arguments, parts.stored, {}))
        op = _without_what_ends_early(op)
    in_steps = eighths or tile.halves or (tile.together and not op.raised)  # a sum begins again in each step, or never
    whole = dataclasses.replace(tile, restart=0) if in_steps else tile
    scaled = 1.0 if tile.together else op.scaled
    walk = summation(program, whole, ends["K"], domain, depth, outer, scaled, lengths)
    zeros = Full((blocks["M"], blocks["N"]), 0.0, torch.float32, acc.axes)
    program.body.append(walk.before(acc, zeros))
    loop: list[Statement] = list(walk.begin)
    if tile.together:
        return planes_together(parts, op, at, walk, loop, acc, zeros)
    terms = operand_tiles(parts, op, at, walk, (walk.along((1, 2)), walk.along((0, 2))), loop)
    precision = program.block("PRECISION", tile.precision) if dtype == torch.float32 else None
    if tile.halves:
        assert precision is not None
        in_halves(parts, op, at, walk, loop, terms, acc, zeros, precision)
        return acc
    if tile.precision == "tf32":
        terms = _nearest(terms, op.nearest)
    if eighths and tile.restart:
        short = program.block("RESTART", tile.restart)
        loop.append(Add(acc.variable, Dot(terms[0], terms[1], zeros, short=short)))
    else:
        loop.append(Set(acc.variable, Dot(terms[0], terms[1], acc, precision)))
    program.body += walk.loops(acc, zeros, loop)
    return walk.result(acc)


def _nearest(terms: tuple[Expr, Expr], which: tuple[bool, bool]) -> tuple[Expr, Expr]:
    """The operands of a product, of which those ``which`` say are rounded to TF32."""
    left, right = (
        Apply("to_tf32", (term,), torch.float32) if rounds else term for term, rounds in zip(terms, which, strict=True)
    )
    return left, right


def _joined(
    parts: Parts,
    at: dict[str, sympy.Expr],
    pair: sympy.Symbol,
    one: tuple[bool, ...],
    exact: tuple[bool, ...],
    stored: bool,
) -> tuple[Ref, list[Axis]]:
    """Both phases along ``pair``, whose results alternate, as one tile with twice the rows; the axes as its dimensions lie.

    ``stored``: as such a tile, and not in another shape: then its rows and columns are given their indices here.

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
    if stored:
        program.body += places(both, parts.cols, blocks, parts.ends, one, exact, pairs=True)
    axes = frozenset({both, parts.cols})
    result = Ref(program.arguments.variable("both"), axes, torch.float32)
    program.body.append(Set(result.variable, Joined(found[0], found[1], (blocks["N"], blocks["M"]), axes)))
    return result, [parts.cols, both]


def _leave_in_range(exact: Exact, arguments: Arguments) -> list[Statement]:
    """The program ends at once where the rounded operands stayed in their range, and no side is short."""
    found: list[Statement] = []
    inside: Expr | None = None
    for peak in dict.fromkeys(exact.peaks):
        pointer = arguments.pointers[peak] = arguments.variable(f"{variable_name(peak)}_ptr")
        variable = arguments.variable(variable_name(peak))
        found.append(Set(variable, Load(pointer, Number(0), (), 0.0, torch.float32)))
        for function, bound in (("ge", exact.least), ("le", exact.most_of(peak))):
            holds = apply(function, Ref(variable), Number(bound), dtype=torch.bool)
            inside = holds if inside is None else apply("and", inside, holds, dtype=torch.bool)
    assert inside is not None
    for size in exact.sides:
        holds = apply("ge", arguments.size(size), Number(exact.least_side), dtype=torch.bool)
        inside = apply("and", inside, holds, dtype=torch.bool)
    return [*found, Leave(inside)]


def _only_where(exact: Exact) -> str:
    """When a kernel runs that computes what a product of rounded operands stands for, as a sentence."""
    short = f", or where the product has fewer than {exact.least_side} rows, columns or summed elements"
    return f"Only where the rounded operands leave their range{short if exact.sides else ''}. "


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


def _end_early(op: Contract, at: dict[str, sympy.Expr], outer: list[sympy.Symbol], tile: Product) -> bool:
    """Whether loops over places end where the program's place has fewer of them; else what is beyond is masked."""
    return bool(op.lengths) and not tile.flat and not set(outer) <= {at[letter] for letter in op.planes}


def _differ_in_taps(op: Contract) -> bool:
    """Whether some phases of a transposed convolution have fewer taps: along letters of ``lengths``, or where its weight's view is guarded."""
    return bool(op.lengths) or (isinstance(op.right.op, View) and bool(op.right.op.map.guard))


def _lengths(op: Contract, at: dict[str, sympy.Expr], program: Builder) -> dict[sympy.Expr, Expr]:
    """How many places the outer atoms have of which that depends on the program's place; for 0 how many all those of one place have."""
    place = {dim(d): at[letter] for d, letter in enumerate(op.axes)}
    found: dict[sympy.Expr, Expr] = {}
    for letter, length in op.lengths:
        count, atom = program.index(length.xreplace(place)), at[letter]
        found[atom] = apply("mul", found[atom], count) if atom in found else count
    return found
