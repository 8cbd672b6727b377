"""What a chained kernel takes of a multiprocessor."""

from __future__ import annotations

from .schedules import Chained

#: 32-bit registers that a thread can have for tiles.
REGISTERS = 232


def chain_shared(tile: Chained, first: int, second: int) -> int:
    """Bytes of shared memory: the rows' operand, and as many stages of keys and values. ``first``, ``second``: bytes of an element.

    The halves of keys and values are as many bytes as these, once.
    """
    if tile.halves:
        return 4 * (tile.m * tile.k + (tile.stages + 1) * tile.n * max(tile.k, tile.d))
    return tile.m * tile.k * first + tile.stages * tile.n * (tile.k * first + tile.d * second)


def chain_registers(tile: Chained, second: int) -> float:
    """Registers of a thread for the result's tile, the scores, and what is multiplied. ``second``: bytes of an element.

    Halves are multiplied from shared memory but for the scores. float32 is taken apart in registers: the rows' operand, the scores, and keys or
    values, each in two parts. Compared with what ptxas gives for an H100 this leaves out about 60 for addresses and masks.
    """
    held, keys = tile.m * tile.d + tile.m * tile.n, tile.n * max(tile.d, tile.k)
    if tile.halves:
        # The sums of a step, of the scores at first, then of the result; a weight's halves; and keys or values.
        held += tile.m * max(tile.n, tile.d) + tile.m * tile.n + keys
    elif second == 2:
        held += tile.m * tile.n // 2
    else:
        held += 2 * (tile.m * tile.n + keys + tile.m * tile.k)
    return held / (32 * tile.warps)
