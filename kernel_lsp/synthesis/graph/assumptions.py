"""What lowerings and torch.export took to be true of the sizes and the graph depends on, as conditions for the class that is generated.

Most of what torch.export notes down asks whether a size is one (for strides and broadcasting), or follows from what is checked anyway.
What is left says how many pieces a split has, which sizes a reshape gives, or whether a slice ends before what it is taken from
(``mask[:x.shape[1]]``).
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.utils._sympy.printers import PythonPrinter

from kernel_lsp.envelope.empty_sizes import may_vanish

from .lowered import Graph

_TRIES = 200
_LARGEST = 64


def assumed(exported: ExportedProgram, graph: Graph) -> list[sympy.Basic]:
    """Relations (``Eq``, ``<=``, …) of sizes that may be false for sizes that are otherwise accepted.

    ``graph.assumed``: sizes and what they have to be greater than (``Gt``), as lowerings gave them.
    """
    found = [relation for relation in graph.assumed if _may_be_false(relation, graph)]
    env = environment(exported)
    if env is None:
        return found
    known = set(graph.hints)
    parts = [part for guard in env.guards for part in sympy.And.make_args(env.replace(guard.expr))]
    for part in dict.fromkeys(parts):  # the same is noted down again wherever it is asked
        if _of_interest(part) and part.free_symbols <= known and not _follows(part, [*_pairs(graph), *found], graph):
            found.append(part)
    return found


def ones(exported: ExportedProgram) -> frozenset[sympy.Expr]:
    """Sizes, computed from others, that torch.export took to be one; shapes of the exported graph still have them as they are computed."""
    env = environment(exported)
    if env is None:
        return frozenset()
    parts = [part for guard in env.guards for part in sympy.And.make_args(env.replace(guard.expr))]
    found = [part.args[0] for part in parts if isinstance(part, sympy.Eq) and part.args[1] == 1]
    # Of a quotient torch.export says that it is below two, and that it is not zero goes without saying.
    below_two = [part.args[0] for part in parts if isinstance(part, sympy.StrictLessThan) and part.args[1] == 2]
    found += [size for size in below_two if size.xreplace(dict(env.backed_var_to_val)) == 1]
    return frozenset(size for size in found if not size.is_number)


def _may_be_false(relation: sympy.Basic, graph: Graph) -> bool:
    """Whether the greater side of ``relation`` may be too small. torch.export counts sizes from two, the class takes one as well."""
    if relation == sympy.true:
        return False
    greater, less = relation.args
    above = {symbol: symbol + least - 1 for symbol, (least, _) in graph.ranges.items() if least > 2}
    return may_vanish(sympy.expand((greater - less).subs(above, simultaneous=True)))


def environment(exported: ExportedProgram) -> Any:
    """What torch.export knows of the sizes (a ``ShapeEnv``); None where nothing has any."""
    for node in exported.graph.nodes:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        if mode is not None:
            return mode.shape_env
    return None


def _of_interest(part: sympy.Basic) -> bool:
    if not isinstance(part, sympy.core.relational.Relational) or isinstance(part, sympy.Ne):
        return False
    if _of_strides(part):
        return False
    if isinstance(part, sympy.Eq):
        return True
    one = isinstance(part, sympy.StrictGreaterThan | sympy.StrictLessThan) and sympy.S.One in part.args
    return not one and sympy.Integer(2) not in part.args  # "at least 2", or "more than 1", is about sizes of one


def _of_strides(expr: sympy.Basic) -> bool:
    """Whether it compares strides, which torch.export makes of Max(1, size). Sizes have others, and quotients of such: pieces of a split."""
    name = expr.func.__name__
    if name in ("FloorDiv", "CleanDiv"):
        return False
    if name in ("Max", "Min") and sympy.S.One in expr.args:
        return True
    return any(map(_of_strides, expr.args))


def _pairs(graph: Graph) -> list[sympy.Basic]:
    return [sympy.Eq(a, b) for a, b in graph.equal]


@functools.lru_cache(maxsize=4096)
def checked(relation: sympy.Basic) -> Callable[[dict[sympy.Symbol, int]], bool]:
    """Whether ``relation`` holds for given sizes. As Python, which takes a thousandth of the time that sympy takes for it."""
    try:
        code = compile(PythonPrinter().doprint(relation), "a relation of sizes", "eval")
    except (NotImplementedError, SyntaxError, TypeError):  # a function that has no Python
        return lambda values: relation.subs(values) != sympy.false
    return lambda values: bool(
        eval(code, {"math": math, "torch": torch}, {str(symbol): size for symbol, size in values.items()})
    )


def _follows(part: sympy.Basic, known: list[sympy.Basic], graph: Graph) -> bool:
    """Whether ``part`` is true for all sizes that were tried for which ``known`` is."""
    symbols = sorted(part.free_symbols, key=str)
    related = [checked(one) for one in known if one.free_symbols <= set(symbols)]
    holds = checked(part)
    draw = random.Random(0)
    for attempt in range(_TRIES):
        values = {}
        for symbol in symbols:
            least, most = graph.ranges.get(symbol, (2, None))
            least = max(least, 2)
            highest = least + _LARGEST if most is None else min(most, least + _LARGEST)
            # Small sizes first: each of them alone, as far as there is one symbol.
            values[symbol] = min(least + attempt, highest) if len(symbols) == 1 else draw.randint(least, highest)
        try:
            if not holds(values) and all(known_one(values) for known_one in related):
                return False
        except ZeroDivisionError:
            continue  # what divides is a quotient itself: there are no such sizes
    return True
