"""Matrix products: tiled, grouped tile order, masked edges, operands in any stride, prologue and epilogue fused.

The tile order follows the Triton matmul tutorial's idea: programs are numbered so that GROUP rows of tiles are
finished column by column, which keeps the tiles that neighbouring programs share in L2.

float32 products are computed to float32 accuracy: ``tf32x3`` splits each operand into two tf32 parts and adds
three products (error about 2e-7 relative, as cuBLAS in float32 has), ``bf16x6`` uses three bfloat16 parts.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy
import torch

from ..graph.names import variable_name
from ..graph.sizes import ONE, ZERO, Index, broadcast
from ..graph.value import Input, Matmul, Value, View
from ..kernel.access import reshaped_leaf
from ..kernel.arguments import Arguments
from ..kernel.emit import Axis, Emitter, Term
from ..kernel.steps import Hints, Kernel, hint
from .source import KernelSource, power_of_two, total


@dataclass(frozen=True)
class Tile:
    label: str
    m: int
    n: int
    k: int
    warps: int
    stages: int
    precision: str = "tf32x3"


#: Bytes of shared memory that a program may use on current data-centre GPUs.
SHARED_MEMORY = 224 << 10

#: The first is adapted to the problem's size; the others are tried against it where there is a GPU.
TILES = (
    Tile("", 128, 64, 32, 8, 3),
    Tile("64 x 64 tiles, 16 deep", 64, 64, 16, 4, 4),
    Tile("128 x 128 tiles", 128, 128, 32, 8, 3),
    Tile("128 x 64 tiles, bf16x6", 128, 64, 32, 8, 3, "bf16x6"),
)


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
            side == "left" and len(operand.shape) > 2 and _right_is_shared(product)
        )
        if isinstance(base.op, Input) and base.op.kind == "argument" and base in stored and not folded:
            result.append(base)
    return result


def _right_is_shared(product: Value) -> bool:
    """Whether the right operand is the same for the whole batch, so that batch and rows are one dimension."""
    op = product.op
    assert isinstance(op, Matmul)
    return len(op.left.shape) > 2 and all(n == ONE for n in op.right.shape[:-2])


def matmul(
    kernel: Kernel, name: str, arguments: Arguments, hints: Hints, stored: set[Value], strided: set[Value], tile: Tile
) -> KernelSource:
    """The source of a matrix product kernel with its epilogue."""
    product = kernel.matmul
    assert product is not None and isinstance(product.op, Matmul)
    left, right = product.op.left, product.op.right
    domain, index = kernel.domain, kernel.placed[product]
    k_size = left.shape[-1]
    depth = domain.atom("r", k_size, reduced=True)
    m_atoms, n_atoms = _atoms(index[-2]), _atoms(index[-1])
    batch = [a for e in index[:-2] for a in _atoms(e)]
    if _right_is_shared(product):
        m_atoms, batch = batch + m_atoms, []
    m, n = total(domain, m_atoms), total(domain, n_atoms)
    dtype = torch.promote_types(left.dtype, right.dtype)
    tile = _adapted(
        tile,
        hint(m, hints) if m_atoms else 1,
        hint(n, hints),
        hint(k_size, hints),
        hint(total(domain, batch), hints),
        dtype,
    )
    source = KernelSource(name, [], arguments, "1", num_warps=tile.warps, num_stages=tile.stages)
    for v, _ in kernel.stores:
        arguments.outputs[v] = arguments.names.fresh("out_ptr")
    pointers = dict(arguments.outputs)
    arguments.outputs.clear()
    for text, size in (("M", m), ("N", n), ("K", k_size)):
        arguments.name_size(size, text)
    sizes = {text: arguments.size(size)[0] for text, size in (("M", m), ("N", n), ("K", k_size))}
    source.blocks |= {"BLOCK_M": str(tile.m), "BLOCK_N": str(tile.n), "BLOCK_K": str(tile.k), "GROUP": "8"}
    exact_n = n.is_number and int(n) % tile.n == 0
    exact_k = k_size.is_number and int(k_size) % tile.k == 0
    rows = Axis("rows", m_atoms, True, "row_mask")
    cols = Axis("cols", n_atoms, True, "" if exact_n else "col_mask")
    body, axes = _tile_order(kernel, source, sizes, batch, m, n, tile)
    body += [
        "rows = row_block * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]",
        "cols = col_block * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]",
        f"row_mask = rows < {sizes['M']}",
        *([] if exact_n else [f"col_mask = cols < {sizes['N']}"]),
        "acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)",
    ]
    along = _atoms(depth)
    loop = ["ks = start + tl.arange(0, BLOCK_K)"]
    texts: list[str] = []
    library = False
    for operand, side in ((left, "left"), (right, "right")):
        lane = "ks[None, :]" if side == "left" else "ks[:, None]"
        ks = Axis(lane, along, True, "" if exact_k else f"({lane} < {sizes['K']})", looped=True)
        at = _operand_index(operand, index, depth, side)
        mine = [*axes, rows, ks] if side == "left" else [*axes, ks, cols]
        emitter = Emitter(domain, mine, arguments, stored, {})
        emitter.strided = {v: _strides(v, arguments) for v in strided}
        emitter.raw_half = _is_plain(operand, stored)
        emitter.count(operand, at)
        term = emitter.value(operand, at)
        body += [line for line in emitter.lines if line not in body]
        loop += emitter.inner
        text = term.text
        if dtype in (torch.float16, torch.bfloat16) and not emitter.raw_half:
            text = f"{text if text.isidentifier() else f'({text})'}.to(tl.{str(dtype).removeprefix('torch.')})"
        texts.append(text)
        library |= emitter.library
    precision = ""
    if dtype == torch.float32:
        source.blocks["PRECISION"] = '"tf32x3"' if tile.precision == "tf32x3" else "_BF16X6"
        precision = ", input_precision=PRECISION"
    loop.append(f"acc = tl.dot({texts[0]}, {texts[1]}, acc{precision})")
    body += [f"for start in range(0, {sizes['K']}, BLOCK_K):", *(f"    {line}" for line in loop)]
    arguments.outputs |= pointers
    ending = Emitter(domain, [*axes, rows, cols], arguments, stored, kernel.placed)
    ending.reduced[product] = Term("acc", 100, frozenset({rows, cols}))
    for v, i in kernel.stores:
        ending.count(v, i)
    for v, i in kernel.stores:
        ending.store(v, i)
    source.body = body + ending.lines
    source.library = library or ending.library
    source.tiling = (
        f"One program computes a {tile.m} x {tile.n} tile in steps of {tile.k} along K, tiles in groups of 8 rows."
    )
    return source


def _tile_order(
    kernel: Kernel,
    source: KernelSource,
    sizes: dict[str, str],
    batch: list[sympy.Symbol],
    m: sympy.Expr,
    n: sympy.Expr,
    tile: Tile,
) -> tuple[list[str], list[Axis]]:
    arguments = source.arguments
    grid = f"triton.cdiv({arguments.host(m)}, {tile.m}) * triton.cdiv({arguments.host(n)}, {tile.n})"
    lines = [
        "tile = tl.program_id(0)",
        f"row_blocks = tl.cdiv({sizes['M']}, BLOCK_M)",
        f"col_blocks = tl.cdiv({sizes['N']}, BLOCK_N)",
    ]
    axes: list[Axis] = []
    if batch:
        lines += ["batch = tile // (row_blocks * col_blocks)", "tile = tile % (row_blocks * col_blocks)"]
        axes.append(Axis("batch", batch, False))
        size = total(kernel.domain, batch)
        grid += f" * ({arguments.host(size)})" if size.is_Add else f" * {arguments.host(size)}"
        arguments.names.taken.add("batch")
    lines += [
        "group = tile // (GROUP * col_blocks)",
        "group_rows = tl.minimum(row_blocks - group * GROUP, GROUP)",
        "row_block = group * GROUP + tile % (GROUP * col_blocks) % group_rows",
        "col_block = tile % (GROUP * col_blocks) // group_rows",
    ]
    source.grid = grid
    return lines, axes


def _atoms(expr: sympy.Expr) -> list[sympy.Symbol]:
    return [expr] if isinstance(expr, sympy.Symbol) else []


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
        arguments.symbols.setdefault(symbol, (symbol.name, f"{name}.stride({d})"))
    return symbols


def _adapted(tile: Tile, m: int, n: int, k: int, batch: int, dtype: torch.dtype) -> Tile:
    """Smaller tiles for small problems, so that every multiprocessor has one; never more than the problem needs."""
    if not tile.label:
        tiles = -(-m // tile.m) * -(-n // tile.n) * batch
        if dtype.itemsize == 2 and tiles >= 264:
            tile = TILES[2]
        elif tiles < 132:
            tile = Tile("", 64, 64, 32, 4, 4)
    block_k = tile.k * 4 // dtype.itemsize  # halves: as many bytes of each row at a time
    stages = tile.stages
    while (tile.m + tile.n) * block_k * dtype.itemsize * stages > SHARED_MEMORY:
        stages -= 1
    return Tile(
        tile.label,
        max(16, min(tile.m, power_of_two(m))),
        max(16, min(tile.n, power_of_two(n))),
        max(16, min(block_k, power_of_two(k))),
        tile.warps,
        stages,
        tile.precision,
    )
