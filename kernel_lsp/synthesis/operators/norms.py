"""Normalisation layers, written out as reductions and elementwise operations."""

from __future__ import annotations

from typing import Any, overload

import sympy
import torch

from ..graph.build import Build, NotLowered, Operand, opmath, size_operand
from ..graph.sizes import ONE, quotient
from ..graph.value import Value, numel
from .reductions import finish, told, variance
from .registry import lowers


def _normalise(x: Value, axes: tuple[int, ...], eps: float) -> tuple[Value, Value, Value]:
    """((x - mean) * inv_std, mean, inv_std); the biased variance, as torch's norms use."""
    spread, average = variance(x, axes, 0.0)
    inv_std = Build.pointwise("rsqrt", Build.pointwise("add", spread, eps), name="inv_std")
    centered = spread.op.operands[0].op.operand.op.operands[0]  # type: ignore[attr-defined]  # shared with the variance
    return Build.pointwise("mul", centered, inv_std, name="normalized"), average, inv_std


def _affine(x: Value, weight: Operand | None, bias: Operand | None, out: torch.dtype) -> Value:
    if weight is not None:
        x = Build.pointwise("mul", x, Build.cast(weight, opmath(out)), dtype=opmath(out))
    if bias is not None:
        x = Build.pointwise("add", x, Build.cast(bias, opmath(out)), dtype=opmath(out))
    return Value(x.op, x.shape, out, x.name)


# Sizes that are refused where they are one: of a single element torch gives no statistics.


def _of_a_group(args: Any, _: Any) -> tuple[sympy.Expr, ...]:
    """Elements of a group, of all of the batch together: torch raises for one."""
    batch, channels, *positions = args[0].shape
    per_group = quotient(channels, sympy.Integer(args[1]))
    if per_group is None or (per_group.is_number and per_group > 1):
        return ()
    return (numel((batch, per_group, *positions)),)


def _of_a_channel(args: Any, _: Any) -> tuple[sympy.Expr, ...]:
    """Elements of a channel; of one alone torch gives no statistics."""
    return (numel(tuple(n for d, n in enumerate(args[0].shape) if d != 1)),)


def _if_asked(args: Any, fake: Any) -> tuple[sympy.Expr, ...]:
    """``_of_a_channel`` where statistics are the input's: torch raises for one element."""
    return _of_a_channel(args, fake) if args[5] else ()


def _of_an_instance(args: Any, _: Any) -> tuple[sympy.Expr, ...]:
    """Positions of an instance, where statistics are the input's: torch raises for one."""
    return (numel(args[0].shape[2:]),) if args[5] else ()


@lowers(
    "aten.layer_norm",
    about="Layer norm",
    formula="layer_norm(v, weight, bias) = (v - mean(v)) * rsqrt(var(v) + eps) * weight + bias",
)
def layer_norm(
    x: Value,
    normalized_shape: Any,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    *_: Any,
    out: torch.dtype,
    **__: Any,
) -> Value:
    """Over the last ``len(normalized_shape)`` dims, with the biased variance, computed in float32 for half precision.

    Source: Ba, Kiros and Hinton, Layer Normalization, 2016.
    """
    rank = len(x.shape)
    axes = tuple(range(rank - len(normalized_shape), rank))
    normal = _normalise(Build.cast(x, opmath(out)), axes, eps)[0]
    value = _affine(normal, weight, bias, out)
    value.meaning = ("layer_norm", tuple(v for v in (x, weight, bias) if v is not None))
    return value


@lowers("aten.native_layer_norm", about="Layer norm with the mean and the inverse deviation")
def native_layer_norm(
    x: Value, normalized_shape: Any, weight: Any, bias: Any, eps: float, *, out: Any, **_: Any
) -> list[Value]:
    """[normalised, mean, 1 / sqrt(var + eps)]; the last two keep the normalised dims with size one, and are float32 for half precision."""
    rank = len(x.shape)
    axes = tuple(range(rank - len(normalized_shape), rank))
    normal, average, inv_std = _normalise(x, axes, eps)
    value = _affine(normal, weight, bias, x.dtype)
    value.meaning = ("layer_norm", tuple(v for v in (x, weight, bias) if v is not None))
    return [value, told(average, inv_std), inv_std]


@lowers(
    "aten.rms_norm",
    about="Root-mean-square norm",
    formula="rms_norm(v, weight) = v * rsqrt(mean(v * v) + eps) * weight",
)
def rms_norm(
    x: Value,
    normalized_shape: Any,
    weight: Value | None = None,
    eps: float | None = None,
    *,
    out: torch.dtype,
    **_: Any,
) -> Value:
    """Over the last ``len(normalized_shape)`` dims; without ``eps`` it is the machine epsilon of the opmath, as in torch.

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.
    """
    rank = len(x.shape)
    axes = tuple(range(rank - len(normalized_shape), rank))
    eps = torch.finfo(opmath(x.dtype)).eps if eps is None else eps
    mean_square = Build.mean(Build.pointwise("mul", x, x), axes, name="mean_square")
    inv_rms = Build.pointwise("rsqrt", Build.pointwise("add", mean_square, eps), name="inv_rms")
    value = _affine(Build.pointwise("mul", x, inv_rms), weight, None, out)
    value.meaning = ("rms_norm", tuple(v for v in (x, weight) if v is not None))
    return value


@lowers(
    "aten.group_norm",
    formula="group_norm(v, weight, bias) = (v - mean(v)) * rsqrt(var(v) + eps) * weight + bias, per group of channels",
    not_one=_of_a_group,
)
def group_norm(
    x: Value,
    groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    *_: Any,
    out: torch.dtype,
    **__: Any,
) -> Value:
    """Normalise over (channels of a group, positions): the input seen as [N, G, C/G, positions…].

    Source: Wu and He, Group Normalization, 2018.

    Raises:
        NotLowered: where the number of channels is not known to be divisible by the groups.
    """
    batch, channels, *positions = x.shape
    per_group = quotient(channels, sympy.Integer(groups))
    if per_group is None:
        raise NotLowered("a channel count that is not known to be divisible by the groups")
    grouped = Build.reshape(x, (batch, sympy.Integer(groups), per_group, *positions))
    axes = tuple(range(2, len(grouped.shape)))
    normal = _normalise(grouped, axes, eps)[0]
    normal = Build.reshape(normal, x.shape)
    value = _affine(normal, _per_channel(weight, len(positions)), _per_channel(bias, len(positions)), out)
    value.meaning = ("group_norm", tuple(v for v in (x, weight, bias) if v is not None))
    return value


@overload
def _per_channel(v: Value, positions: int) -> Value: ...
@overload
def _per_channel(v: Value | None, positions: int) -> Value | None: ...
def _per_channel(v: Value | None, positions: int) -> Value | None:
    """One number per channel, with a size-one dimension for each position."""
    if v is None:
        return None
    return Build.reshape(v, (*v.shape, *([ONE] * positions)))


@lowers(
    "aten.instance_norm",
    about="Instance norm; not where it updates running statistics",
    formula="instance_norm(v) = (v - mean(v)) * rsqrt(var(v) + eps), per channel",
    not_one=_of_an_instance,
)
def instance_norm(
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value | None,
    var: Value | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    *_: Any,
    out: torch.dtype,
    **__: Any,
) -> Value:
    """``x``: [N, C, ...], over all dims from the third; by the running statistics in eval mode.

    Source: Ulyanov, Vedaldi and Lempitsky, Instance Normalization, 2016.

    Raises:
        NotLowered: where running statistics are to be updated.
    """
    if not use_input_stats and mean is not None and var is not None:  # eval mode
        return _by_running_statistics(x, weight, bias, mean, var, eps, out)
    if mean is not None:
        raise NotLowered("instance_norm updates its running statistics")
    axes = tuple(range(2, len(x.shape)))
    normal = _normalise(x, axes, eps)[0]
    positions = len(x.shape) - 2
    value = _affine(normal, _per_channel(weight, positions), _per_channel(bias, positions), out)
    value.meaning = ("instance_norm", (x,))
    return value


@lowers(
    "aten.batch_norm",
    formula="batch_norm(v) = (v - mean) * rsqrt(var + eps) * weight + bias, per channel",
    not_one=_if_asked,
)
def batch_norm(
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value | None,
    var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
    *_: Any,
    out: torch.dtype,
    **__: Any,
) -> Value:
    """In eval mode: an affine map per channel. In training mode without running statistics: over the batch.

    Source: Ioffe and Szegedy, Batch Normalization, 2015.

    Raises:
        NotLowered: in training mode with running statistics, which it would have to update.
    """
    if not training:
        assert mean is not None and var is not None
        return _by_running_statistics(x, weight, bias, mean, var, eps, out)
    if mean is not None:
        raise NotLowered("batch_norm in training mode updates its running statistics")
    positions = len(x.shape) - 2
    normal = _normalise(x, (0, *range(2, len(x.shape))), eps)[0]
    value = _affine(normal, _per_channel(weight, positions), _per_channel(bias, positions), out)
    value.meaning = ("batch_norm", (x,))
    return value


@lowers(
    "aten._native_batch_norm_legit_no_training",
    about="`batch_norm` in eval mode, as torch.export has it beside operations in place",
)
def batch_norm_for_inference(
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    var: Value,
    momentum: float,
    eps: float,
    *,
    out: torch.dtype,
    **_: Any,
) -> list[Value]:
    """What torch.export makes of ``batch_norm`` in a forward that changes a tensor in place; what it saves for backward is empty."""
    return [_by_running_statistics(x, weight, bias, mean, var, eps, out)]


@lowers(
    "aten._native_batch_norm_legit_functional",
    about="`batch_norm` in training mode, with what its running statistics become",
    not_one=_of_a_channel,
)
def batch_norm_in_training(
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    var: Value,
    training: bool,
    momentum: float,
    eps: float,
    *,
    out: torch.dtype,
    **_: Any,
) -> list[Value]:
    """[the norm, the batch's mean and inverse deviation, running mean, running variance], the last of the unbiased variance.

    Raises:
        NotLowered: where the running statistics are to be kept.
    """
    if not training:
        raise NotLowered("batch_norm that keeps its running statistics")
    axes = (0, *range(2, len(x.shape)))
    normal, average, inv_std = _normalise(Build.cast(x, opmath(out)), axes, eps)
    positions = len(x.shape) - 2
    value = _affine(normal, _per_channel(weight, positions), _per_channel(bias, positions), out)
    value.meaning = ("batch_norm", (x,))
    count = size_operand(numel(tuple(x.shape[d] for d in axes)))
    one_less = size_operand(numel(tuple(x.shape[d] for d in axes)) - 1)
    spread = inv_std.op.operands[0].op.operands[0]  # type: ignore[attr-defined]  # below the root: variance + eps
    unbiased = Build.pointwise("div", Build.pointwise("mul", spread, count), one_less, meaning=("var", (x, axes)))
    moved = [_moved(mean, average, momentum, "new_mean"), _moved(var, unbiased, momentum, "new_var")]
    return [value, *(finish(v, axes, keepdim=False) for v in (average, inv_std, *moved))]


def _moved(old: Value, new: Value, momentum: float, name: str) -> Value:
    """A running statistic [C] after one batch, shaped as ``new`` [1, C, 1, …]."""
    kept = Build.pointwise("mul", Build.reshape(old, new.shape), 1.0 - momentum)
    return Build.pointwise("add", kept, Build.pointwise("mul", new, momentum), dtype=old.dtype, name=name)


def _by_running_statistics(
    x: Value, weight: Value | None, bias: Value | None, mean: Value, var: Value, eps: float, out: torch.dtype
) -> Value:
    positions = len(x.shape) - 2
    centered = Build.pointwise("sub", x, _per_channel(mean, positions))
    inv_std = Build.pointwise("rsqrt", Build.pointwise("add", _per_channel(var, positions), eps), name="inv_std")
    normal = Build.pointwise("mul", centered, inv_std)
    value = _affine(normal, _per_channel(weight, positions), _per_channel(bias, positions), out)
    value.meaning = ("batch_norm", (x,))
    return value
