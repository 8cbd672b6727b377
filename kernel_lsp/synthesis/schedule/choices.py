"""Which template a planned kernel takes, and the choices that are worth measuring against each other."""

from __future__ import annotations

from dataclasses import dataclass

from ..graph.value import Value
from ..kernel.arguments import Arguments
from ..kernel.steps import Hints, Kernel
from .elementwise import elementwise
from .matmul import TILES, matmul
from .program import Program
from .reduction import reduction
from .tilings import LONGEST_TILE
from .verify import verify


@dataclass(frozen=True)
class Options:
    """One point of the schedule space; ``label`` says what differs from the default."""

    label: str = ""
    warps: float = 1.0  # factor on a reduction's num_warps
    rows: int = 0  # rows per program where rows are short; 0: as the template sees fit
    longest: int = LONGEST_TILE  # longest row, in elements, that is kept in registers
    block: int = 1024  # elements per program of an elementwise kernel
    block_warps: int = 4
    tile: int = 0  # index into matmul.TILES


def schedule(
    kernel: Kernel,
    name: str,
    arguments: Arguments,
    hints: Hints,
    stored: set[Value],
    options: Options,
    strided: set[Value],
) -> Program:
    """The kernel with a schedule. Raises ``verify.Malformed``, which is a bug."""
    program = _scheduled(kernel, name, arguments, hints, stored, options, strided)
    verify(program)
    return program


def _scheduled(
    kernel: Kernel,
    name: str,
    arguments: Arguments,
    hints: Hints,
    stored: set[Value],
    options: Options,
    strided: set[Value],
) -> Program:
    if kernel.matmul is not None:
        return matmul(kernel, name, arguments, hints, stored, strided, TILES[options.tile])
    if kernel.reduces:
        program = reduction(kernel, name, arguments, hints, stored, rows=options.rows, longest=options.longest)
        program.num_warps = int(min(32, max(1, program.num_warps * options.warps)))
        return program
    return elementwise(kernel, name, arguments, hints, stored, block=options.block, warps=options.block_warps)


def alternatives(kernels: list[Kernel]) -> list[Options]:
    """Other schedules for these kernels, the likeliest to win first."""
    result: list[Options] = []
    if any(k.matmul is not None for k in kernels):
        result += [Options(label, tile=i) for i, label in [(i, t.label) for i, t in enumerate(TILES)][1:]]
    if any(k.reduces and k.matmul is None for k in kernels):
        result += [Options("twice the warps", warps=2.0), Options("half the warps", warps=0.5)]
        result += [Options("long rows in passes", longest=8192)]
    if any(k.matmul is None and not k.reduces for k in kernels):
        result += [
            Options("two elements a thread", block=512, block_warps=8),
            Options("blocks of 512", block=512, block_warps=2),
        ]
    return result
