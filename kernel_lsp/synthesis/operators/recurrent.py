"""Recurrent layers: LSTM, GRU and RNN are three bodies of one recurrence; what the inputs bring to all steps is a product before it.

The formulas are those of torch.nn's documentation; weights and biases hold the gates one below the other, in its order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from ..graph.build import Build, NotLowered, opmath
from ..graph.loops import PROJECTED, results
from ..graph.sizes import ONE, ZERO
from ..graph.value import Given, Held, Recurrence, Shape, Value
from .activations import relu
from .products import linear
from .registry import lowers

#: The next states, of the held ones, the inputs' share in the step, and the share of the first state (its product with the weight).
Body = Callable[[tuple[Value, ...], Value, Value], tuple[Value, ...]]

_MOST_PIECES = 8  # of what one kernel puts together


@dataclass(frozen=True)
class Layer:
    """How a kind of layer steps. ``apart``: the bias of the state's share stays with that, else the inputs' share has both.

    ``bounded``: of ``Recurrence``.
    """

    name: str
    states: tuple[str, ...]
    body: Body
    apart: bool = False
    bounded: bool = True


def _gates(shares: Value, count: int) -> list[Value]:
    """``count`` equal parts along the last dimension."""
    width = shares.shape[1] / count
    return [Build.slice(shares, 1, place * width, ONE, width) for place in range(count)]


def _lstm(held: tuple[Value, ...], inputs: Value, of_state: Value) -> tuple[Value, ...]:
    cell = held[1]
    gates = _gates(Build.pointwise("add", inputs, of_state), 4)
    input_gate, forget_gate = (
        Build.pointwise("sigmoid", gates[i], name=f"{n}_gate") for i, n in enumerate(("input", "forget"))
    )
    candidate = Build.pointwise("tanh", gates[2], name="candidate")
    output_gate = Build.pointwise("sigmoid", gates[3], name="output_gate")
    kept, new = Build.pointwise("mul", forget_gate, cell), Build.pointwise("mul", input_gate, candidate)
    cell = Build.pointwise("add", kept, new, name="next_cell")
    return Build.pointwise("mul", output_gate, Build.pointwise("tanh", cell), name="next_hidden"), cell


def _gru(held: tuple[Value, ...], inputs: Value, of_state: Value) -> tuple[Value, ...]:
    (hidden,) = held
    ours, theirs = _gates(inputs, 3), _gates(of_state, 3)
    reset = Build.pointwise("sigmoid", Build.pointwise("add", ours[0], theirs[0]), name="reset_gate")
    update = Build.pointwise("sigmoid", Build.pointwise("add", ours[1], theirs[1]), name="update_gate")
    share = Build.pointwise("add", ours[2], Build.pointwise("mul", reset, theirs[2]))
    candidate = Build.pointwise("tanh", share, name="candidate")
    stays = Build.pointwise("mul", update, Build.pointwise("sub", hidden, candidate))
    return (Build.pointwise("add", candidate, stays, name="next_hidden"),)


def _rnn_tanh(_: tuple[Value, ...], inputs: Value, of_state: Value) -> tuple[Value, ...]:
    return (Build.pointwise("tanh", Build.pointwise("add", inputs, of_state), name="next_hidden"),)


def _rnn_relu(_: tuple[Value, ...], inputs: Value, of_state: Value) -> tuple[Value, ...]:
    total = Build.pointwise("add", inputs, of_state)
    value = relu(total, out=total.dtype)
    value.name = "next_hidden"
    return (value,)


LSTM = Layer("lstm", ("hidden", "cell"), _lstm)
GRU = Layer("gru", ("hidden",), _gru, apart=True)
RNN_TANH, RNN_RELU = Layer("rnn_tanh", ("hidden",), _rnn_tanh), Layer("rnn_relu", ("hidden",), _rnn_relu, bounded=False)


@lowers(
    "aten.lstm",
    about="LSTM layers; not with projections, packed sequences or dropout between layers",
    formula="""lstm(v, weight), in each step:
i, f, g, o = (v[step] + hidden @ weight.T).chunk(4, dim=-1)
input_gate = sigmoid(i)
forget_gate = sigmoid(f)
candidate = tanh(g)
output_gate = sigmoid(o)
cell = forget_gate * cell + input_gate * candidate
hidden = output_gate * tanh(cell)""",
)
def lstm(
    x: Value,
    states: list[Value],
    parameters: list[Value],
    biased: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    *,
    out: torch.dtype,
) -> list[Value]:
    """[outputs, last hidden states, last cells] as ``torch.nn.LSTM`` gives them; ``states``: the first of both.

    Source: Hochreiter and Schmidhuber, Long Short-Term Memory, 1997.

    Raises:
        NotLowered: for projections, dropout between layers in training mode, one hidden unit, and dtypes other than float32, float16
            and bfloat16.
    """
    _check(states, parameters, biased, layers, dropout, train, bidirectional)
    return _stack(LSTM, x, states, parameters, biased, bidirectional, batch_first, out)


def _one_state(layer: Layer) -> Callable[..., list[Value]]:
    def lowered(
        x: Value,
        state: Value,
        parameters: list[Value],
        biased: bool,
        layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
        *,
        out: torch.dtype,
    ) -> list[Value]:
        _check([state], parameters, biased, layers, dropout, train, bidirectional)
        return _stack(layer, x, [state], parameters, biased, bidirectional, batch_first, out)

    return lowered


lowers(
    "aten.gru",
    about="GRU layers; not with packed sequences or dropout between layers",
    formula="""gru(v, weight, bias), in each step:
v_r, v_z, v_n = v[step].chunk(3, dim=-1)
h_r, h_z, h_n = (hidden @ weight.T + bias).chunk(3, dim=-1)
reset_gate = sigmoid(v_r + h_r)
update_gate = sigmoid(v_z + h_z)
candidate = tanh(v_n + reset_gate * h_n)
hidden = candidate + update_gate * (hidden - candidate)""",
)(_one_state(GRU))
lowers(
    "aten.rnn_tanh",
    about="Elman layers with tanh; not with packed sequences or dropout between layers",
    formula="rnn_tanh(v, weight), in each step: hidden = tanh(v[step] + hidden @ weight.T)",
)(_one_state(RNN_TANH))
lowers(
    "aten.rnn_relu",
    about="Elman layers with relu; not with packed sequences or dropout between layers",
    formula="rnn_relu(v, weight), in each step: hidden = relu(v[step] + hidden @ weight.T)",
)(_one_state(RNN_RELU))


def _check(
    states: list[Value],
    parameters: list[Value],
    biased: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> None:
    """Check that the layers are of a form that is lowered.

    Raises:
        NotLowered: they stay with torch.
    """
    if dropout and train and layers > 1:
        raise NotLowered("dropout between layers")
    if len(parameters) != layers * (1 + bidirectional) * (4 if biased else 2):
        raise NotLowered("projections of the hidden state")
    if any(state.dtype not in (torch.float32, torch.float16, torch.bfloat16) for state in states):
        raise NotLowered(f"recurrent layers in {states[0].dtype}")
    if states[0].shape[-1] == ONE:
        raise NotLowered("a hidden state of one number")


def _stack(
    layer: Layer,
    x: Value,
    states: list[Value],
    parameters: list[Value],
    biased: bool,
    bidirectional: bool,
    batch_first: bool,
    out: torch.dtype,
) -> list[Value]:
    """The output of the last layer, and each state after the last step, of all layers and directions one after the other."""
    if ZERO in x.shape:
        raise NotLowered("a recurrent layer over nothing")
    along, last = 1 if batch_first else 0, []
    count = 4 if biased else 2
    directions = 2 if bidirectional else 1
    for first in range(0, len(parameters) // count, directions):
        outputs = []
        for backward in range(directions):
            place = first + backward
            weights = parameters[place * count : (place + 1) * count]
            begin = [Build.select(state, 0, ZERO + place) for state in states]
            output, *ends = _direction(layer, x, begin, weights, along, bool(backward), out)
            outputs.append(output)
            last.append(ends)
        shape = (*outputs[0].shape[:-1], outputs[0].shape[-1] * directions)
        x = outputs[0] if directions == 1 else Build.concat(tuple(outputs), 2, shape, out)
        x.name = layer.states[0]
        along = 0
    if batch_first:
        x = Build.permute(x, (1, 0, 2))
    return [x, *(_joined([each[i] for each in last], out) for i in range(len(states)))]


def _direction(
    layer: Layer, x: Value, begin: list[Value], weights: list[Value], along: int, backward: bool, out: torch.dtype
) -> list[Value]:
    """The first state after each step, [steps, batch, hidden], and every state after the last step."""
    biases = weights[2:]
    own = biases[1:] if layer.apart else []
    inputs = _inputs_share(x, weights[0], biases[: 1 if layer.apart else 2], out)
    shape, state = (*inputs.shape[:along], *inputs.shape[along + 1 :]), (x.shape[1 - along], weights[1].shape[1])
    held = tuple(Value(Held(), state, opmath(out), name) for name in layer.states)
    share = Value(Given(along), shape, inputs.dtype, PROJECTED)
    parts = (share, *(Value(Given(), v.shape, v.dtype, v.name) for v in (weights[1], *own)))
    of_state = Build.contract(held[0], parts[1], "bk", "nk", "bn", opmath(out))
    if own:
        of_state = Build.pointwise("add", of_state, parts[2])
    after = layer.body(held, share, of_state)
    given = (inputs, weights[1], *own)
    steps = x.shape[along]
    loop = Recurrence(layer.name, steps, backward, held, parts, after, tuple(begin), given, bounded=layer.bounded)
    trace = results(loop, 0, out, layer.states[0], each=True)
    output = Build.slice(trace, 0, ZERO if backward else ONE, ONE, steps)
    output.name = trace.name
    return [output, *(results(loop, i, out, f"last_{v.name}", each=False) for i, v in enumerate(held))]


def _inputs_share(x: Value, weight: Value, biases: list[Value], out: torch.dtype) -> Value:
    """What the inputs bring to the gates of every step: their product with the weight, plus the biases."""
    single = tuple(d for d in (0, 1) if x.shape[d] == ONE)[:1]  # one row would be no product of matrices
    flat = Build.squeeze(x, single) if single else x
    value = linear(flat, weight, biases[0] if biases else None, out=out)
    if single:
        value = Build.unsqueeze(value, single[0])
    if len(biases) > 1:
        value = Build.pointwise("add", value, biases[1], dtype=out)
    value.name = PROJECTED
    return value


def _joined(states: list[Value], out: torch.dtype) -> Value:
    """Along a new first dimension."""
    name = states[0].name
    values = [Build.unsqueeze(state, 0) for state in states]
    while len(values) > 1:
        groups = [values[i : i + _MOST_PIECES] for i in range(0, len(values), _MOST_PIECES)]
        values = [group[0] if len(group) == 1 else _concatenated(group, out) for group in groups]
    values[0].name = name
    return values[0]


def _concatenated(values: list[Value], out: torch.dtype) -> Value:
    shape: Shape = (sum((v.shape[0] for v in values), ZERO), *values[0].shape[1:])
    return Build.concat(tuple(values), 0, shape, out)
