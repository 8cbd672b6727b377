"""Operators that move elements along dimensions, repeat them, cut windows, or add margins: a ``Map`` each."""

from __future__ import annotations

from typing import Any

import sympy

from ..graph import maps
from ..graph.build import Build, NotLowered, expr_of, normalise, number_in
from ..graph.sizes import ONE, ZERO
from ..graph.value import Scalar, Shape, Value, numel
from .registry import lowers

_MODES = {"reflect": maps.reflect, "replicate": maps.replicate, "circular": maps.circular}


def _margins(x: Value, pads: list[Any]) -> maps.Margins:
    """torch's list, which begins with the last dimension, in the order of dimensions."""
    ends = [(expr_of(low), expr_of(high)) for low, high in zip(pads[::2], pads[1::2], strict=True)]
    return ((ZERO, ZERO),) * (len(x.shape) - len(ends)) + tuple(reversed(ends))


def _mirrored(given: dict[str, Any]) -> tuple[tuple[sympy.Expr, sympy.Expr], ...]:
    """What is mirrored does not have the element at the end: a margin is less than the size. A negative one cuts off."""
    x = given["x"]
    sides = [(margin, n) for n, ends in zip(x.shape, _margins(x, given["pads"]), strict=True) for margin in ends]
    return tuple((margin, n) for margin, n in sides if not margin.is_number or margin > 0)


def _wrapped(given: dict[str, Any]) -> tuple[tuple[sympy.Expr, sympy.Expr], ...]:
    """What is wrapped around has each element once: a margin is no greater than the size."""
    return tuple((margin - 1, n) for margin, n in _mirrored(given))


#: Modes in which a margin is bounded by the size.
_LESS = {"reflect": _mirrored, "circular": _wrapped}


@lowers(
    "aten.pad",
    about="With a margin of a number, or of the elements nearby",
    addressing=True,
    less=lambda given: _LESS[given["mode"]](given) if given.get("mode") in _LESS else (),
)
def pad(x: Value, pads: list[Any], mode: str = "constant", value: Any = None, **_: Any) -> Value:
    """``pads``: (before, after) of the last dim first; negative ones cut off. ``mode``: constant, reflect, replicate or circular.

    Raises:
        NotLowered: where circular padding cuts off, or the constant is known at run time alone.
    """
    margins = _margins(x, pads)
    if mode == "circular" and any(size.is_number and size < 0 for ends in margins for size in ends):
        raise NotLowered("circular padding that cuts off")
    if mode != "constant":
        return Build.view(x, _MODES[mode](x.shape, margins), f"{mode}_pad")
    if isinstance(value, Scalar):
        raise NotLowered("a pad known only at run time")
    return Build.view(x, maps.pad(x.shape, margins, number_in(value or 0, x.dtype)), "pad")


@lowers("aten.constant_pad_nd", about="With a margin of a number", addressing=True)
def constant_pad(x: Value, pads: list[Any], value: Any = 0, **_: Any) -> Value:
    """``pad`` with ``mode="constant"``."""
    return pad(x, pads, "constant", value)


@lowers(
    "aten.reflection_pad1d",
    "aten.reflection_pad2d",
    "aten.reflection_pad3d",
    about="With a margin of what is mirrored",
    addressing=True,
    less=_mirrored,
)
def reflection_pad(x: Value, pads: list[Any], **_: Any) -> Value:
    """``pad`` with ``mode="reflect"``: the element at the end is not repeated."""
    return pad(x, pads, "reflect")


@lowers(
    "aten.replication_pad1d",
    "aten.replication_pad2d",
    "aten.replication_pad3d",
    about="With a margin of the last elements",
    addressing=True,
)
def replication_pad(x: Value, pads: list[Any], **_: Any) -> Value:
    """``pad`` with ``mode="replicate"``."""
    return pad(x, pads, "replicate")


@lowers("aten.roll", about="Moved along dims, around the end", addressing=True)
def roll(x: Value, shifts: Any, dims: Any = (), **_: Any) -> Value:
    """A view; without ``dims`` of the flattened tensor. Shifts of one dim add up."""
    if ZERO in x.shape:
        return x
    shifts, dims = ([v] if isinstance(v, int | Scalar) else list(v) for v in (shifts, dims))
    if not dims:
        return Build.views(
            x,
            "roll",
            lambda shape: maps.reshape(shape, (numel(shape),)),
            lambda shape: maps.roll(shape, {0: expr_of(shifts[0])}),
            lambda shape: maps.reshape(shape, x.shape),
        )
    total: dict[int, sympy.Expr] = {}
    for d, shift in zip(dims, shifts, strict=True):
        place = normalise(d, len(x.shape))
        total[place] = total.get(place, ZERO) + expr_of(shift)
    return Build.view(x, maps.roll(x.shape, total), "roll")


@lowers("aten.repeat", "aten.tile", about="Several times along dims", addressing=True)
def repeat(x: Value, counts: list[Any], **_: Any) -> Value:
    """``counts`` for each dimension and for further ones in front; ``tile`` may leave out the first dimensions'."""
    numbers = (*[ONE] * (len(x.shape) - len(counts)), *(expr_of(n) for n in counts))
    return Build.view(x, maps.repeat(x.shape, numbers), "repeat")


def _window_fits(given: dict[str, Any]) -> tuple[tuple[sympy.Expr, sympy.Expr], ...]:
    """``Tensor.unfold`` refuses a dim that is shorter than a window."""
    x = given["x"]
    return ((expr_of(given["size"]) - 1, x.shape[normalise(given["dim"], len(x.shape))]),) if x.shape else ()


@lowers("aten.unfold", about="Windows along a dim", addressing=True, less=_window_fits)
def unfold(x: Value, dim: int, size: Any, step: Any, **_: Any) -> Value:
    """A view with the windows' places in ``dim`` and their elements as one dim more at the end.

    Raises:
        NotLowered: for a tensor of shape ().
    """
    if not x.shape:
        raise NotLowered("windows of a number")
    map = maps.unfold(x.shape, normalise(dim, len(x.shape)), expr_of(size), expr_of(step))
    return Build.view(x, map, "unfold")


@lowers("aten.diagonal", about="What stands on a diagonal", addressing=True)
def diagonal(x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1, *, shape: Shape, **_: Any) -> Value:
    """A view without ``dim1`` and ``dim2``, and the diagonal as the last dim."""
    a, b = normalise(dim1, len(x.shape)), normalise(dim2, len(x.shape))
    return Build.view(x, maps.diagonal(x.shape, offset, a, b, shape[-1]), "diagonal")


@lowers("aten.movedim", "aten.moveaxis", about="Dims at other places", addressing=True)
def movedim(x: Value, source: Any, target: Any, **_: Any) -> Value:
    """A permutation: the dims that are not named keep their order."""
    rank = len(x.shape)
    sources, targets = (
        [normalise(d, rank) for d in ([dims] if isinstance(dims, int) else dims)] for dims in (source, target)
    )
    rest = iter(d for d in range(rank) if d not in sources)
    order = tuple(sources[targets.index(d)] if d in targets else next(rest) for d in range(rank))
    return Build.permute(x, order)


@lowers("aten.pixel_shuffle", about="Channels as a finer image", addressing=True)
def pixel_shuffle(x: Value, factor: int, **_: Any) -> Value:
    """A view [..., C, H * r, W * r] of x [..., C * r * r, H, W].

    Source: Shi et al., sub-pixel convolution, 2016.
    """
    return Build.view(x, maps.pixel_shuffle(x.shape, factor), "pixel_shuffle")


@lowers("aten.pixel_unshuffle", about="A coarser image with more channels", addressing=True)
def pixel_unshuffle(x: Value, factor: int, **_: Any) -> Value:
    """A view [..., C * r * r, H, W] of x [..., C, H * r, W * r]."""
    return Build.view(x, maps.pixel_unshuffle(x.shape, factor), "pixel_unshuffle")


@lowers("aten.channel_shuffle", "aten.native_channel_shuffle", about="Channels of groups in turn", addressing=True)
def channel_shuffle(x: Value, groups: int, **_: Any) -> Value:
    """A view: channel ``g * n + i`` of G groups of n goes to ``i * G + g``.

    Source: Zhang et al., ShuffleNet, 2018.
    """
    return Build.view(x, maps.channel_shuffle(x.shape, groups), "channel_shuffle")


@lowers("aten.linalg_diagonal", about="What stands on a diagonal of the last two dims", addressing=True)
def linalg_diagonal(x: Value, *, offset: int = 0, dim1: int = -2, dim2: int = -1, shape: Shape, **_: Any) -> Value:
    """``diagonal``, by default of the last two dims."""
    return diagonal(x, offset, dim1, dim2, shape=shape)
