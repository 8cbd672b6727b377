"""torch.einsum as what exists already: permutations, products of elements with a sum, batched matrix products."""

from __future__ import annotations

from typing import Any

import sympy
import torch

from ..graph.build import Build, NotLowered
from ..graph.sizes import ONE, same_shape
from ..graph.value import Value, numel
from .products import matmul
from .registry import lowers

#: A tensor with a label for each of its dims: a letter, or "…0", "…1", … for what an ellipsis stands for.
Labelled = tuple[Value, list[str]]


def _of_one_letter(given: dict[str, Any]) -> tuple[tuple[sympy.Expr, sympy.Expr], ...]:
    """Each letter's sizes, but those of one, which are broadcast, beside the one that they are taken to be."""
    operands = given["operands"]
    terms, _ = _parsed(given["equation"], [len(v.shape) for v in operands])
    sizes = _sizes(operands, terms)
    pairs = zip((n for v in operands for n in v.shape), (label for term in terms for label in term), strict=True)
    return tuple((n, sizes[label]) for n, label in pairs if n != ONE)


def _sizes(operands: list[Value], terms: list[list[str]]) -> dict[str, sympy.Expr]:
    """The size of each label: of several that differ as expressions the shortest."""
    sizes: dict[str, sympy.Expr] = {}
    for value, term in zip(operands, terms, strict=True):
        for label, n in zip(term, value.shape, strict=True):
            known = sizes.get(label, ONE)
            if known == ONE or (n != ONE and sympy.count_ops(n) < sympy.count_ops(known)):
                sizes[label] = n
    return sizes


@lowers(
    "aten.einsum",
    equal=_of_one_letter,
    about="Sums of products by an equation; a letter that an operand repeats stays with torch",
)
def einsum(equation: str, operands: list[Value], *_: Any, out: torch.dtype, **__: Any) -> Value:
    """The operands are contracted from left to right, each pair over the labels that nothing later needs.

    Raises:
        NotLowered: where an operand repeats a letter.
    """
    terms, result = _parsed(equation, [len(v.shape) for v in operands])
    if any(len(set(term)) < len(term) for term in terms):
        raise NotLowered("einsum with a letter repeated in one operand")
    sizes = _sizes(operands, terms)
    left = [(_sized(Build.cast(v, out), term, sizes), term) for v, term in zip(operands, terms, strict=True)]
    while len(left) > 1:
        needed = {label for _v, term in left[2:] for label in term} | set(result)
        left[:2] = [_contracted(left[0], left[1], needed, out)]
    value, labels = _summed(left[0], set(result))
    return Build.permute(value, tuple(labels.index(label) for label in result)) if labels != result else value


def _sized(value: Value, term: list[str], sizes: dict[str, sympy.Expr]) -> Value:
    """With the sizes of its labels; they are known to be its own, or the class checks it."""
    shape = tuple(n if n == ONE else sizes[label] for n, label in zip(value.shape, term, strict=True))
    return value if same_shape(shape, value.shape) else Build.expand(value, shape)


def _parsed(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """(labels of each operand, labels of the result).

    Raises:
        NotLowered: the result's cannot be had.
    """
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    texts = inputs.split(",")
    if len(texts) != len(ranks):
        raise NotLowered("einsum with another number of operands")
    widest = max(rank - len(text.replace("...", "")) for text, rank in zip(texts, ranks, strict=True))
    terms = [_labels(text, rank, widest) for text, rank in zip(texts, ranks, strict=True)]
    every = [label for term in terms for label in term]
    dots = [f"…{i}" for i in range(widest)] if "..." in inputs else []
    if arrow:
        before, ellipsis, after = output.partition("...")
        return terms, [*before, *(dots if ellipsis else []), *after]
    return terms, dots + sorted(label for label in set(every) if every.count(label) == 1 and label not in dots)


def _labels(text: str, rank: int, widest: int) -> list[str]:
    """The labels of one operand; its ellipsis stands for the last of the ``widest`` that there are."""
    before, ellipsis, after = text.partition("...")
    count = rank - len(before) - len(after) if ellipsis else 0
    return [*before, *(f"…{i}" for i in range(widest - count, widest)), *after]


def _summed(term: Labelled, needed: set[str]) -> Labelled:
    """Without the labels that nothing needs."""
    value, labels = term
    dims = tuple(i for i, label in enumerate(labels) if label not in needed)
    if not dims:
        return term
    return Build.squeeze(Build.reduce("sum", value, dims), dims), [label for label in labels if label in needed]


def _contracted(a: Labelled, b: Labelled, needed: set[str], out: torch.dtype) -> Labelled:
    a, b = _without_ones(a, b), _without_ones(b, a)
    a, b = _summed(a, needed | set(b[1])), _summed(b, needed | set(a[1]))
    shared = [label for label in a[1] if label in b[1]]
    batch = [label for label in shared if label in needed]
    over = [label for label in shared if label not in needed]
    rows = [label for label in a[1] if label not in shared]
    columns = [label for label in b[1] if label not in shared]
    if over and rows and columns:
        return _product(a, b, batch, over, rows, columns, out), [*batch, *rows, *columns]
    labels = [*batch, *rows, *columns, *over]
    value = Build.pointwise("mul", _spread(a, labels), _spread(b, labels))
    return _summed((value, labels), needed)


def _without_ones(a: Labelled, b: Labelled) -> Labelled:
    """``a`` without dims of size one that broadcast along the same label of ``b``."""
    value, labels = a
    dims = tuple(
        i
        for i, label in enumerate(labels)
        if label in b[1] and value.shape[i] == ONE and b[0].shape[b[1].index(label)] != ONE
    )
    return (Build.squeeze(value, dims), [x for i, x in enumerate(labels) if i not in dims]) if dims else a


def _spread(term: Labelled, labels: list[str]) -> Value:
    """The dims in the order of ``labels``, of size one where the term lacks one."""
    value, own = term
    order = [own.index(label) for label in labels if label in own]
    if order != sorted(order):
        value = Build.permute(value, tuple(order))
    for i, label in enumerate(labels):
        if label not in own:
            value = Build.unsqueeze(value, i)
    return value


def _product(
    a: Labelled, b: Labelled, batch: list[str], over: list[str], rows: list[str], columns: list[str], out: torch.dtype
) -> Value:
    """The sum over ``over`` as a batched matrix product [*batch, rows, over] @ [*batch, over, columns]."""
    left, right = _spread(a, [*batch, *rows, *over]), _spread(b, [*batch, *over, *columns])
    n, m = len(batch), len(batch) + len(rows)
    shared, high, wide = left.shape[:n], left.shape[n:m], right.shape[n + len(over) :]
    assert same_shape(left.shape[m:], right.shape[n : n + len(over)])
    inner = numel(left.shape[m:])
    product = matmul(
        Build.reshape(left, (*shared, numel(high), inner)), Build.reshape(right, (*shared, inner, numel(wide))), out=out
    )
    return Build.reshape(product, (*shared, *high, *wide))
