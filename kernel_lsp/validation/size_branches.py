"""Sizes at which a candidate's file takes another branch: one kernel for few rows and another for many are both tried."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from kernel_lsp.validation import sizes
from kernel_lsp.validation.inputs import Inputs, Leaf

#: elements of the largest input, and how many comparisons of a file are looked at
_MOST_ELEMENTS, _MOST_BRANCHES = 1 << 18, 4

#: a product: a number, and dimensions of inputs
_Product = tuple[int, list[tuple[Leaf, int]]]


def other_sides(source: str, inputs: Inputs, base: dict[str, int], small: dict[str, int]) -> dict[str, dict[str, int]]:
    """Comparison → sizes nearest to it at which it comes out otherwise than at ``base``, the other dimensions as short as can be.

    Comparisons of sizes of inputs, or of products of these, with a number, where the file branches on one. ``small``: sizes that the module takes.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {}
    found: dict[str, dict[str, int]] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for text, product, upper in _comparisons(function, inputs):
                at = _at(inputs, product, upper, base, small)
                if at is not None and len(found) < _MOST_BRANCHES:
                    found.setdefault(text, at)
    return found


def _comparisons(function: ast.FunctionDef, inputs: Inputs) -> Iterator[tuple[str, _Product, int]]:
    """Text, product, and the least number that lies on the upper side."""
    leaves = {leaf.name: leaf for leaf in inputs.leaves}
    named: dict[str, _Product] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            product = _product(node.value, leaves, named)
            if product is not None:
                named[node.targets[0].id] = product
    for branch in ast.walk(function):
        if not isinstance(branch, ast.If | ast.IfExp):
            continue
        for node in ast.walk(branch.test):
            if not isinstance(node, ast.Compare) or len(node.ops) != 1:
                continue
            left, right, operator = node.left, node.comparators[0], node.ops[0]
            turned = isinstance(left, ast.Constant)
            number, size = (left, right) if turned else (right, left)
            product = _product(size, leaves, named)
            if (
                product is None
                or not product[1]
                or not (isinstance(number, ast.Constant) and type(number.value) is int)
            ):
                continue
            below = isinstance(operator, ast.GtE | ast.Lt) if turned else isinstance(operator, ast.LtE | ast.Gt)
            if isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                yield ast.unparse(node), product, number.value + below


def _product(node: ast.expr, leaves: dict[str, Leaf], named: dict[str, _Product]) -> _Product | None:
    """What ``node`` multiplies; None where it is something else."""
    match node:
        case ast.Constant(value=int(number)):
            return number, []
        case ast.Name(id=name):
            return named.get(name)
        case (
            ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=place)
            | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="size"), args=[place])
        ):
            leaf, dim = leaves.get(name), _number(place)
            if leaf is None or dim is None or not -len(leaf.symbols) <= dim < len(leaf.symbols):
                return None
            return 1, [(leaf, dim % len(leaf.symbols))]
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            one, other = _product(left, leaves, named), _product(right, leaves, named)
            return None if one is None or other is None else (one[0] * other[0], one[1] + other[1])
    return None


def _number(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    return value if type(value) is int else None


def _at(
    inputs: Inputs, product: _Product, upper: int, base: dict[str, int], small: dict[str, int]
) -> dict[str, int] | None:
    """Sizes on the side where ``base`` is not; None where no dimension leads there, or only with too many elements."""
    number, dimensions = product

    def value(at: dict[str, int], without: str = "") -> int:
        factors = [
            inputs.shape(leaf, at)[dim] for leaf, dim in dimensions if not without or leaf.symbols[dim] != without
        ]
        return number * math.prod(factors)

    shortest = {s: min(n, sizes.least(inputs, s)) for s, n in small.items()}
    symbols = [symbol for leaf, dim in dimensions if (symbol := leaf.symbols[dim]) in base]
    for symbol in symbols:
        others = value(shortest, without=str(symbol))
        if symbol is None or symbols.count(symbol) > 1 or others <= 0:
            continue
        size = -(-upper // others) if value(base) < upper else (upper - 1) // others
        at = {**shortest, symbol: size}
        if size > 0 and sizes.clamped(inputs, symbol, size) == size and inputs.elements(at) <= _MOST_ELEMENTS:
            return at
    return None
