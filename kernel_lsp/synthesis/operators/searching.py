"""Places in rows of sorted numbers, by binary search."""

from __future__ import annotations

import functools
from typing import Any

import sympy
import torch

from ..graph.build import Build, NotLowered
from ..graph.sizes import ONE
from ..graph.value import Shape, Value
from .indexing import gather
from .registry import lowers


def _search(rows: Value, values: Value | float, right: bool, out: torch.dtype) -> Value:
    """How many of ``rows`` [n] or [..., n] are less than each of ``values``, or (``right``) not greater.

    It goes the way of torch's search, also where a NaN is met, and takes as many steps as the longest one needs.

    Raises:
        NotLowered: n varies, or whole numbers are compared with one that is not.
    """
    n, last = rows.shape[-1], len(rows.shape) - 1
    if not n.is_Integer or n < 1:
        raise NotLowered("a search among numbers that are none, or as many as a size says")
    if isinstance(values, float) and not rows.dtype.is_floating_point:
        raise NotLowered("a search among whole numbers for one that is not")
    of = functools.partial(Build.pointwise, dtype=torch.int32)
    compared = functools.partial(Build.comparison, "gt" if right else "ge")
    middle = int(n) // 2
    beyond = compared(Build.slice(rows, last, sympy.Integer(middle), ONE, ONE), values)
    low, high = of("where", beyond, 0, middle + 1), of("where", beyond, middle, int(n))
    for _ in range(int(n).bit_length() - 1):
        searches = Build.comparison("lt", low, high)
        half = of("shift_right", of("sub", high, low), 1)
        between = of("add", low, half)
        beyond = compared(_at(rows, of("where", searches, between, 0)), values)
        found = functools.partial(Build.pointwise, "and", searches, dtype=torch.bool)
        high = of("where", found(beyond), between, high)
        low = of("where", found(Build.pointwise("not", beyond, dtype=torch.bool)), of("add", between, 1), low)
    return Build.cast(low, out)


def _at(rows: Value, places: Value) -> Value:
    if len(rows.shape) == 1:
        return Build.gather(rows, places, 0, "rows", places.shape)
    return gather(rows, -1, places, shape=places.shape)


def _given(values: Value | float) -> Value | float:
    """A number as [1]."""
    return Build.unsqueeze(values, 0) if isinstance(values, Value) and not values.shape else values


def _found(count: Value, shape: Shape, name: str, told: tuple[Any, ...], right: bool) -> Value:
    count.name, count.meaning = "place", (name, (*told, *(("right=True",) if right else ())))
    return count if shape else Build.squeeze(count, (0,))


def _leading(given: dict[str, Any]) -> tuple[tuple[sympy.Expr, sympy.Expr], ...]:
    """The sizes of all dims but the last, of which rows and values have the same."""
    rows, values = given["rows"], given["values"]
    return tuple(zip(rows.shape[:-1], values.shape[:-1], strict=True)) if len(rows.shape) > 1 else ()


@lowers(
    "aten.searchsorted",
    about="A binary search in sorted numbers, as many as are known",
    formula="searchsorted(v, x) = how many of the sorted v are less than x, with right=True not greater",
    equal=_leading,
)
def searchsorted(
    rows: Value,
    values: Value | float,
    *,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
    shape: Shape,
    out: torch.dtype,
    **_: Any,
) -> Value:
    """``rows`` [n], or [..., n] for ``values`` [..., m]; ``sorter``, of the same shape, brings them in order.

    Raises:
        NotLowered: n varies, or whole numbers are compared with one that is not.
    """
    if sorter is not None:
        rows = gather(rows, -1, sorter, shape=sorter.shape)
    right = right or side == "right"
    told = rows, values if isinstance(values, Value) else str(values)
    return _found(_search(rows, _given(values), right, out), shape, "searchsorted", told, right)


@lowers(
    "aten.bucketize",
    about="A binary search in sorted boundaries, as many as are known",
    formula="bucketize(x, v) = how many of the sorted v are less than x, with right=True not greater",
)
def bucketize(
    values: Value | float, edges: Value, *, right: bool = False, shape: Shape, out: torch.dtype, **_: Any
) -> Value:
    """``edges``: [n].

    Raises:
        NotLowered: n varies, or whole numbers are compared with one that is not.
    """
    told = values if isinstance(values, Value) else str(values), edges
    return _found(_search(edges, _given(values), right, out), shape, "bucketize", told, right)
