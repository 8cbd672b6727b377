"""Conditions on the sizes of tensors: fixed ones, equal ones, and the ranges of those that are free."""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy

from kernel_lsp.size_text import python

from .empty_sizes import divisor_conditions


@dataclass(frozen=True)
class Sizes:
    """What torch.export knows of the free sizes.

    ``ranges``: of each symbol; ``equal``: expressions that it took to be equal; ``not_one``: sizes that it took not to be one;
    ``assumed``: other relations that it took to hold. ``bounded``: the kernels' offsets have 32 bits.
    """

    ranges: dict[sympy.Symbol, tuple[int, int | None]] = field(default_factory=dict)
    equal: list[tuple[sympy.Expr, sympy.Expr]] = field(default_factory=list)
    not_one: list[sympy.Expr] = field(default_factory=list)
    assumed: list[sympy.Basic] = field(default_factory=list)
    bounded: bool = True


def size_conditions(
    source: str,
    shape: tuple[sympy.Expr, ...],
    symbols: dict[sympy.Symbol, str],
    later: list[tuple[str, sympy.Expr]],
    *,
    bounded: bool = True,
) -> list[str]:
    """Conditions for the shape of ``source``; a symbol that is new stays free, and gets its Python in ``symbols``.

    ``later`` gets (Python, size) of what follows from symbols that are not known yet: those of an argument further on.
    ``bounded``: the kernels' offsets have 32 bits.
    """
    if all(n.is_number for n in shape):
        return [f"{source}.shape == {tuple(int(n) for n in shape)}"]
    result = [f"{source}.dim() == {len(shape)}"]
    for i, n in enumerate(shape):
        text = f"{source}.shape[{i}]"
        if isinstance(n, sympy.Symbol) and n not in symbols:
            symbols[n] = text
        elif not n.free_symbols <= symbols.keys():
            later.append((text, n))
        else:
            result.append(f"{text} == {python(n, symbols)}")
    return [*result, f"0 < {source}.numel(){' < _MOST_ELEMENTS' if bounded else ''}"]


def range_conditions(sizes: Sizes, symbols: dict[sympy.Symbol, str]) -> list[str]:
    """The sizes that the graph was exported for, and what torch.export assumed to be equal."""
    result = []
    for symbol, text in symbols.items():
        least, most = sizes.ranges.get(symbol, (0, None))
        if least > 2:  # torch.export counts from 2; one is among the sizes that are checked
            result.append(f"{text} >= {least}")
        if most is not None:
            result.append(f"{text} <= {most}")
    for a, b in dict.fromkeys(sizes.equal):
        result += [*divisor_conditions(a, symbols), *divisor_conditions(b, symbols)]
        result.append(f"{python(a, symbols)} == {python(b, symbols)}")
    for size in dict.fromkeys(sizes.not_one):
        result += [*divisor_conditions(size, symbols), f"{python(size, symbols)} != 1"]
    for relation in dict.fromkeys(sizes.assumed):
        result += [*divisor_conditions(relation, symbols), _relation(relation, symbols)]
    return list(dict.fromkeys(result))


def _relation(relation: sympy.Basic, symbols: dict[sympy.Symbol, str]) -> str:
    """A comparison of sizes as Python."""
    assert isinstance(relation, sympy.core.relational.Relational)
    if isinstance(relation, sympy.StrictGreaterThan) and relation.lhs.as_coeff_Add()[0] >= 1:  # of whole numbers
        return f"{python(relation.rhs, symbols)} <= {python(relation.lhs - 1, symbols)}"
    operator = "==" if isinstance(relation, sympy.Eq) else relation.rel_op
    return f"{python(relation.lhs, symbols)} {operator} {python(relation.rhs, symbols)}"
