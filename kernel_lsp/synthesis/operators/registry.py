"""Which ATen operators are lowered: each lowering registers itself where it stands, with ``@lowers``.

A lowering is a function from the operator's arguments (a tensor is a ``Value``) to the value or the list of values that it
gives. Of the keywords ``out`` (torch.dtype), ``shape`` and ``shapes`` (of the results), and ``contiguous`` (the first operand was
so as it was exported) it gets those that it names.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import sympy

Lowering = Callable[..., Any]
_L = TypeVar("_L", bound=Lowering)
NotOne = Callable[[Any, Any], tuple[sympy.Expr, ...]]
Pairs = Callable[[dict[str, Any]], tuple[tuple[sympy.Expr, sympy.Expr], ...]]

#: The files with lowerings. Definitions stand in a kernel's docstring in this order.
FAMILIES = (
    "reductions",
    "norms",
    "elementwise",
    "activations",
    "losses",
    "views",
    "concatenation",
    "filling",
    "triangles",
    "rearranging",
    "interpolation",
    "sampling",
    "ranges",
    "scattering",
    "pairs",
    "products",
    "attention",
    "float8",
    "einsum",
    "convolution",
    "transposed",
    "pooling",
    "folding",
    "scans",
    "recurrent",
    "recurrent_cells",
    "rounding",
    "special",
    "indexing",
    "searching",
    "strided",
)


@dataclass(frozen=True)
class Operator:
    """One entry: the ATen operator's name without overload, its lowering and the file that this stands in."""

    name: str
    lower: Lowering
    family: str
    about: str  # what it computes, or which of its forms are lowered; a line of the documentation
    not_one: NotOne | None  # sizes that it takes to be more than one
    equal: Pairs | None  # pairs of sizes that it takes to be equal
    less: Pairs | None  # pairs of sizes of which it takes the first to be less than the second
    addressing: bool  # it only says how elements are addressed: no kernel is needed for it alone


OPERATORS: dict[str, Operator] = {}

#: What the named operations compute (``Value.meaning``), for the line under a kernel's formula: name → definition.
DEFINITIONS: dict[str, str] = {
    # of what ``passes/tile_parts.py`` makes
    "squares_about_mean": "squares_about_mean(v) = sum((v - mean(v))^2), per tile and channel",
    **{
        f"{kind}_of_tile": f"{kind}_of_tile(v) = {kind}(v), per tile and channel, of the pixels that the result has"
        for kind in ("sum", "max", "min", "amax", "amin")
    },
    "pixels_of_tile": "pixels_of_tile(v) = how many pixels of v the result has, per tile",
}


def lowers(
    *names: str,
    about: str = "",
    formula: str | tuple[str, ...] = (),
    addressing: bool = False,
    not_one: NotOne | None = None,
    equal: Pairs | None = None,
    less: Pairs | None = None,
) -> Callable[[_L], _L]:
    """Register a lowering for the ATen operators ``names``.

    ``about`` is by default the first line of its docstring. ``formula``: definitions, ``"silu(v) = v * sigmoid(v)"``, of the names that it
    gives as ``Value.meaning``. ``not_one``: sizes, of (arguments, torch's fake result), with which the operator gives something else, or
    fails, where they are one: torch.export counts from two, and the class takes one as well. ``equal``: pairs of sizes, of the arguments by
    their names, that have to be equal and of which torch.export does not know it. ``less``: the same of pairs of which the first has to be
    less than the second.

    Raises:
        ValueError: an operator has a lowering already.
    """

    def register(lowering: _L) -> _L:
        line = about or (lowering.__doc__ or "").partition("\n")[0]
        family = lowering.__module__.rpartition(".")[2]
        for name in names:
            if name in OPERATORS:
                raise ValueError(f"{name} is lowered twice")
            OPERATORS[name] = Operator(name, lowering, family, line, not_one, equal, less, addressing)
        for definition in (formula,) if isinstance(formula, str) else formula:
            DEFINITIONS[definition.partition("(")[0]] = definition
        return lowering

    return register


def load() -> None:
    """Import every family, so that ``OPERATORS`` is whole."""
    for family in FAMILIES:
        importlib.import_module(f".{family}", __package__)


def table() -> str:
    """The operators as a table of the documentation, a row for each lowering: family, names, what it computes."""
    load()
    rows: dict[tuple[str, str, bool], list[str]] = {}
    for operator in OPERATORS.values():
        key = (operator.family, operator.about, operator.addressing)
        rows.setdefault(key, []).append(operator.name.removeprefix("aten."))
    order = sorted(rows, key=lambda key: (FAMILIES.index(key[0]), rows[key][0].lstrip("_")))
    lines = ["| file | operators | |", "| --- | --- | --- |"]
    for family, about, addressing in order:
        names = ", ".join(f"`{name}`" for name in sorted(rows[family, about, addressing], key=lambda n: n.lstrip("_")))
        said = about.rstrip(".").replace("|", "\\|")
        lines.append(f"| {family} | {names} | {said}{' (addressing alone)' if addressing else ''} |")
    return "\n".join(lines)
