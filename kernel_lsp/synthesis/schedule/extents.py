"""Extents of a planned kernel: how large it is, and how it lies in memory."""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass

import sympy
import torch

from ..graph.build import FLOAT8
from ..graph.map import dims
from ..graph.sizes import ONE, ZERO, offset, same
from ..graph.value import Contract, Sample, Scan
from ..kernel.domain import Domain, Unalignable
from ..kernel.execution_plan import Hints, Kernel, hint

#: Longest row, in elements, that one program keeps in registers.
LONGEST_ROW = 32768


def product(sizes: list[sympy.Expr]) -> sympy.Expr:
    """The product of sizes, expanded; 1 of none."""
    return sympy.expand(sympy.prod(sizes)) if sizes else sympy.Integer(1)


def total(domain: Domain, atoms: list[sympy.Symbol]) -> sympy.Expr:
    """How many elements lie along atoms together."""
    return product([domain.size[a] for a in atoms])


def power_of_two(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << max(0, n - 1).bit_length()


def main_access(kernel: Kernel, hints: Hints) -> dict[sympy.Symbol, sympy.Expr]:
    """The atoms' coefficients in the largest load that varies along the reduced atoms."""
    best: dict[sympy.Symbol, sympy.Expr] = {}
    most = -1
    for _, index, shape in kernel.accesses:
        try:
            coefficients, _ = kernel.domain.terms(offset(index, shape))
        except Unalignable:
            continue
        size = math.prod(hint(kernel.domain.size[a], hints) for a in coefficients)
        if size > most and any(a in coefficients for a in kernel.domain.reduced):
            best, most = coefficients, size
    return best


def contiguous_is_kept(kernel: Kernel, hints: Hints) -> bool:
    """Whether neighbours in memory, in the largest load of a reduction, belong to different results."""
    coefficients = main_access(kernel, hints)
    unit = [a for a, c in coefficients.items() if c == ONE and hint(kernel.domain.size[a], hints) > 1]
    return bool(unit) and unit[0] in kernel.domain.kept


#: Elements that a result may have where its program takes them one after the other, written out.
_MOST_UNROLLED = 64


def goes_over_windows(kernel: Kernel, hints: Hints) -> bool:
    """Whether results are of few elements each, which lie among those of other results: pooling, small convolutions."""
    length = total(kernel.domain, kernel.domain.reduced)
    if kernel.in_chunks or not length.is_Integer or not 0 < length <= _MOST_UNROLLED:
        return False
    if any(isinstance(v.op, Scan) for v in kernel.folds):  # its results go along what would be written out
        return False
    found = {atom: hint(c, hints) for atom, c in main_access(kernel, hints).items()}
    reduced = [(abs(c), int(kernel.domain.size[a])) for a, c in found.items() if a in kernel.domain.reduced]
    reach = sum(c * (n - 1) for c, n in reduced) + 1
    kept = [(abs(c), hint(kernel.domain.size[a], hints)) for a, c in found.items() if a in kernel.domain.kept]
    # The next result begins before this one ends, and a walk along results comes by elements that this one has, too.
    return any(0 < c < reach and any(c * n > step for step, _ in reduced) for c, n in kept)


def step_of_windows(kernel: Kernel, hints: Hints) -> int:
    """Elements in memory from the window of a result to the nearest one of another; 0 where there is no other."""
    size, kept = kernel.domain.size, kernel.domain.kept
    found = [
        abs(hint(c, hints)) for a, c in main_access(kernel, hints).items() if a in kept and hint(size[a], hints) > 1
    ]
    return min(filter(None, found), default=0)


#: Results of a lane that share what they load; of these, the part that has to be within the result; the part of the loads that may be left;
#: loads that are written out, before the compiler keeps equal ones; results of a line below which its windows are not taken so.
_ROWS, _WITHIN, _LOADED, _MOST_LOADS, _NARROW = (8, 4, 2), 0.75, 0.72, 512, 7


def rows_that_share(kernel: Kernel, hints: Hints) -> int:
    """How many results below each other should be of one lane, since their windows have elements in common; 1 where that does not pay."""
    domain = kernel.domain
    found = {atom: hint(c, hints) for atom, c in main_access(kernel, hints).items()}
    if len(domain.kept) < 2 or found.get(domain.kept[-1]) not in (1, 2) or kernel.partials or kernel.peaks:
        return 1
    height, width = (hint(domain.size[atom], hints) for atom in domain.kept[-2:])
    step, line = (
        found.get(domain.kept[-2], 0),
        width // 2,
    )  # what lies so far behind is in another row: windows are narrow
    if width < _NARROW or step < line:
        return 1
    window = {atom: int(domain.size[atom]) for atom in domain.reduced}
    below = [range(0, found[a] * n, found[a]) for a, n in window.items() if abs(found.get(a, 0)) >= line]
    lines = [sum(places) for places in itertools.product(*below)]
    # What is computed of several tensors, to be summed, loads each of them; a weight is not loaded by rows.
    symbols = [{a for e in index for a in domain.resolve(e).free_symbols} for _, index, _ in kernel.accesses]
    each = sum(domain.kept[-2] in one and not one.isdisjoint(domain.reduced) for one in symbols)
    for rows in _ROWS:
        loaded = len({row * step + place for row in range(rows) for place in lines})
        within, written = height / (-(-height // rows) * rows), rows * each * math.prod(window.values())
        if within >= _WITHIN and loaded <= _LOADED * rows * len(lines) and written <= _MOST_LOADS:
            return rows
    return 1


def shared_by(kernel: Kernel, hints: Hints, l2: int) -> int:
    """How many leading dimensions of an elementwise kernel read operands again that ``l2`` bytes no longer hold by then; 0 for none.

    In the order of memory a tensor that all rows share comes round after everything else that a row moves. Half of the cache counts, an
    estimate: what is streamed through it displaces other things before it is full.
    """
    domain, found = kernel.domain, []
    for value, index, shape in kernel.accesses:
        try:
            coefficients, _ = domain.terms(offset(index, shape))
        except Unalignable:
            return 0
        found.append((value.dtype.itemsize, {a for a in domain.kept if coefficients.get(a, ZERO) != ZERO}))
    found += [(value.dtype.itemsize, set(domain.kept)) for value, _ in kernel.stores]
    for count in range(1, len(domain.kept)):
        rows, inner = domain.kept[:count], domain.kept[count:]
        shared = sum(size for size, atoms in found if atoms == set(inner))
        length = total(domain, inner)
        if not shared or not length.is_Integer or hint(total(domain, rows), hints) < 2:
            continue
        moved = shared + sum(size for size, atoms in found if atoms >= set(inner) and atoms != set(inner))
        if int(length) * moved > l2 // 2:
            return count
    return 0


#: Elements of a channel that has programs of its own, and how much more lanes these may have; the same where each lane has several results.
_LEAST_CHANNEL, _MOST_LANES = 2048, 1.15
_LEAST_OF_ROWS, _MOST_OF_ROWS = 256, 1.35


def large_channel(kernel: Kernel, hints: Hints, block: int, *, in_rows: bool = False) -> int:
    """How many trailing kept atoms, which windows go along, have enough results that blocks fill them well; 0 where none have, or all would."""
    least, most = (_LEAST_OF_ROWS, _MOST_OF_ROWS) if in_rows else (_LEAST_CHANNEL, _MOST_LANES)
    kept, reduced = kernel.domain.kept, set(kernel.domain.reduced)
    symbols = [kernel.domain.resolve(e).free_symbols for _, index, _ in kernel.accesses for e in index]
    along = set().union(*(found for found in symbols if found & reduced))
    for count in range(1, len(kept)):
        if kept[-count] not in along:
            return 0
        size = hint(total(kernel.domain, kept[-count:]), hints)
        if size >= least and -(-size // block) * block <= most * size:
            return count
    return 0


def inner_atoms(kernel: Kernel, hints: Hints) -> list[sympy.Symbol]:
    """The trailing kept atoms that the main load walks contiguously."""
    coefficients = main_access(kernel, hints)
    domain, run = kernel.domain, []
    want: sympy.Expr = ONE
    for atom in reversed(domain.kept):
        if same(coefficients.get(atom, ZERO), want):
            run.append(atom)
            want = sympy.expand(want * domain.size[atom])
        elif run:
            break
    return run[::-1] or [domain.kept[-1]]


@dataclass(frozen=True)
class ContractAtoms:
    """The atoms of a contraction's axes by their role. Along a batch both operands vary, along rows the left alone."""

    rows: list[sympy.Symbol]
    cols: list[sympy.Symbol]
    batch: list[sympy.Symbol]


def contract_atoms(kernel: Kernel, op: Contract | None = None) -> ContractAtoms:
    """``op``: the kernel's product as a schedule takes it, where that is not as it stands in the graph."""
    assert kernel.contract is not None
    op, found = op or kernel.product, ContractAtoms([], [], [])
    order = [*kernel.domain.kept, *kernel.domain.reduced]
    for letter, index in zip(op.axes, kernel.placed[kernel.contract], strict=True):
        left, right = op.varies(letter)
        group = found.batch if left and right else found.cols if right else found.rows
        group += sorted(index.free_symbols & set(kernel.domain.size), key=order.index)
    if kernel.partials:  # a tile has pixels of one image
        for group in (found.rows, found.cols):
            if not kernel.domain.reduced or not set(kernel.domain.reduced) <= set(group):
                continue
            found.batch[:0] = [atom for atom in group if atom not in kernel.domain.reduced]
            group[:] = [atom for atom in group if atom in kernel.domain.reduced]
    elif kernel.folds:  # the elements of a window are neighbours in a tile
        for group in (found.rows, found.cols):
            group.sort(key=kernel.domain.reduced.__contains__)
    return found


def exchanged(op: Contract) -> Contract:
    """The same product with its operands exchanged: its rows are the columns of the other's."""
    return dataclasses.replace(
        op,
        left=op.right,
        right=op.left,
        left_axes=op.right_axes,
        right_axes=op.left_axes,
        nearest=(op.nearest[1], op.nearest[0]),
    )


def alternating(kernel: Kernel, atoms: ContractAtoms) -> sympy.Symbol | None:
    """The atom of a contraction's batch, of two places, whose results lie in turn in memory: two phases of a transposed convolution."""
    found: set[sympy.Symbol] = {a for a in atoms.batch if kernel.domain.size[a] == 2}
    whole = kernel.stores[: len(kernel.stores) - len(kernel.partials)]
    for value, index in whole:
        filled, at = kernel.destination(value, index)
        try:
            coefficients, _ = kernel.domain.terms(offset(at, filled.shape))
        except Unalignable:
            return None
        if not any(coefficients.get(a) == 2 for a in atoms.rows):
            return None
        found &= {a for a in found if coefficients.get(a) == ONE}
    return min(found, key=str, default=None) if whole else None


def product_extents(kernel: Kernel, hints: Hints) -> tuple[int, int, int, int, torch.dtype]:
    """(rows, columns, summed, batch, dtype) of a contraction for the example inputs."""
    op, atoms = kernel.product, contract_atoms(kernel)
    rows, cols, batch = (hint(total(kernel.domain, group), hints) for group in (atoms.rows, atoms.cols, atoms.batch))
    summed = hint(product([op.size(letter) for letter in op.summed]), hints)
    return rows, cols, summed, batch, multiplied(op)


def share_of_places(op: Contract, hints: Hints) -> float:
    """Of the outer places, the part that a result has on average, see ``Contract.lengths``."""
    share = 1.0
    for letter, length in op.lengths:
        (place,) = length.free_symbols & set(dims(len(op.axes)))
        here = {symbol: sympy.Integer(n) for symbol, n in hints.items()}
        every = range(hint(op.size(op.axes[dims(len(op.axes)).index(place)]), hints))
        mean = sum(int(length.xreplace(here | {place: sympy.Integer(i)}).doit()) for i in every) / len(every)
        share *= mean / hint(op.size(letter), hints)
    return share


def multiplied(op: Contract) -> torch.dtype:
    """The dtype in which a product's operands are multiplied; of two float8 the left one's, since all of them are alike here."""
    if op.left.dtype in FLOAT8 and op.right.dtype in FLOAT8:
        return op.left.dtype
    return torch.promote_types(op.left.dtype, op.right.dtype)


def split_in_tile(op: Contract) -> tuple[bool, bool]:
    """Whether the left operand, and the right one, is split into planes where its tile is read, see ``passes/thin_products.py``."""
    samples = sum(isinstance(v.op, Sample) for v in op.exact.peaks) if op.exact is not None and op.planes else 0
    return samples > 0, samples > 1


#: Elements of the result's last dimension from which tiles are worth it, and of what is turned to it.
LEAST_TURNED, _FEW_TURNED = 16, 8


def transposed_atoms(kernel: Kernel, hints: Hints) -> list[sympy.Symbol]:
    """Atoms other than the last along which a large operand is contiguous: flat order would read it with a stride. Empty where tiles are not worth it.

    Several where one alone has fewer than 16: the taps of a convolution's weight, of which the result has the channels last.
    """
    domain = kernel.domain
    if len(domain.kept) < 2:
        return []
    last = domain.kept[-1]
    if hint(domain.size[last], hints) < LEAST_TURNED:
        return []
    for _, index, shape in kernel.accesses:
        try:
            coefficients, _ = domain.terms(offset(index, shape))
        except Unalignable:
            continue
        if coefficients.get(last, ZERO) in (ZERO, ONE):
            continue
        others = [atom for atom in domain.kept if atom in coefficients and atom is not last]
        run = _run(others, coefficients, domain)
        if run and hint(domain.size[run[-1]], hints) >= LEAST_TURNED:
            return run[-1:]
        if run and hint(total(domain, run), hints) >= _FEW_TURNED:
            return run
    return []


def _run(atoms: list[sympy.Symbol], coefficients: dict[sympy.Symbol, sympy.Expr], domain: Domain) -> list[sympy.Symbol]:
    """Those of ``atoms`` that are neighbours, and go along memory as one index."""
    run: list[sympy.Symbol] = []
    for atom in reversed(atoms):
        if same(coefficients[atom], total(domain, run)):
            run.insert(0, atom)
        elif run:
            break
    return run
