"""Instructions that an elementwise kernel takes beside its arithmetic: what its offsets are divided by, and its loads.

Where an axis has several atoms, an index along it has to be taken apart for each tensor in which these are not neighbours as they are in the
axis: ``offsets // width % height`` (``kernel/build.py``). Divisors that are known only at launch take the most of that.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy

from ..graph.division import Quotient, Remainder, terms
from ..graph.sizes import ONE, ZERO, offset, same
from ..graph.value import Pointwise, operands
from ..kernel.domain import Domain, Unalignable
from ..kernel.execution_plan import Hints, Kernel, hint
from .extents import total
from .schedules import ByLines, Flat
from .target import Target

#: Coefficients of a domain's atoms in the offset of one load or store.
Coefficients = dict[sympy.Symbol, sympy.Expr]

#: Instructions of a division or a remainder, from what sm_90 runs (docs/performance.md): by a number known at launch, of a vector, whose reciprocal a
#: thread computes once; the same of a scalar; by a constant; by a power of two. A remainder beside the quotient of the same numbers is a product and a
#: difference.
_RUNTIME, _SCALAR, _CONSTANT, _SHIFT, _BESIDE = 14, 30, 5, 1, 2

#: Instructions of a load or a store: offset, mask, the access, a conversion. Of an elementwise operation one is counted.
_ACCESS = 4

#: Part of the instructions that a GPU could issue which such kernels reach: 25e12 of 33e12 on an H100 (docs/performance.md).
_ISSUED = 0.75


@dataclass(frozen=True)
class Places:
    """Where a kernel's loads and stores lie: what each offset has of the domain's atoms, and what each that is divided in an offset has."""

    accesses: list[Coefficients]
    divided: list[Coefficients]

    @property
    def all(self) -> list[Coefficients]:
        """Of both."""
        return self.accesses + self.divided


def places_of(kernel: Kernel) -> Places | None:
    """None where an offset is not linear, but for quotients and remainders."""
    domain = kernel.domain
    indices = [(index, shape) for _, index, shape in kernel.accesses]
    indices += [(index, filled.shape) for filled, index in (kernel.destination(v, i) for v, i in kernel.stores)]
    found = Places([], [])
    left = [(offset(index, shape), found.accesses) for index, shape in indices]
    while left:
        place, into = left.pop()
        try:
            linear, rest = domain.terms(place)
        except Unalignable:
            return None
        divided = [part for _, part in terms(rest) if part.free_symbols & domain.size.keys()]
        if not all(isinstance(part, Quotient | Remainder) for part in divided):
            return None
        left += [(part.args[0], found.divided) for part in divided]
        into.append({atom: c for atom, c in linear.items() if c != ZERO})
    return found


def merged(domain: Domain, atoms: list[sympy.Symbol], places: list[Coefficients]) -> bool:
    """Whether an index along all of ``atoms`` addresses every tensor as it is."""
    return not _divisions(domain, atoms, places)


def _divisions(domain: Domain, atoms: list[sympy.Symbol], places: list[Coefficients]) -> set[tuple[str, sympy.Expr]]:
    """What an index along ``atoms`` is divided by, and what the quotients are taken modulo, as ``Builder._runs`` does."""
    found: set[tuple[str, sympy.Expr]] = set()
    for place in places:
        inner, end = ONE, len(atoms)
        while end > 0:
            begin, run = end - 1, domain.size[atoms[end - 1]]
            while begin > 0 and same(
                place.get(atoms[begin - 1], ZERO), place.get(atoms[begin], ZERO) * domain.size[atoms[begin]]
            ):
                begin -= 1
                run = sympy.expand(run * domain.size[atoms[begin]])
            if place.get(atoms[end - 1], ZERO) != ZERO:
                if inner != ONE:
                    found.add(("//", inner))
                if begin > 0:
                    found.add(("%", run) if inner == ONE else (f"// {inner} %", run))
            inner, end = sympy.expand(inner * run), begin
    return found


def work(domain: Domain, atoms: list[sympy.Symbol], places: list[Coefficients], runtime: int = _RUNTIME) -> int:
    """Instructions that take one index along ``atoms`` apart; ``runtime``: of a division by a number known at launch."""
    found, instructions = _divisions(domain, atoms, places), 0
    for operator, size in found:
        if operator == "%" and ("//", size) in found:
            instructions += _BESIDE
        elif size.is_Integer:
            instructions += _SHIFT if int(size).bit_count() == 1 else _CONSTANT
        else:
            instructions += runtime
    return instructions


def instructions(kernel: Kernel, schedule: Flat | ByLines, target: Target, hints: Hints) -> float:
    """Lane instructions of all threads; 0 where they are not known. What is divided in an offset counts as an access."""
    found = places_of(kernel)
    if found is None:
        return 0.0
    places = found.all
    domain, elements = kernel.domain, hint(total(kernel.domain, kernel.domain.kept), hints)
    if isinstance(schedule, Flat):
        return float(elements * (work(domain, domain.kept, places) + _ACCESS * len(places) + _arithmetic(kernel)))
    outer, rows, cols = schedule.parts(domain.kept)
    # All threads of a warp have the same rows, and each repeats what is done once a row, or once a program.
    of_thread = schedule.rows * schedule.cols / (schedule.warps * target.warp_size)
    along_row = min(of_thread, max(1.0, schedule.cols / target.warp_size))
    each = work(domain, cols, places) + work(domain, rows, places) / along_row
    # The program's number is taken apart by two divisions, and by two remainders beside them.
    each += (work(domain, outer, places, _SCALAR) + 2 * (_SCALAR + _BESIDE)) / of_thread
    each += _arithmetic(kernel)
    for place in places:
        shared = 1.0 if place.keys() & set(cols) else along_row if place.keys() & set(rows) else of_thread
        each += _ACCESS / shared
    n_rows, n_cols = (hint(total(domain, atoms), hints) for atoms in (rows, cols))
    lanes = -(-n_rows // schedule.rows) * schedule.rows * -(-n_cols // schedule.cols) * schedule.cols
    return each * elements * lanes / max(1, n_rows * n_cols)


def _arithmetic(kernel: Kernel) -> int:
    """Elementwise operations between what the kernel loads and what it stores."""
    left, seen = [v for v, _ in kernel.stores], set(kernel.leaves)
    count = 0
    while left:
        value = left.pop()
        if value not in seen:
            seen.add(value)
            count += isinstance(value.op, Pointwise)
            left += operands(value)
    return count


def issued(target: Target) -> float:
    """Lane instructions a second. Of each the rate of float32 counts two operations."""
    return _ISSUED * target.rate("float32") / 2
