"""Convolutions that are left to torch, with their channels last in memory: cuDNN has faster ways then, and returns its result so.

Weights are kept so where packed weights are kept; else torch lays them out in every call.
What kernels store between such convolutions has its channels last, too, so that only the first and the last of a network lie otherwise.
"""

from __future__ import annotations

import dataclasses

import torch

from ..graph.build import Build
from ..graph.lowered import Graph
from ..graph.map import compose, dims
from ..graph.maps import permute
from ..graph.names import variable_name
from ..graph.order import topological
from ..graph.value import Input, Pointwise, TorchCall, Value, View
from .layout import LEAST_CHANNELS

#: the convolutions of images, and which dimension of their weight are the channels that come out
_CONVOLUTIONS = {"torch.ops.aten.conv2d.default": 0, "torch.ops.aten.conv_transpose2d.input": 1}
_LAST, _FIRST = (0, 2, 3, 1), (0, 3, 1, 2)

#: Those that cuDNN has on tensor cores.
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)

#: The place of the groups among the arguments of either.
_GROUPS = 6


def torch_channels_last(graph: Graph) -> int:
    """Give torch's convolutions of images their input with its channels last, where these are 16 and more. Returns how many there were."""
    count = 0
    for value in topological(graph.outputs):
        op = value.op
        if not isinstance(op, TorchCall) or op.target not in _CONVOLUTIONS or not _suits(op):
            continue
        x, weight, *others = op.args
        if graph.keeps_packed_weights and isinstance(weight.op, Input) and weight.op.contiguous:
            weight = _with_channels_last(weight)  # else torch copies it so in every call
        call = dataclasses.replace(op, args=(_with_channels_last(x), weight, *others), order=_LAST)
        shape = tuple(value.shape[d] for d in _LAST)
        result = Value(call, shape, value.dtype, node=value.node)
        value.op = View(permute(shape, _FIRST), result, "permute")
        count += 1
    return count


def _suits(op: TorchCall) -> bool:
    x, weight = op.args[:2]
    if not (isinstance(x, Value) and isinstance(weight, Value) and len(x.shape) == 4 and x.dtype in _DTYPES):
        return False
    groups = op.args[_GROUPS] if len(op.args) > _GROUPS else op.kwargs.get("groups", 1)
    channels = [size for size in (x.shape[1], weight.shape[_CONVOLUTIONS[op.target]]) if size.is_number]
    return groups == 1 and len(channels) == 2 and min(channels) >= LEAST_CHANNELS


def _with_channels_last(x: Value) -> Value:
    """``x`` as a view of what has its channels last in memory; everything else reads that, too."""
    if _has_channels_last(x):
        return x
    computed = x
    if not isinstance(x.op, Input | TorchCall):
        computed = Value(x.op, x.shape, x.dtype, x.name, x.meaning, x.node)
    name = f"{variable_name(x)}_last"
    last = Build.pointwise("identity", Build.permute(computed, _LAST), dtype=x.dtype, name=name)
    view = View(permute(last.shape, _FIRST), last, "permute")
    if computed is x:
        return Value(view, x.shape, x.dtype, x.name)
    x.op = view
    return x


def _has_channels_last(x: Value) -> bool:
    """Whether it views what a convolution before it gave, or what was stored for one, as that lies in memory."""
    if not isinstance(x.op, View):
        return False
    stored = x.op.operand
    if not isinstance(stored.op, TorchCall) and not (
        isinstance(stored.op, Pointwise) and stored.op.function == "identity"
    ):
        return False
    both = compose(permute(x.shape, _LAST), x.op.map)
    return both is not None and both.shape == stored.shape and both.index == dims(4) and not both.guard
