"""Which tiles a product may have on a target, the one that rules choose first."""

from __future__ import annotations

import dataclasses
import math

import torch

from ..kernel.execution_plan import Hints, Kernel, hint
from ..passes.float8_products import of_float8
from ..passes.planes import SHORT_SUM
from .extents import (
    product_extents,
    split_in_tile,
)
from .float8_space import float8_products
from .halved_space import halved
from .pointwise import pointwise_tiles
from .product_fitting import fitted_tile, restart_after, sum_varies
from .rewritings import halves_pay
from .schedules import RESTART, Product
from .target import Target
from .thin_tiles import thin_tiles
from .walked_space import walked
from .window_tiles import window_tiles

#: Programs of a kernel that seldom has anything to do (docs/performance.md).
_MOST_PROGRAMS = 1024


def products(kernel: Kernel, target: Target, hints: Hints) -> list[Product]:
    """Legal tiles, the default first."""
    m, n, k, batch, dtype = product_extents(kernel, hints)
    if kernel.exact:  # seldom runs, but is compiled: a small tile
        tile = fitted_tile(Product(64, 64, 32, 4, 3, programs=_MOST_PROGRAMS), m, n, k, dtype.itemsize, target)
        # Also for products of few results: long sums in tf32x3 are further from eager's than is allowed there, in bf16x6 they are not.
        six = dataclasses.replace(tile, precision="bf16x6", restart=restart_after(tile, k, sum_varies(kernel.product)))
        return [six if kernel.stands_for.sides else tile]
    if kernel.product.raised and any(split_in_tile(kernel.product)):
        return window_tiles(n, k // hint(kernel.product.size(kernel.product.planes), hints))
    if any(split_in_tile(kernel.product)):
        return list(thin_tiles(m, n, k // hint(kernel.product.size(kernel.product.planes), hints), batch, target))
    if kernel.peaks:
        return list(pointwise_tiles(kernel, m, n, k, batch, target, hints))
    if of_float8(kernel.product):
        return float8_products(kernel.product, m, n, k, batch, target)
    if (op := kernel.product).begins_again:
        return list(_begun_again(m, n, k // hint(op.size(op.planes), hints), batch, op.begins_again, target))
    if op.outer or op.exact is not None:
        around, products = (math.prod(hint(op.size(x), hints) for x in letters) for letters in (op.outer, op.planes))
        return walked(kernel, m, n, k // around, k // products, batch, dtype.itemsize, target, hints)
    split: list[Product] = []
    # A tile of whole rows, or columns, is too wide for registers beside its halves.
    if dtype == torch.float32 and not (op.tf32 or kernel.folds) and halves_pay(op, target, hints):
        split = [fitted_tile(tile, m, n, k, dtype.itemsize, target) for tile in halved(m, n, batch, target)]
    tiles = -(-m // 128) * -(-n // 64) * batch
    first = Product(128, 64, 32, 8, 3)
    if dtype.itemsize == 2 and tiles >= 2 * target.multiprocessors:
        first = Product(128, 128, 32, 8, 3)
    elif tiles < target.multiprocessors:  # smaller tiles, so that every multiprocessor has one
        first = Product(64, 64, 32, 4, 4)
    others = [
        Product(64, 64, 16, 4, 4),
        Product(128, 128, 32, 8, 3),
        *([Product(128, 64, 32, 8, 3, "bf16x6")] if dtype.itemsize == 4 else []),
    ]
    fitted = [fitted_tile(tile, m, n, k, dtype.itemsize, target) for tile in [first, *others]]
    if kernel.product.tf32:
        fitted = [dataclasses.replace(tile, precision="tf32") for tile in fitted]
    fitted = [
        dataclasses.replace(tile, restart=restart_after(tile, k, sum_varies(kernel.product)))
        if tile.precision == "bf16x6" and k > RESTART
        else tile
        for tile in fitted
    ]
    fitted = list(dict.fromkeys(fitted))
    return [*dict.fromkeys(split), *([fitted[0], fitted[-1]] if split else fitted)]  # the last one errs the least


def _begun_again(m: int, n: int, k: int, batch: int, depth: int, target: Target) -> list[Product]:
    """For products of planes whose sum begins again in each step of ``depth``: a step takes both planes of each operand, and its own sum is in registers, too."""
    tiles = [Product(128, 128, 32, 8, 3), Product(64, 128, 32, 4, 3), Product(64, 64, 32, 4, 3)]
    if k <= SHORT_SUM:  # one step: of several programs on a multiprocessor some store while others load
        tiles = [Product(128, 64, 32, 8, 3), Product(64, 64, 32, 4, 3), Product(128, 128, 32, 8, 3)]
    enough = [tile for tile in tiles if -(-m // tile.m) * -(-n // tile.n) * batch >= target.multiprocessors]
    # Both planes of float16 are as many bytes as one of float32.
    fitted = [
        fitted_tile(tile, m, n, k, 4, target)
        for tile in (
            dataclasses.replace(t, k=depth, stages=t.stages * SHORT_SUM // depth) for t in enough or tiles[-1:]
        )
    ]
    return list(dict.fromkeys(dataclasses.replace(tile, together=True, restart=tile.k) for tile in fitted))
