"""Views, and what puts tensors together or takes them apart."""

from __future__ import annotations

import sys
from typing import Any

import sympy

from .carry import Call, Carry, broadcast, require, tracked

#: Operators whose arguments may be sizes that depend on the symbol: what they do with these is seen in their results.
TAKE_SIZES = frozenset(
    f"aten.{name}"
    for name in [
        *("view", "_unsafe_view", "reshape", "flatten", "unflatten", "expand", "zeros", "ones", "full", "new_zeros"),
        *("new_ones", "new_full", "slice", "native_group_norm"),
    ]
)


def reshaped(call: Call) -> Carry:
    """Elements stay in order, so the place of the slices among them says which dimension of the result has them."""
    carry = call.only("self")
    shape = call["self"].shape
    (result,) = call.shapes
    before = _count(call, shape[: carry.dim]) * carry.outer
    dims = [i for i, n in enumerate(result) if call.symbol in n.free_symbols]
    require(len(dims) == 1, f"{call.name} spreads it over several dimensions")
    (dim,) = dims
    ahead = _count(call, result[:dim])
    times = sympy.expand(result[dim] / call.symbol)
    require(times.is_Integer, f"{call.name} cuts through it")
    require(before % ahead == 0 and int(times) % (before // ahead) == 0, f"{call.name} cuts through it")
    outer = before // ahead
    return Carry(dim, outer, int(times) // outer)


def _count(call: Call, sizes: tuple[sympy.Expr, ...]) -> int:
    count = sympy.prod(sizes) if sizes else sympy.Integer(1)
    require(count.is_Integer and count > 0, f"{call.name}: a size is not known")
    return int(count)


def expanded(call: Call) -> Carry | None:
    """From the right, as in broadcasting. What is the same for every slice may be repeated for each."""
    value = call["self"]
    (result,) = call.shapes
    if value.carry is None:
        dims = [i for i, n in enumerate(result) if call.symbol in n.free_symbols]
        require(len(dims) == 1 and result[dims[0]] == call.symbol, f"{call.name}: a size is not known")
        return Carry(dims[0])
    return broadcast([value], len(result), call.name)


def spread(call: Call) -> list[Carry | None]:
    """broadcast_tensors, expand_as: each result has the common shape, and what no input carries it stays free."""
    operands = call.tensors()
    results: list[Carry | None] = []
    for operand, shape in zip(operands, call.shapes, strict=False):
        together = [t for t in operands if t.carry]
        meets = any(call.symbol in n.free_symbols for n in shape)
        results.append(broadcast([operand, *together], len(shape), call.name) if meets else None)
    return results


def permuted(call: Call) -> Carry:
    """Where ``dims`` puts the dimension."""
    carry = call.only("self")
    order = [int(d) % call["self"].rank for d in call["dims"]]
    return carry.at(order.index(carry.dim))


def transposed(call: Call) -> Carry:
    """Two dimensions change places; ``t`` and the like: the last two."""
    carry = call.only("self")
    rank = call["self"].rank
    if "dim0" in call.args:
        one, other = (int(call[name]) % rank for name in ("dim0", "dim1"))
    elif "axis0" in call.args:
        one, other = (int(call[name]) % rank for name in ("axis0", "axis1"))
    else:
        one, other = rank - 2, rank - 1
    return carry.at({one: other, other: one}.get(carry.dim, carry.dim))


def reversed_dims(call: Call) -> Carry:
    """As far from the end as it was from the beginning."""
    carry = call.only("self")
    return carry.at(call["self"].rank - 1 - carry.dim)


def moved(call: Call) -> Carry:
    """Where ``movedim`` puts the dimension: as named, or among the rest in its order."""
    carry = call.only("self")
    rank = call["self"].rank

    def listed(name: str) -> list[int]:
        given = call[name]
        return [int(d) % rank for d in (given if isinstance(given, list) else [given])]

    source, destination = listed("source"), listed("destination")
    if carry.dim in source:
        return carry.at(destination[source.index(carry.dim)])
    rest = [d for d in range(rank) if d not in source]
    free = [d for d in range(rank) if d not in destination]
    return carry.at(free[rest.index(carry.dim)])


def selected(call: Call) -> Carry:
    """One dimension less in front where an earlier one is selected from.

    Raises:
        Dependent: where this one is.
    """
    carry = call.only("self")
    dim = int(call["dim"]) % call["self"].rank
    require(dim != carry.dim, f"{call.name} takes one of it")
    return carry.at(carry.dim - (dim < carry.dim))


def sliced(call: Call) -> Carry:
    """The same dimension, where it is taken whole.

    Raises:
        Dependent: where a part of it is, or the bounds of another are computed with its size.
    """
    carry = call.only("self")
    dim = int(call["dim"]) % call["self"].rank
    start, end, step = call["start"] or 0, call["end"], call["step"]
    whole = end is None or end == call["self"].shape[dim] or (isinstance(end, int) and end >= sys.maxsize)
    if dim == carry.dim:
        require(start == 0 and whole and step == 1, f"{call.name} takes a part of it")
    elif isinstance(start, sympy.Basic) or isinstance(end, sympy.Basic):
        numbers = [n for n in (start, end) if isinstance(n, sympy.Basic)]
        require(all(call.symbol not in n.free_symbols for n in numbers), f"{call.name} computes with the size")
    return carry


def taken_apart(call: Call) -> Carry:
    """Split, chunk: ``dim`` is cut, and stays."""
    carry = call.only("self")
    require(int(call["dim"]) % call["self"].rank != carry.dim, f"{call.name} takes it apart")
    return carry


def joined(call: Call) -> Carry:
    """cat: along another dimension, of tensors that all carry it."""
    parts = tracked(call["tensors"])
    rank = len(call.shapes[0])
    require(all(t.rank == rank for t in parts), f"{call.name}: its operands differ in rank")
    carries = {t.carry for t in parts}
    require(len(carries) == 1 and None not in carries, f"{call.name}: an operand is the same for every slice")
    (carry,) = carries
    assert carry is not None
    require(int(call["dim"]) % rank != carry.dim, f"{call.name} puts others behind it")
    return carry


def stacked(call: Call) -> Carry:
    """One dimension more in front where the new one comes before it.

    Raises:
        Dependent: where the tensors do not all have it, along the same dimension.
    """
    parts = tracked(call["tensors"])
    carries = {t.carry for t in parts}
    require(len(carries) == 1 and None not in carries, f"{call.name}: an operand is the same for every slice")
    (carry,) = carries
    assert carry is not None
    dim = int(call["dim"]) % len(call.shapes[0])
    return carry.at(carry.dim + (dim <= carry.dim))


def repeated(call: Call) -> Carry:
    """Its place among the result's dimensions, which may be more in front.

    Raises:
        Dependent: where it is repeated itself.
    """
    carry = call.only("self")
    times = list(call["repeats"] if "repeats" in call.args else call["dims"])
    rank, result = call["self"].rank, len(call.shapes[0])
    times = [1] * (result - len(times)) + times
    dim = carry.dim + result - rank
    require(times[dim] == 1, f"{call.name} repeats it")
    return carry.at(dim)


def padded(call: Call) -> Carry:
    """Padding is listed from the last dimension on, two numbers each."""
    carry = call.only("self")
    numbers = call["pad"] if "pad" in call.args else call["padding"]
    from_right = call["self"].rank - 1 - carry.dim
    own = list(numbers)[2 * from_right : 2 * from_right + 2]
    require(all(n == 0 for n in own), f"{call.name} pads it")
    return carry


def shuffled(call: Call) -> Carry:
    """Pixel shuffling: the last three dimensions."""
    carry = call.only("self")
    require(carry.dim < call["self"].rank - 3, f"{call.name} goes over it")
    return carry


def windows(call: Call) -> Carry:
    """unfold: windows of a dimension, which become the last one."""
    carry = call.only("self")
    require(int(call["dimension"]) % call["self"].rank != carry.dim, f"{call.name} goes over it")
    return carry


RULES: dict[str, Any] = {
    **{
        f"aten.{name}": reshaped
        for name in ["view", "_unsafe_view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze"]
    },
    "aten.expand": expanded,
    "aten.expand_as": spread,
    "aten.broadcast_tensors": spread,
    "aten.permute": permuted,
    **{f"aten.{name}": transposed for name in ["transpose", "t", "swapaxes", "swapdims", "mT", "adjoint"]},
    "aten.numpy_T": reversed_dims,
    "aten.movedim": moved,
    "aten.moveaxis": moved,
    "aten.select": selected,
    "aten.unbind": selected,
    "aten.slice": sliced,
    **{f"aten.{name}": taken_apart for name in ["split", "split_with_sizes", "chunk", "tensor_split", "narrow"]},
    "aten.cat": joined,
    "aten.concat": joined,
    "aten.stack": stacked,
    "aten.repeat": repeated,
    "aten.tile": repeated,
    **{
        f"aten.{name}": padded
        for name in [
            *("pad", "constant_pad_nd"),
            *(f"{kind}_pad{n}d" for kind in ("reflection", "replication") for n in (1, 2, 3)),
        ]
    },
    "aten.pixel_shuffle": shuffled,
    "aten.pixel_unshuffle": shuffled,
    "aten.channel_shuffle": shuffled,
    "aten.unfold": windows,
}
