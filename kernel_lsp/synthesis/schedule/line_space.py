"""Which elementwise kernels go by lines: those that would take each element's offset apart by several sizes.

So it is where the lines of a tensor do not follow each other as those of the result do: storage that is longer than what is read of it, crops and
slices of several dimensions, sides that are padded. Of a line one index is enough, and what does not vary along it is loaded once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ..graph.sizes import ONE, ZERO
from ..kernel.execution_plan import Hints, Kernel, hint
from .extents import power_of_two, total
from .index_work import Coefficients, instructions, merged, places_of, work
from .schedules import ByLines, Flat
from .target import Target

#: Elements of a program: 16 a thread, which share what is computed once a line or once a program.
_ELEMENTS, _WARPS = 2048, 4

#: The longest piece of a line and the shortest one, in elements, and the part of a block's lanes that at least have an element.
_LONGEST, _SHORTEST, _FILLED = 1024, 16, 0.75

#: Instructions from which on it is worth while that an element's offset is taken apart less often: those of three divisions.
_MANY = 40

#: Part of the instructions of blocks of consecutive elements that lines may take to be worth a look.
_FEWER = 0.7

#: What instructions count for where a warp has several lines: what it loads and stores at once lies apart.
_APART = 1.5


def by_lines(kernel: Kernel, target: Target, hints: Hints) -> list[ByLines]:
    """Schedules by lines, the one with the fewest instructions first; none where consecutive elements are as good."""
    domain, found_places = kernel.domain, places_of(kernel)
    if found_places is None:
        return []
    places = found_places.all
    if work(domain, domain.kept, places) < _MANY:
        return []
    along = (place.get(domain.kept[-1], ZERO) for place in found_places.accesses)
    if not all(c in (ZERO, ONE) for c in along):
        return []
    first: Flat | ByLines = Flat()
    fewest = instructions(kernel, first, target, hints)
    for inner in range(_line(kernel, places), len(domain.kept)):
        for one in _of_lines(kernel, inner, hints):
            count = instructions(kernel, one, target, hints) * (_APART if one.cols < target.warp_size else 1.0)
            # Lines of more dimensions are taken apart themselves: they have to pay by as much once more.
            more = isinstance(first, Flat) or one.inner > first.inner
            if count <= (_FEWER if more else 1.0) * fewest:
                first, fewest = one, count
    if isinstance(first, Flat):
        return []
    n_rows = hint(total(domain, first.parts(domain.kept)[1]), hints)
    return [first, dataclasses.replace(first, rows=_block(n_rows, 2 * first.rows, first.rows), warps=2 * _WARPS)]


def _of_lines(kernel: Kernel, inner: int, hints: Hints) -> Iterator[ByLines]:
    """Blocks of lines of the last ``inner`` dimensions, for each number of dimensions of which a program has one index."""
    domain = kernel.domain
    length = hint(total(domain, domain.kept[-inner:]), hints)
    cols = _block(length, _LONGEST, _SHORTEST) if length >= _SHORTEST else 0
    for outer in range(len(domain.kept) - inner) if cols else ():
        n_rows = hint(total(domain, domain.kept[outer:-inner]), hints)
        if rows := _block(n_rows, max(1, _ELEMENTS // cols), 1):
            yield ByLines(rows, cols, _WARPS, outer, inner)


def _line(kernel: Kernel, places: list[Coefficients]) -> int:
    """How many of the last atoms every tensor has as one line."""
    kept = kernel.domain.kept
    return next(n for n in range(len(kept) - 1, 0, -1) if n == 1 or merged(kernel.domain, kept[-n:], places))


def _block(size: int, most: int, least: int) -> int:
    """The largest power of two between ``least`` and ``most`` whose blocks of ``size`` elements are nearly full; 0 where none is."""
    block = min(power_of_two(size), most)
    while block >= min(least, power_of_two(size)):
        if size >= _FILLED * -(-size // block) * block:
            return block
        block //= 2
    return 0
