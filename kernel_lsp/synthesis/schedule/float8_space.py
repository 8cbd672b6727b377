"""Tiles of products of float8 numbers."""

from __future__ import annotations

import dataclasses

from ..graph.value import Contract
from .extents import power_of_two
from .product_fitting import restart_after, sum_varies
from .schedules import Product
from .target import Target

#: Summed float8 elements after which the sum is taken from the tensor cores, as cuBLAS does without "fast accumulation"; the
#: fewest that they take at a time; the rows that they take at a time.
_SHORT, _LEAST_DEPTH, _ROWS = 128, 32, 64

#: Bytes that the programs of a multiprocessor have on their way from memory, four times what a bandwidth of 25 GB/s and a latency of
#: one microsecond ask for; the most stages.
_UNDER_WAY, _MOST_STAGES = 96 * 1024, 8


def float8_products(op: Contract, m: int, n: int, k: int, batch: int, target: Target) -> list[Product]:
    """For products of float8 numbers, also where these are multiplied as float16: tiles as deep as a line of shared memory, and deeper.

    Tensor cores take 64 rows of one operand, and from 8 columns of the other: of a thin product the longer side has to be
    the rows. Its time is that of reading the longer operand, for which many bytes have to be under way.
    """
    thin = min(m, n) <= _ROWS
    exchanged = thin and n > m
    if exchanged:
        m, n = n, m
    columns = power_of_two(n)
    deep = 64 if op.full_sums else 128  # what is converted stays in registers
    tiles = [
        Product(128, 128, deep, 8, 3),
        Product(128, 256, deep, 8, 3),
        Product(128, 64, deep, 8, 4),
        Product(64, 64, deep, 4, 4),
    ]
    if thin:
        tiles = [
            Product(_ROWS, columns, 128, 4, _MOST_STAGES),
            Product(_ROWS, columns, 256, 4, _MOST_STAGES),
            Product(_ROWS, columns, 256, 8, _MOST_STAGES),
            Product(_ROWS, columns, 512, 8, _MOST_STAGES),
            Product(2 * _ROWS, columns, 128, 4, _MOST_STAGES),
            Product(2 * _ROWS, columns, 128, 8, _MOST_STAGES),
        ]
    elif -(-m // 128) * -(-n // 128) * batch < target.multiprocessors:  # so that every multiprocessor has a tile
        tiles = tiles[2:]
    varies = sum_varies(op)
    found: list[Product] = []
    for tile in tiles:
        depth = max(_LEAST_DEPTH, min(tile.k, power_of_two(k)))
        rows, columns = (max(16, min(most, power_of_two(size))) for most, size in ((tile.m, m), (tile.n, n)))
        held = (rows + columns) * depth
        stages = min(tile.stages, max(2, -(-k // depth)), target.shared_memory // held)
        if thin:
            programs = -(-m // rows) * -(-n // columns) * batch
            stages = min(stages, max(3, _UNDER_WAY // (-(-programs // target.multiprocessors) * held)))
        tile = dataclasses.replace(tile, m=rows, n=columns, k=depth, stages=max(1, stages), exchanged=exchanged)
        restart = restart_after(tile, k, varies) if op.full_sums else min(depth, _SHORT)
        found.append(dataclasses.replace(tile, restart=0 if op.short_sums else restart))
    return list(dict.fromkeys(found))
