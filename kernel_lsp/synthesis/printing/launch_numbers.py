"""The numbers of a launch as the host function's Python: sizes, a grid's factors, constants.

``sizes``: Python for each size symbol; ``known``: variables of the host function that hold compound sizes; ``shared``: those that hold how much
each of several programs takes.
"""

from __future__ import annotations

import sympy

from kernel_lsp.size_text import python, unwrapped

from ..schedule.program import Blocks, Constant, Distinct, Factor, OfAll, PowerOfTwo, Program


def host_size(expr: sympy.Expr, sizes: dict[sympy.Symbol, str], known: dict[sympy.Expr, str]) -> str:
    """A size."""
    return known.get(expr) or python(expr, sizes)


def grid_factors(
    factors: list[Factor], sizes: dict[sympy.Symbol, str], known: dict[sympy.Expr, str], shared: dict[OfAll, str]
) -> list[str]:
    """The factors of a grid's extent along one dimension; at least one."""
    texts = []
    for factor in factors:
        if isinstance(factor, Blocks) and factor.extent.is_number and 0 < factor.extent <= factor.size:
            continue  # one block
        if isinstance(factor, Blocks):
            texts.append(f"triton.cdiv({host_size(factor.extent, sizes, known)}, {factor.size})")
        elif isinstance(factor, OfAll):
            texts.append(f"triton.cdiv({host_size(factor.extent, sizes, known)}, {shared[factor]})")
        else:
            text = host_size(factor, sizes, known)
            texts.append(f"({text})" if factor.is_Add and factor not in known and len(factors) > 1 else text)
    return texts or ["1"]


def constant(
    value: Constant, sizes: dict[sympy.Symbol, str], known: dict[sympy.Expr, str], shared: dict[OfAll, str]
) -> str:
    """What a constant of the launch is."""
    if isinstance(value, PowerOfTwo):
        text = f"triton.next_power_of_2({known.get(value.extent) or unwrapped(value.extent, sizes)})"
        return text if value.least == 1 else f"max({value.least}, {text})"
    if isinstance(value, OfAll):
        return shared[value]
    if isinstance(value, Distinct):
        inner, block = host_size(value.inner, sizes, known), shared[value.block]
        return f"1 if {f'({inner})' if ' ' in inner else inner} % {block} == 0 else {block}"
    if isinstance(value, str):
        return "_BF16X6" if value == "bf16x6" else f'"{value}"'
    return str(value)


def fits(program: Program, sizes: dict[sympy.Symbol, str], known: dict[sympy.Expr, str], device: str) -> str:
    """Whether a call's sizes are within what ``program`` takes."""
    if program.in_turn:
        return runs_at_once(program, sizes, known, device)
    return " and ".join(f"{host_size(extent, sizes, known)} <= {most}" for extent, most in program.limits)


def runs_at_once(program: Program, sizes: dict[sympy.Symbol, str], known: dict[sympy.Expr, str], device: str) -> str:
    """Whether enough programs run at once for a row (schedule/cooperative.py)."""
    (blocks,) = (factor for factor in program.grid[0] if isinstance(factor, OfAll))
    if blocks.extent.is_number:
        return f"{-(-int(blocks.extent) // blocks.size)} < {program.at_once} * _multiprocessors({device})"
    ((_, most),) = ((e, most) for e, most in program.limits if e == blocks.extent)
    text = f"triton.cdiv({host_size(blocks.extent, sizes, known)}, {blocks.size})"
    return f"{text} < min({most // blocks.size + 1}, {program.at_once} * _multiprocessors({device}))"
