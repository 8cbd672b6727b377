"""One step of a recurrent layer, as loops in a forward call it: ``nn.LSTMCell``, ``nn.GRUCell`` and ``nn.RNNCell``."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..graph.build import NotLowered
from ..graph.value import Value
from .products import linear
from .recurrent import GRU, LSTM, RNN_RELU, RNN_TANH, Layer
from .registry import lowers


def _step(
    layer: Layer,
    x: Value,
    states: list[Value],
    weights: tuple[Value, Value],
    biases: tuple[Value | None, Value | None],
    out: torch.dtype,
) -> list[Value]:
    """The states after the step."""
    if any(len(v.shape) != 2 for v in (x, *states)):
        raise NotLowered("a cell of one row that has no dimension for it")
    if out not in (torch.float32, torch.float16, torch.bfloat16):
        raise NotLowered(f"a recurrent cell in {out}")
    inputs = linear(x, weights[0], biases[0], out=out)
    of_state = linear(states[0], weights[1], biases[1], out=out)
    found = list(layer.body(tuple(states), inputs, of_state))
    for value, name in zip(found, layer.states, strict=True):
        value.name = name
    return found


@lowers("aten.lstm_cell", about="A step of an LSTM")
def lstm_cell(
    x: Value,
    states: list[Value],
    of_inputs: Value,
    of_states: Value,
    input_bias: Value | None = None,
    state_bias: Value | None = None,
    *,
    out: torch.dtype,
) -> list[Value]:
    """[hidden state, cell] after the step, each [N, units]; ``states``: both before it.

    Raises:
        NotLowered: without the dimension of rows, and for dtypes other than float32, float16 and bfloat16.
    """
    return _step(LSTM, x, states, (of_inputs, of_states), (input_bias, state_bias), out)


def _one_state(layer: Layer) -> Callable[..., Value]:
    def lowered(
        x: Value,
        state: Value,
        of_inputs: Value,
        of_states: Value,
        input_bias: Value | None = None,
        state_bias: Value | None = None,
        *,
        out: torch.dtype,
    ) -> Value:
        return _step(layer, x, [state], (of_inputs, of_states), (input_bias, state_bias), out)[0]

    return lowered


lowers("aten.gru_cell", about="A step of a GRU")(_one_state(GRU))
lowers("aten.rnn_tanh_cell", about="A step of an Elman layer with tanh")(_one_state(RNN_TANH))
lowers("aten.rnn_relu_cell", about="A step of an Elman layer with relu")(_one_state(RNN_RELU))
