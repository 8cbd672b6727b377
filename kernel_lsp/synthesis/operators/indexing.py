"""Elements by index tensors: ``x[i]``, ``x[:, i, j]``, the rows of an embedding and of bags of it, one element for each index."""

from __future__ import annotations

import math
from typing import Any

import sympy
import torch

from ..graph.build import Build, NotLowered, broadcast_shapes, normalise, number_or_size
from ..graph.sizes import ONE, ZERO, quotient
from ..graph.value import Shape, Value, numel
from .ranges import ends_of, steps_of
from .registry import lowers
from .scattering import turned_around
from .views import expand

_Pairs = tuple[tuple[sympy.Expr, sympy.Expr], ...]


def _inside(places: Value | None, size: sympy.Expr, least: sympy.Expr = ZERO) -> _Pairs:
    """That ``places`` are from ``least`` to before ``size``, where they are numbers in a row: eager raises an error for others.

    Positions that are counted from the sizes of inputs (``table[torch.arange(x.shape[1])]``) are known before anything is read.
    """
    ends = ends_of(places) if isinstance(places, Value) else None
    known = [size, *ends] if ends is not None else []
    if ends is None or not all(one.is_polynomial(*one.free_symbols) for one in known):
        return ()
    falls = ends[0].could_extract_minus_sign() and not ends[0].is_number
    return _counted(-ends[0], 1 - least) if falls else (least - 1, ends[0]), _counted(ends[1], size)


def _counted(less: sympy.Expr, than: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
    """The pair with the number in ``less`` on the other side."""
    number, counted = sympy.expand(less).as_coeff_Add()
    return (counted, than - number) if counted != 0 else (number, than)


def _each_inside(given: dict[str, Any]) -> _Pairs:
    sizes = zip(given["indices"], given["x"].shape, strict=False)
    return tuple(pair for places, size in sizes for pair in _inside(places, size, -size))


def _inside_dim(given: dict[str, Any]) -> _Pairs:
    x = given["x"]
    return _inside(given["index"], x.shape[normalise(given["dim"], len(x.shape))]) if x.shape else ()


@lowers("aten.index", "aten._unsafe_index", about="Elements that index tensors name; not by bools", less=_each_inside)
def index(x: Value, indices: list[Value | None], *, shape: Shape, **_: Any) -> Value:
    """Several indices become one into their dims, merged; dims that do not follow one another go to the front.

    Raises:
        NotLowered: for indices that are not integers.
    """
    dims = [dim for dim, one in enumerate(indices) if one is not None]
    chosen = [one for one in indices if one is not None]
    if not dims or any(one.dtype not in (torch.int64, torch.int32) for one in chosen):
        raise NotLowered("an index that is not made of integers")
    if dims != list(range(dims[0], dims[-1] + 1)):
        x = Build.permute(x, (*dims, *(dim for dim in range(len(x.shape)) if dim not in dims)))
        dims = list(range(len(dims)))
    first, sizes = dims[0], x.shape[dims[0] : dims[-1] + 1]
    place: Value | None = None
    for one, size in zip(chosen, sizes, strict=True):
        own = _from_the_front(one, size)
        if place is not None:
            own = Build.pointwise(
                "add", Build.pointwise("mul", place, number_or_size(size), dtype=torch.int64), own, dtype=torch.int64
            )
        place = own
    assert place is not None
    wanted = broadcast_shapes(*(one.shape for one in chosen))
    if place.shape != wanted:
        place = Build.expand(place, wanted)
    merged = Build.reshape(x, (*x.shape[:first], numel(sizes), *x.shape[first + len(dims) :]))
    return Build.gather(merged, place, first, "rows", shape)


def _from_the_front(place: Value, size: Any) -> Value:
    """Negative places count from the end."""
    ends = ends_of(place)
    place = Build.cast(place, torch.int64)
    if ends is not None and sympy.sympify(ends[0]).is_nonnegative:
        return place
    return turned_around(place, size)


@lowers(
    "aten.embedding",
    about="The rows that an index names",
    less=lambda given: _inside(given["index"], given["weight"].shape[0]),
)
def embedding(weight: Value, index: Value, *_: Any, shape: Shape, **__: Any) -> Value:
    """A gather [..., D] of ``weight`` [N, D] by ``index`` [...]."""
    value = Build.gather(weight, index, 0, "rows", shape, "embedded")
    value.meaning = ("embedding", (weight, index))
    return value


@lowers("aten.embedding_bag", "aten._embedding_bag", about="Sum, mean or maximum of rows; of bags of one size")
def embedding_bag(
    weight: Value,
    index: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
    *,
    out: torch.dtype,
    **_: Any,
) -> list[Value]:
    """``mode`` 0 sums the rows of ``weight`` [N, D] that ``index`` names, 1 takes their mean, 2 their maximum; rows ``padding_idx`` do not count.

    Raises:
        NotLowered: where bags differ in size, or their sizes are known at run time alone.
    """
    size = _of_bags(index, offsets)
    if size is None or include_last_offset:
        raise NotLowered("bags whose sizes are not known to be equal")
    many = quotient(numel(index.shape), size)
    if many is None or (padding_idx is not None and padding_idx < -1):
        raise NotLowered("bags whose sizes are not known to be equal")
    places = Build.reshape(index, (many, size))
    rows = Build.gather(weight, places, 0, "rows", (many, size, weight.shape[1]), "embedded")
    if per_sample_weights is not None:
        factors = Build.unsqueeze(Build.reshape(per_sample_weights, (many, size)), 2)
        rows = Build.arithmetic("mul", rows, factors, result=out)
    counts = None if padding_idx is None or padding_idx < 0 else Build.comparison("ne", places, padding_idx)
    return [Build.squeeze(_bag(rows, counts, mode, out), (1,))]


def _of_bags(index: Value, offsets: Value) -> sympy.Expr | None:
    """How many of the indices [n] each bag has, where they begin evenly apart; None where that is not known."""
    found = steps_of(offsets)
    return found[1] if found is not None and found[0] == 0 and len(index.shape) == 1 else None


def _bag(rows: Value, counts: Value | None, mode: int, out: torch.dtype) -> Value:
    """What the ``rows`` [B, n, D] of each bag come to, [B, 1, D]; ``counts`` [B, n]: which of them count. A bag of none is 0."""
    lowest: Any = -math.inf if mode == 2 else 0.0
    if counts is not None:
        rows = Build.pointwise("where", Build.unsqueeze(counts, 2), Build.cast(rows, out), lowest, dtype=out)
    whole = Build.reduce("amax" if mode == 2 else "sum", rows, (1,), name="bag")
    if mode == 0 or (mode == 2 and counts is None):
        return whole
    if counts is None:
        return Build.pointwise("div", whole, number_or_size(rows.shape[1]), dtype=out)
    number = Build.reduce("sum", Build.unsqueeze(Build.cast(counts, torch.float32), 2), (1,), name="count")
    some = Build.comparison("gt", number, 0.0)
    mean = whole if mode == 2 else Build.pointwise("div", whole, number, dtype=out)
    return Build.pointwise("where", some, mean, 0.0, dtype=out)


@lowers("aten.index_select", about="The places of a dim that an index names", less=_inside_dim)
def index_select(x: Value, dim: int, index: Value, *, shape: Shape, **_: Any) -> Value:
    """A gather of ``index`` [n] or (), which counts as [1]; a tensor of shape () stays as it is."""
    if not index.shape:  # one place, which stays a dim
        index = Build.unsqueeze(index, 0)
    if not x.shape:
        return x
    return Build.gather(x, index, normalise(dim, len(x.shape)), "rows", shape)


@lowers("aten.gather", about="One element of a dim for each index", less=_inside_dim)
def gather(x: Value, dim: int, index: Value, *, shape: Shape, **_: Any) -> Value:
    """A gather; ``index`` has the rank of ``x`` and the result's shape."""
    if not x.shape:
        return expand(x, shape=shape)
    if not index.shape:
        return Build.squeeze(Build.gather(x, Build.unsqueeze(index, 0), 0, "take", (ONE,)), (0,))
    return Build.gather(x, index, normalise(dim, len(x.shape)), "take", shape)
