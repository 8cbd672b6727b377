"""Which schedules a chained kernel may have, and what they take of a multiprocessor."""

from __future__ import annotations

import dataclasses

import torch

from ..graph.value import Pointwise, Value, View, operands
from ..kernel.execution_plan import Chain, Hints, Kernel
from ..passes.planes import in_pieces
from .chain_atoms import COLUMNS, ChainExtents, chain_extents
from .chain_resources import REGISTERS, chain_registers, chain_shared
from .extents import power_of_two
from .rewritings import LEAST_TILE, READ_AT_ONCE, seconds_of
from .schedules import Chained, Schedule
from .target import Target

#: Elements of the first product's sum that a program holds of its rows at most.
_HELD = {2: 256, 4: 128}
_LEAST = 16  # what a product of tiles takes

#: 32-bit registers of a thread with which some are spilled, which is better than smaller tiles.
_SPILLED = 320
#: Registers of a thread up to which four warps keep up with eight: with more they spill (docs/performance.md).
_FEW_WARPS = 170


#: Columns of operands up to which two programs of eight warps share a multiprocessor, each thread with so many registers (docs/performance.md).
_NARROW, _SHARING = 64, 128

#: Tiles without halves that are offered beside those.
_UNSPLIT = 2

#: Seconds that halves have to save; what a thread's registers allow the operands' width to be (docs/performance.md).
_LEAST_GAIN, _WIDEST = 1e-6, 128

#: Functions that give NaN where an operand is NaN.
_PASS_NAN = frozenset({"add", "sub", "mul", "div", "neg", "exp", "tanh", "sigmoid", "maximum", "minimum"})


def chains(kernel: Kernel, target: Target, hints: Hints) -> list[Schedule]:
    """Tiles with as many rows as leave the multiprocessors enough to do, keys as far as registers and shared memory go; the default first."""
    found = chain_extents(kernel, hints)
    first, second = (dtype.itemsize for dtype in found.dtypes)
    half = 4 not in (first, second)
    d = max(_LEAST, min(power_of_two(found.cols), COLUMNS[second]))
    k = power_of_two(found.depth)
    k = max(_LEAST, k if k <= _HELD[first] else 64 * 2 // first)
    tiles = [
        Chained(128, 128, d, k, 8, 3),
        Chained(128, 64, d, k, 8, 3),
        Chained(128, 128, d, k, 8, 2),
        Chained(64, 64, d, k, 4, 3),
        Chained(64, 32, d, k, 4, 2),
    ]
    few = Chained(128, 64, d, k, 4, 3)
    if chain_registers(few, second) <= _FEW_WARPS:
        tiles.insert(0, few)
    if not half:
        tiles = [
            Chained(64, 32, d, k, 4, 2, "bf16x6"),
            Chained(128, 64, d, k, 8, 2),
            Chained(128, 32, d, k, 8, 2),
            Chained(64, 32, d, k, 4, 2),
            Chained(64, 64, d, k, 4, 2),
            Chained(64, 16, d, k, 4, 2),
        ]
    if kernel.product.tf32:
        tiles = [dataclasses.replace(tile, precision="tf32") for tile in tiles]
    kept = _kept([_fitted(tile, found.rows, found.keys) for tile in tiles], first, second, target)
    if offered(kernel, found, k, target, hints):
        halved = [_fitted(tile, found.rows, found.keys) for tile in _halved(d, k, target)]
        if halved := [t for t in halved if _fits(t, first, second, target, REGISTERS)]:
            kept = [*halved, *kept[:_UNSPLIT]]
    enough = [t for t in kept if -(-found.rows // t.m) * -(-found.cols // t.d) * found.batch >= target.multiprocessors]
    order = [*enough, *(t for t in sorted(kept, key=lambda t: t.m) if t not in enough)]
    return list(dict.fromkeys(order))


def _halved(d: int, k: int, target: Target) -> list[Chained]:
    """Tiles of float16 halves, the ones that were the fastest first (docs/performance.md)."""
    if max(d, k) > _NARROW:
        return [Chained(128, 64, d, k, 8, 2, halves=True), Chained(64, 32, d, k, 4, 2, halves=True)]
    registers = _SHARING if target.architecture.startswith("sm_") else 0
    return [
        Chained(128, 64, d, k, 8, 2, halves=True, registers=registers),
        Chained(64, 64, d, k, 4, 3, halves=True),
    ]


def _kept(tiles: list[Chained], first: int, second: int, target: Target) -> list[Chained]:
    """The tiles that registers and shared memory hold; where they hold none the last one made smaller."""
    kept: list[Chained] = []
    for most in (REGISTERS, _SPILLED):
        kept = kept or [t for t in tiles if _fits(t, first, second, target, most)]
    if kept:
        return kept
    least = tiles[-1]
    while not _fits(least, first, second, target, _SPILLED) and (
        least.stages > 1 or least.n > _LEAST or least.warps < 8
    ):
        least = dataclasses.replace(
            least,
            stages=max(1, least.stages - 1),
            n=max(_LEAST, least.n // 2) if least.stages == 1 else least.n,
            warps=8,
        )
    return [least]


def _fitted(tile: Chained, rows: int, keys: int) -> Chained:
    """Never more than the problem needs."""
    return dataclasses.replace(
        tile, m=max(_LEAST, min(tile.m, power_of_two(rows))), n=max(_LEAST, min(tile.n, power_of_two(keys)))
    )


def _fits(tile: Chained, first: int, second: int, target: Target, registers: int) -> bool:
    return chain_shared(tile, first, second) <= target.shared_memory and chain_registers(tile, second) <= registers


def offered(kernel: Kernel, found: ChainExtents, k: int, target: Target, hints: Hints) -> bool:
    """Whether a chained kernel of float32 takes less time with halves, and finds out where float16 does not hold its numbers.

    ``found``: its extents; ``k``: as many elements of the first product's sum as a program holds.
    """
    chain = kernel.chain
    assert chain is not None
    first, second = chain.product, kernel.product
    if set(found.dtypes) != {torch.float32} or first.tf32 or second.tf32:
        return False
    if not found.depth <= k <= _WIDEST or found.cols > _WIDEST:
        return False
    read = (first.left, first.right, second.right)
    if min(found.rows, found.keys, found.cols, found.depth) < LEAST_TILE or not in_pieces(read, READ_AT_ONCE, hints):
        return False
    operations = 2 * found.batch * found.rows * found.keys * (found.depth + found.cols)
    split, halved = seconds_of(operations, target)
    return split - halved > _LEAST_GAIN and passes_nan(chain)


def passes_nan(chain: Chain) -> bool:
    """Whether a NaN of the first product reaches each row's result: through a softmax, and functions that give NaN for it."""
    if chain.highest is None:
        return False
    known: dict[Value, bool] = {chain.first: True}

    def of_products(v: Value) -> bool:
        if v not in known:
            known[v] = any(map(of_products, operands(v)))
        return known[v]

    asked, seen = [chain.score], set[Value]()
    while asked:
        v = asked.pop()
        if v in seen or v is chain.first or not of_products(v):
            continue
        seen.add(v)
        if isinstance(v.op, View):
            asked.append(v.op.operand)
            continue
        if not isinstance(v.op, Pointwise):
            return False
        terms = [o for o in v.op.operands if isinstance(o, Value)]
        if v.op.function == "where":
            if of_products(terms[0]):
                return False
        elif v.op.function not in _PASS_NAN:
            return False
        asked += terms
    return True
