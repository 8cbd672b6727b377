"""Matrix products: tiled, grouped tile order, masked edges, operands in any stride, prologue and epilogue fused.

The tile order follows the Triton matmul tutorial's idea: programs are numbered so that GROUP rows of tiles are
finished column by column, which keeps the tiles that neighbouring programs share in L2.

float32 products are computed to float32 accuracy: ``tf32x3`` splits each operand into two tf32 parts and adds
three products (error about 2e-7 relative, as cuBLAS in float32 has), ``bf16x6`` uses three bfloat16 parts.
"""

from __future__ import annotations

import sympy
import torch

from ..graph.sizes import ONE, ZERO, Index, broadcast
from ..graph.value import Input, Matmul, Value, View
from ..kernel.access import reshaped_leaf
from ..kernel.arguments import Arguments
from ..kernel.build import Builder
from ..kernel.domain import Domain
from ..kernel.ir import (
    Apply,
    Arange,
    Axis,
    AxisIndex,
    Dot,
    Expr,
    For,
    Full,
    Number,
    ProgramId,
    Ref,
    Set,
    Statement,
    Variable,
    apply,
    plus,
)
from ..kernel.steps import Hints, Kernel
from ..printing.names import variable_name
from .elementwise import blocked, mask_of
from .extents import product_atoms, right_is_shared, total
from .program import Blocks, Program, fixed, set_all
from .schedules import Product
from .tilings import START


def strided_operands(kernel: Kernel, stored: set[Value]) -> list[Value]:
    """Tensor arguments that the product addresses by their own strides."""
    product = kernel.matmul
    assert product is not None and isinstance(product.op, Matmul)
    result = []
    for side, operand in (("left", product.op.left), ("right", product.op.right)):
        base = operand
        while isinstance(base.op, View) and base.op.kind in ("permute", "unsqueeze", "squeeze", "expand", "select"):
            base = base.op.operand
        folded = reshaped_leaf(operand, stored) not in (None, operand) or (
            side == "left" and len(operand.shape) > 2 and right_is_shared(product.op)
        )
        if isinstance(base.op, Input) and base.op.kind == "argument" and base in stored and not folded:
            result.append(base)
    return result


def matmul(
    kernel: Kernel,
    name: str,
    arguments: Arguments,
    hints: Hints,
    stored: set[Value],
    strided: set[Value],
    tile: Product,
) -> Program:
    """A matrix product kernel with its epilogue."""
    product = kernel.matmul
    assert product is not None and isinstance(product.op, Matmul)
    left, right = product.op.left, product.op.right
    domain, index = kernel.domain.copy(), kernel.placed[product]
    k_size = left.shape[-1]
    depth = domain.atom("r", k_size, reduced=True)
    m_atoms, n_atoms, batch = product_atoms(kernel)
    m, n = total(domain, m_atoms), total(domain, n_atoms)
    dtype = torch.promote_types(left.dtype, right.dtype)
    program = Program(name, arguments, num_warps=tile.warps, num_stages=tile.stages)
    for v, _ in kernel.stores:
        arguments.outputs[v] = arguments.variable("out_ptr")
    for text, size in (("M", m), ("N", n), ("K", k_size)):
        arguments.name_size(size, text)
    ends = {text: arguments.size(size) for text, size in (("M", m), ("N", n), ("K", k_size))}
    blocks = {side: program.block(f"BLOCK_{side}", getattr(tile, side.lower())) for side in "MNK"}
    group = program.block("GROUP", tile.group)
    exact_n = n.is_number and int(n) % tile.n == 0
    exact_k = k_size.is_number and int(k_size) % tile.k == 0
    rows, cols = Axis(fixed("rows"), m_atoms, "tile"), Axis(fixed("cols"), n_atoms, "tile")
    axes = _tile_order(domain, program, ends, blocks, group, batch)
    program.grid[0][:2] = [Blocks(m, tile.m), Blocks(n, tile.n)]
    acc = Ref(fixed("acc"), frozenset({rows, cols}), torch.float32)
    program.body += set_all(
        (rows.variable, blocked(Ref(fixed("row_block")), blocks["M"], rows, (0, 2))),
        (cols.variable, blocked(Ref(fixed("col_block")), blocks["N"], cols, (1, 2))),
        mask_of(rows, "row_mask", ends["M"]),
        *([] if exact_n else [mask_of(cols, "col_mask", ends["N"])]),
        (acc.variable, Full((blocks["M"], blocks["N"]), 0.0, torch.float32, acc.axes)),
    )
    ks = fixed("ks")
    loop: list[Statement] = []
    terms: list[Expr] = []
    for operand, side in ((left, "left"), (right, "right")):
        along = Axis(
            ks, [depth] if isinstance(depth, sympy.Symbol) else [], "loop", lane=(1, 2) if side == "left" else (0, 2)
        )
        if not exact_k:
            along.mask = apply("lt", AxisIndex(along), ends["K"], dtype=torch.bool)
        if not loop:
            loop += set_all((ks, plus(Ref(START), Arange(blocks["K"], along))))
        at = _operand_index(operand, index, depth, side)
        builder = Builder(
            domain, [*axes, rows, along] if side == "left" else [*axes, along, cols], arguments, stored, {}
        )
        builder.strided = {v: _strides(v, arguments) for v in strided}
        builder.raw_half = _is_plain(operand, stored)
        builder.count(operand, at)
        term = builder.value(operand, at)
        program.body += [line for line in builder.lines if line not in program.body]
        loop += builder.inner
        if dtype in (torch.float16, torch.bfloat16) and not builder.raw_half:
            term = Apply("to_float16" if dtype == torch.float16 else "to_bfloat16", (term,), dtype)
        terms.append(term)
    precision: Variable | None = None
    if dtype == torch.float32:
        precision = program.block("PRECISION", tile.precision)
    loop.append(Set(acc.variable, Dot(terms[0], terms[1], acc, precision)))
    program.body.append(For(START, Number(0), ends["K"], blocks["K"], tuple(loop)))
    ending = Builder(domain, [*axes, rows, cols], arguments, stored, kernel.placed)
    ending.reduced[product] = acc
    for v, i in kernel.stores:
        ending.count(v, i)
    for v, i in kernel.stores:
        ending.store(v, i)
    program.body += ending.lines
    program.tiling = f"One program computes a {tile.m} x {tile.n} tile in steps of {tile.k} along K, tiles in groups of {tile.group} rows."
    return program


def _tile_order(
    domain: Domain,
    program: Program,
    ends: dict[str, Expr],
    blocks: dict[str, Variable],
    group: Variable,
    batch: list[sympy.Symbol],
) -> list[Axis]:
    """The statements that give a program its tile, and the axis of the batch where there is one."""
    tile, row_blocks, col_blocks = Ref(fixed("tile")), Ref(fixed("row_blocks")), Ref(fixed("col_blocks"))
    in_group, group_rows = Ref(fixed("group")), Ref(fixed("group_rows"))
    program.grid = [[ONE, ONE]]
    program.body += set_all(
        (tile.variable, ProgramId(0)),
        (row_blocks.variable, apply("cdiv", ends["M"], Ref(blocks["M"]))),
        (col_blocks.variable, apply("cdiv", ends["N"], Ref(blocks["N"]))),
    )
    axes: list[Axis] = []
    if batch:
        axes.append(Axis(fixed("batch"), batch, "grid"))
        tiles = apply("mul", row_blocks, col_blocks)
        program.body += set_all(
            (axes[0].variable, apply("floordiv_int", tile, tiles)), (tile.variable, apply("mod_int", tile, tiles))
        )
        program.grid[0].append(total(domain, batch))
    wide = apply("mul", Ref(group), col_blocks)
    left = apply("sub", row_blocks, apply("mul", in_group, Ref(group)))
    within = apply("mod_int", tile, wide)
    row = plus(apply("mul", in_group, Ref(group)), apply("mod_int", within, group_rows))
    program.body += set_all(
        (in_group.variable, apply("floordiv_int", tile, wide)),
        (group_rows.variable, apply("minimum_int", left, Ref(group))),
        (fixed("row_block"), row),
        (fixed("col_block"), apply("floordiv_int", within, group_rows)),
    )
    return axes


def _operand_index(operand: Value, index: Index, depth: sympy.Expr, side: str) -> Index:
    batch = operand.shape[:-2]
    lead = broadcast(index[:-2][len(index) - 2 - len(batch) :], batch, batch) if batch else ()
    lead = tuple(ZERO if n == ONE else e for e, n in zip(lead, batch, strict=True))
    return (*lead, index[-2], depth) if side == "left" else (*lead, depth, index[-1])


def _is_plain(operand: Value, stored: set[Value]) -> bool:
    while operand not in stored and isinstance(operand.op, View):
        operand = operand.op.operand
    return operand in stored


def _strides(value: Value, arguments: Arguments) -> list[sympy.Symbol]:
    """Stride symbols of a tensor argument; each becomes a kernel argument when first used."""
    name = variable_name(value)
    symbols = [sympy.Symbol(f"{name}_stride_{d}", integer=True, positive=True) for d in range(len(value.shape))]
    for d, symbol in enumerate(symbols):
        arguments.symbols.setdefault(symbol, symbol.name)
        arguments.strides[symbol] = (value, d)
    return symbols
