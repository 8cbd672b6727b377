"""Texts mean what the trees mean: sizes on the host, expressions in kernels and in formulas."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._sympy.functions import FloatTrueDiv, FloorDiv, Max, Min, PythonMod, ToFloat

from kernel_lsp.size_text import python
from kernel_lsp.synthesis.graph.functions import FUNCTIONS
from kernel_lsp.synthesis.graph.value import Input, Pointwise, Value
from kernel_lsp.synthesis.kernel.arguments import Arguments
from kernel_lsp.synthesis.kernel.build import Builder
from kernel_lsp.synthesis.kernel.domain import Domain
from kernel_lsp.synthesis.kernel.ir import Ref, Variable
from kernel_lsp.synthesis.printing.formula import formula
from kernel_lsp.synthesis.printing.triton import Printer
from kernel_lsp.synthesis.schedule.program import Program

SIZES = {sympy.Symbol(name, integer=True, positive=True): value for name, value in (("a", 7), ("b", 3), ("c", 5))}


def sizes(depth: int) -> st.SearchStrategy[sympy.Expr]:
    """Size expressions as torch.export writes them."""
    leaf = st.sampled_from(list(SIZES)) | st.integers(1, 9).map(sympy.Integer)
    if not depth:
        return leaf
    inner = sizes(depth - 1)
    pairs = st.tuples(inner, inner)
    return (
        leaf
        | pairs.map(lambda p: p[0] + p[1])
        | pairs.map(lambda p: p[0] - p[1])
        | pairs.map(lambda p: p[0] * p[1])
        | pairs.map(lambda p: Max(p[0], p[1]))
        | pairs.map(lambda p: Min(p[0], p[1]))
        | st.tuples(inner, st.integers(2, 5)).map(lambda p: FloorDiv(p[0], sympy.Integer(p[1])))
        | st.tuples(inner, st.sampled_from(list(SIZES))).map(lambda p: FloorDiv(p[0], p[1] + 1))
        | st.tuples(inner, st.integers(2, 5)).map(lambda p: PythonMod(p[0], sympy.Integer(p[1])))
        | inner.map(lambda e: e**2)
        | inner.map(sympy.Abs)
    )


@settings(max_examples=150, deadline=None)
@given(sizes(3))
def test_a_size_as_python_is_the_same_number(expr: sympy.Expr) -> None:
    text = python(expr, {})
    numbers: dict[str, Any] = {symbol.name: n for symbol, n in SIZES.items()}
    assert eval(text, numbers) == int(sympy.sympify(expr).subs(SIZES)), text


def test_a_float_made_of_sizes() -> None:
    a, b, _ = SIZES
    for expr in (FloatTrueDiv(ToFloat(a), ToFloat(b)) ** 2, 1 / FloatTrueDiv(ToFloat(a), ToFloat(b + 1)), a * 0.25):
        expected = float(expr.subs(SIZES))
        assert math.isclose(eval(python(expr, {}), {"a": 7, "b": 3}), expected)


def test_symbols_have_the_text_that_is_given() -> None:
    a, b, _ = SIZES
    assert python(a * b + 1, {a: "x.shape[0]", b: "y.shape[1]"}) == "x.shape[0] * y.shape[1] + 1"


def test_a_sum_that_is_a_product_of_sizes_is_written_as_one() -> None:
    n, h, w = sympy.symbols("n h w", integer=True, positive=True)
    assert python(sympy.expand(n * (h + 1) * (w + 1)), {}) == "n * (h + 1) * (w + 1)"
    assert python(2 * h + 2, {}) == "2 * h + 2" and python(h * w - 1, {}) == "h * w - 1"


# -- functions in kernels and formulas --------------------------------------------------------------------------------

_COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
_LOGICAL = ["and", "or", "xor", "not"]
LEAVES = {name: Value(Input(name, "argument"), (), torch.float32, name) for name in ("x", "y", "z")}
#: What the texts call, for numbers instead of tensors.
_TL = SimpleNamespace(where=lambda c, a, b: a if c else b, abs=abs)
NAMESPACE: dict[str, Any] = {"tl": _TL, "where": _TL.where, "abs": abs}


def build(function: str, *operands: Any) -> Value:
    dtype = torch.bool if function in _COMPARISONS + _LOGICAL else torch.float32
    return Value(Pointwise(function, operands), (), dtype)


def numeric(depth: int) -> st.SearchStrategy[Any]:
    leaf = st.sampled_from(list(LEAVES.values())) | st.sampled_from([2, -3])
    if not depth:
        return leaf
    inner = numeric(depth - 1)
    tree = st.sampled_from(list(LEAVES.values())) if depth == 1 else inner.filter(lambda v: isinstance(v, Value))
    return (
        st.tuples(st.sampled_from(["add", "sub", "mul", "div"]), tree, inner).map(lambda p: build(*p))
        | st.tuples(st.sampled_from(["add", "sub", "mul", "div"]), inner, tree).map(lambda p: build(*p))
        | st.tuples(st.sampled_from(["neg", "identity", "abs"]), tree).map(lambda p: build(*p))
        | st.tuples(logical(depth - 1), tree, inner).map(lambda p: build("where", *p))
    )


def logical(depth: int) -> st.SearchStrategy[Value]:
    leaf = st.sampled_from(list(LEAVES.values()))
    pair = st.tuples(st.sampled_from(_COMPARISONS), leaf, numeric(max(0, depth - 1))).map(lambda p: build(*p))
    if depth <= 0:
        return pair
    inner = logical(depth - 1)
    both = st.tuples(st.sampled_from(["and", "or", "xor"]), inner, inner).map(lambda p: build(*p))
    return pair | both | inner.map(lambda v: build("not", v))


def number(operand: Any, values: dict[str, Fraction]) -> Any:
    if not isinstance(operand, Value):
        return operand
    if isinstance(operand.op, Input):
        return values[operand.name]
    assert isinstance(operand.op, Pointwise)
    if operand.op.function == "identity":
        return number(operand.op.operands[0], values)
    return FUNCTIONS[operand.op.function].evaluate(*(number(o, values) for o in operand.op.operands))


@settings(max_examples=100, deadline=None)
@given(
    (numeric(3) | logical(3)).filter(lambda v: isinstance(v, Value)),
    st.permutations([Fraction(3, 2), Fraction(-9, 4), Fraction(7)]),
)
def test_kernel_and_formula_mean_the_tree(value: Value, numbers: list[Fraction]) -> None:
    values = dict(zip(LEAVES, numbers, strict=True))
    try:
        expected = number(value, values)
    except ZeroDivisionError:
        return
    arguments = Arguments({})
    builder = Builder(Domain(), [], arguments, set(), {})
    builder.reduced = {leaf: Ref(Variable(name, fixed=True)) for name, leaf in LEAVES.items()}
    builder.count(value, ())
    result = builder.value(value, ())
    printer = Printer(Program("kernel", arguments))
    scope = {**NAMESPACE, **values}
    exec("\n".join(printer.block(builder.lines, 0)), scope)
    assert eval(printer.text(result), scope) == expected, printer.text(result)
    text = formula(value, {leaf: name for name, leaf in LEAVES.items()})
    assert eval(text, {**NAMESPACE, **values}) == expected, text
