"""The atoms of a chained kernel by their role, and its extents for the example inputs."""

from __future__ import annotations

from dataclasses import dataclass

import sympy
import torch

from ..kernel.execution_plan import Hints, Kernel, hint
from .extents import multiplied, total

#: Rows of one dimension below which those of others share a program, as of query heads that read the same keys.
_FEW = 64

#: Columns of the second product that a program computes at most, by the bytes of an element.
COLUMNS = {2: 512, 4: 256}


@dataclass(frozen=True)
class ChainAtoms:
    """Along ``rows`` the keys are the same, along ``cols`` only the second product's right operand varies; ``batch`` is the rest."""

    rows: list[sympy.Symbol]
    cols: list[sympy.Symbol]
    batch: list[sympy.Symbol]


@dataclass(frozen=True)
class ChainExtents:
    """For the example inputs. ``depth``: what the first product sums over; ``dtypes``: in which each product multiplies."""

    rows: int
    keys: int
    cols: int
    depth: int
    batch: int
    dtypes: tuple[torch.dtype, torch.dtype]


def chain_atoms(kernel: Kernel, hints: Hints) -> ChainAtoms:
    """The atoms of two products in one kernel, but for the keys, which the second one sums over.

    Of the dimensions whose rows share a program only the last is taken where it alone has enough rows for the example inputs.
    """
    assert kernel.chain is not None and kernel.contract is not None
    chain, second, domain = kernel.chain, kernel.product, kernel.domain
    first = chain.product
    by_keys: set[sympy.Symbol] = set()
    for letter, index in zip(first.axes, kernel.placed[chain.first], strict=True):
        if first.varies(letter)[1]:
            by_keys |= index.free_symbols
    rows: list[sympy.Symbol] = []
    cols: list[sympy.Symbol] = []
    for letter, index in zip(second.axes, kernel.placed[kernel.contract], strict=True):
        own = [a for a in domain.kept if a in domain.resolve(index).free_symbols]
        left, right = second.varies(letter)
        if right and not left:
            cols += own
        elif left and not right:
            rows += [a for a in own if a not in by_keys]
    rows.sort(key=domain.kept.index)
    cols.sort(key=domain.kept.index)
    if rows and hint(domain.size[rows[-1]], hints) >= _FEW:
        rows = rows[-1:]
    return ChainAtoms(rows, cols, [a for a in domain.kept if a not in (*rows, *cols)])


def chain_extents(kernel: Kernel, hints: Hints) -> ChainExtents:
    """How many there are of each role for the example inputs, and the dtypes that are multiplied."""
    assert kernel.chain is not None
    chain, domain, atoms = kernel.chain, kernel.domain, chain_atoms(kernel, hints)
    sizes = (
        total(domain, atoms.rows),
        domain.size[chain.key],
        total(domain, atoms.cols),
        total(domain, chain.depth),
        total(domain, atoms.batch),
    )
    rows, keys, cols, depth, batch = (hint(size, hints) for size in sizes)
    return ChainExtents(rows, keys, cols, depth, batch, (multiplied(chain.product), multiplied(kernel.product)))


def most_columns(dtype: torch.dtype) -> int:
    """Columns of the second product beyond which the first one is computed several times."""
    return COLUMNS[dtype.itemsize]
