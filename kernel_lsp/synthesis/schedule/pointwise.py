"""Convolutions of one element: tiles where the input is rounded as it is read, and how pixels are addressed."""

from __future__ import annotations

import dataclasses

import sympy

from ..graph.sizes import same_shape
from ..graph.value import View, numel
from ..kernel.arguments import Arguments
from ..kernel.execution_plan import Hints, Kernel, hint
from ..passes.layout import is_pointwise
from .extents import power_of_two
from .schedules import Product
from .target import Target

#: Bytes of an element on chip: of the input in float32, of the weight in float16.
_INPUT, _WEIGHT = 4, 2

#: What Triton looks whether an argument is a multiple of.
_SEEN = 16

#: By how much the steps of a sum may be longer than it; tiles that are offered.
_NEARLY, _MOST = 1.2, 3


def name_pixels(kernel: Kernel, arguments: Arguments) -> None:
    """Make how many elements a channel has one argument of the kernel.

    Triton looks whether an argument is a multiple of 16, and not what a product of two comes to: 56 * 56 is one, 56 is not. Then 16 bytes are
    read at once.
    """
    op = kernel.product
    windows = op.left if kernel.peaks and not op.planes else op.right if is_pointwise(op) else None
    if windows is None or not isinstance(windows.op, View):
        return
    pixels = sympy.expand(sympy.prod(windows.op.operand.shape[2:]))
    if pixels.is_Mul:
        arguments.factors[pixels] = "pixels"


def pointwise_tiles(kernel: Kernel, m: int, n: int, k: int, batch: int, target: Target, hints: Hints) -> list[Product]:
    """Tiles of a convolution of one element whose input is rounded as it is read, the default first.

    All columns in one tile if they fit, so that the input is read from memory once and from shared memory seldom. Where elements are read one
    by one, a thread has an address for each: with more than 32 of them it spills (docs/performance.md). The same is so of a result that something
    of its size is added to, which a thread holds beside it: tiles are narrow then.
    """
    together = _read_together(kernel, hints)
    narrow = [*([Product(128, 64, 64, 4, 3)] if together else []), *([Product(64, 128, 64, 4, 3)] if n > 64 else [])]
    wide = [
        *([Product(128, 256, 64, 8, 3)] if n > 128 and together else []),
        *([Product(128, 128, 64, 8, 3)] if n > 64 else []),
    ]
    tiles = [*narrow, *wide[-1:]] if together and _reads_as_many(kernel) else [*wide, *narrow]
    tiles.append(Product(64, 64, 64, 4, 3))
    enough = [tile for tile in tiles if -(-m // tile.m) * -(-n // tile.n) * batch >= target.multiprocessors] or tiles[
        -1:
    ]
    return list(dict.fromkeys(_fitted(tile, m, n, k, target) for tile in enough))[:_MOST]


def _reads_as_many(kernel: Kernel) -> bool:
    """Whether what completes the product reads a tensor that varies along all dimensions of the result."""
    along = [kernel.domain.resolve(e).free_symbols for e in kernel.domain.origin]
    kept = set().union(*along) & kernel.domain.size.keys()
    found = ({a for e in index for a in kernel.domain.resolve(e).free_symbols} for _, index, _ in kernel.accesses)
    return any(kept <= symbols for symbols in found)


def _read_together(kernel: Kernel, hints: Hints) -> bool:
    """Whether Triton sees that elements of the input follow each other in memory."""
    windows = kernel.product.left
    assert isinstance(windows.op, View)
    pixels, places = windows.op.operand.shape[2:], windows.shape[1:-1]
    count = hint(numel(pixels), hints)
    return count == 1 or (same_shape(pixels, places) and count % _SEEN == 0)


def _fitted(tile: Product, m: int, n: int, k: int, target: Target) -> Product:
    """Never more than the problem needs, steps that are nearly full, and no more stages than there are steps or than shared memory holds."""
    depth = tile.k if -(-k // tile.k) * tile.k <= _NEARLY * k else tile.k // 2
    rows, columns = (max(16, min(most, power_of_two(size))) for most, size in ((tile.m, m), (tile.n, n)))
    depth = max(16, min(depth, power_of_two(k)))
    stages = min(tile.stages, max(2, -(-k // depth)))
    while stages > 1 and (rows * _INPUT + columns * _WEIGHT) * depth * stages > target.shared_memory:
        stages -= 1
    return dataclasses.replace(tile, m=rows, n=columns, k=depth, stages=stages)
