"""Elementwise kernels: every output element once, in the order of memory; a 2-D tile where an operand is transposed."""

from __future__ import annotations

import sympy

from ..graph.names import variable_name
from ..graph.sizes import ONE, ZERO, offset
from ..graph.value import Value
from ..kernel.arguments import Arguments
from ..kernel.domain import Unalignable
from ..kernel.emit import Axis, Emitter
from ..kernel.steps import Hints, Kernel, hint
from .source import KernelSource, total


def elementwise(
    kernel: Kernel,
    name: str,
    arguments: Arguments,
    hints: Hints,
    stored: set[Value],
    *,
    block: int = 1024,
    warps: int = 4,
) -> KernelSource:
    """The source of an elementwise kernel with ``block`` elements per program."""
    source = KernelSource(name, [], arguments, "1", num_warps=warps)
    for v, _ in kernel.stores:
        arguments.outputs[v] = arguments.names.fresh(f"{variable_name(v)}_ptr" if len(kernel.stores) > 1 else "out_ptr")
    turned = _transposed_atom(kernel, hints)
    axes = _flat(kernel, source, block, hints) if turned is None else _tile(kernel, source, turned, hints)
    emitter = Emitter(kernel.domain, axes, arguments, stored, kernel.placed)
    for v, index in kernel.stores:
        emitter.count(v, index)
    for v, index in kernel.stores:
        emitter.store(v, index)
    source.body += emitter.lines
    source.library = emitter.library
    return source


def _flat(kernel: Kernel, source: KernelSource, block: int, hints: Hints) -> list[Axis]:
    domain, arguments = kernel.domain, source.arguments
    n = total(domain, domain.kept)
    arguments.name_size(n, "n_elements")
    source.blocks["BLOCK"] = str(block)
    source.grid = f"triton.cdiv({arguments.host(n)}, {block})"
    source.body = [
        "offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
        f"mask = offsets < {arguments.size(n)[0]}",
    ]
    source.tiling = f"One program takes {block} consecutive elements."
    return [Axis("offsets", list(domain.kept), vector=True, mask="mask")]


def _transposed_atom(kernel: Kernel, hints: Hints) -> sympy.Symbol | None:
    """An atom other than the last along which a large operand is contiguous: flat order would read it with a stride."""
    domain = kernel.domain
    if len(domain.kept) < 2:
        return None
    last = domain.kept[-1]
    for _, index, shape in kernel.accesses:
        try:
            coefficients, _ = domain.terms(offset(index, shape))
        except Unalignable:
            continue
        if coefficients.get(last, ZERO) in (ZERO, ONE):
            continue
        for atom, c in coefficients.items():
            if (
                c == ONE
                and atom is not last
                and hint(domain.size[atom], hints) >= 16
                and hint(domain.size[last], hints) >= 16
            ):
                return atom
    return None


def _tile(kernel: Kernel, source: KernelSource, turned: sympy.Symbol, hints: Hints) -> list[Axis]:
    domain, arguments = kernel.domain, source.arguments
    last = domain.kept[-1]
    outer = [a for a in domain.kept if a not in (turned, last)]
    n_rows, n_cols = domain.size[turned], domain.size[last]
    arguments.name_size(n_rows, "n_rows")
    arguments.name_size(n_cols, "n_cols")
    rows_text, cols_text = arguments.size(n_rows)[0], arguments.size(n_cols)[0]
    source.blocks |= {"BLOCK_ROWS": "32", "BLOCK_COLS": "64"}
    tiles = f"triton.cdiv({arguments.host(n_rows)}, 32) * triton.cdiv({arguments.host(n_cols)}, 64)"
    body = ["tile = tl.program_id(0)"]
    axes: list[Axis] = []
    if outer:
        axes.append(Axis("outer", outer, vector=False))
        body += [
            f"n_tiles = tl.cdiv({rows_text}, BLOCK_ROWS) * tl.cdiv({cols_text}, BLOCK_COLS)",
            "outer = tile // n_tiles",
            "tile = tile % n_tiles",
        ]
        host = arguments.host(total(domain, outer))
        tiles = f"{tiles} * {host if '+' not in host and '-' not in host else f'({host})'}"
    body += [
        f"rows = (tile // tl.cdiv({cols_text}, BLOCK_COLS)) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]",
        f"cols = (tile % tl.cdiv({cols_text}, BLOCK_COLS)) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)[None, :]",
        f"row_mask = rows < {rows_text}",
        f"col_mask = cols < {cols_text}",
    ]
    source.grid, source.body = tiles, body
    source.tiling = (
        "One program takes a 32 x 64 tile, so that both the transposed operand and the result are read in order."
    )
    return [*axes, Axis("rows", [turned], True, "row_mask"), Axis("cols", [last], True, "col_mask")]
