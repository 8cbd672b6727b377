"""Recurrent layers while a graph is traced: their shapes, without their steps.

torch.export keeps ``aten.lstm`` and its kin whole, but finds their shapes by tracing every step of every layer: a minute for
six layers of 512 steps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._C import DispatchKey
from torch.overrides import TorchFunctionMode

_aten = torch.ops.aten
_KEYS = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd)


def _output(x: torch.Tensor, width: int, bidirectional: bool) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], width * (2 if bidirectional else 1)))


def _lstm(
    x: Any,
    hx: Any,
    params: Any,
    has_biases: Any,
    num_layers: Any,
    dropout: Any,
    train: Any,
    bidirectional: Any,
    *_: Any,
) -> Any:
    h, c = hx
    return _output(x, h.shape[-1], bidirectional), torch.empty_like(h), torch.empty_like(c)


def _one_state(
    x: Any, h: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any, bidirectional: Any, *_: Any
) -> Any:
    return _output(x, h.shape[-1], bidirectional), torch.empty_like(h)


def _lstm_cell(x: Any, hx: Any, of_inputs: Any, of_states: Any, *_: Any) -> Any:
    return _cell(x, hx[0], of_inputs, of_states), torch.empty_like(hx[1])


def _cell(x: Any, h: Any, of_inputs: Any, of_states: Any, *_: Any) -> Any:
    # torch's own checks compare numbers, which would fix the size of a batch.
    torch._check(x.shape[-1] == of_inputs.shape[1])
    torch._check(h.shape[-1] == of_states.shape[1])
    if x.dim() == 2:
        torch._check(x.shape[0] == h.shape[0])
    return torch.empty_like(h)


_SHAPES: dict[Any, Callable[..., Any]] = {
    _aten.lstm.input: _lstm,
    _aten.gru.input: _one_state,
    _aten.rnn_tanh.input: _one_state,
    _aten.rnn_relu.input: _one_state,
    _aten.lstm_cell.default: _lstm_cell,
    _aten.gru_cell.default: _cell,
    _aten.rnn_tanh_cell.default: _cell,
    _aten.rnn_relu_cell.default: _cell,
}

_BY_NAME = {"lstm": _lstm, "gru": _one_state, "rnn_tanh": _one_state, "rnn_relu": _one_state}


class Shapes(TorchFunctionMode):
    """In this context a recurrent layer that is called makes tensors of its results' shapes, no more.

    ``flops``: what its products would take, one multiplication and one addition each: for every step, layer and
    direction all of its weight matrices times the batch.
    """

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        shapes = _BY_NAME.get(getattr(func, "__name__", ""))
        if shapes is None or kwargs or len(args) < 9 or not isinstance(args[2], (list, tuple)):
            return func(*args, **(kwargs or {}))
        x = args[0]
        steps = x.shape[:-1].numel() if x.dim() == 3 else x.shape[0]
        self.flops += 2 * int(steps) * sum(int(p.numel()) for p in args[2] if p.dim() == 2)
        return shapes(*args)


@contextlib.contextmanager
def shapes_alone() -> Iterator[None]:
    """In this context a recurrent layer under the Python dispatcher makes tensors of its results' shapes, no more."""
    kept = [(op, key, op.py_kernels.get(key)) for op in _SHAPES for key in _KEYS]
    try:
        for op, key, _ in kept:
            op.py_kernels[key] = _SHAPES[op]
            op._dispatch_cache.clear()
        yield
    finally:
        for op, key, old in kept:
            if old is None:
                op.py_kernels.pop(key, None)
            else:
                op.py_kernels[key] = old
            op._dispatch_cache.clear()
