"""A recurrence as data: its body at a step, where its states stand, and that passes keep it whole."""

from __future__ import annotations

import pytest
import sympy
import torch
from torch import nn

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.loops import after, at_step, before, contracted, traced
from kernel_lsp.synthesis.graph.lowered import Graph
from kernel_lsp.synthesis.graph.order import topological
from kernel_lsp.synthesis.graph.value import Contract, Given, Held, Pointwise, Recur, Recurrence, View
from kernel_lsp.synthesis.operators import lower
from kernel_lsp.synthesis.passes.rewrite import share


def graph_of(layer: nn.Module, *inputs: torch.Tensor) -> Graph:
    return lower(capture(layer.eval(), inputs))


def loops_of(graph: Graph) -> list[Recurrence]:
    return list(dict.fromkeys(v.op.loop for v in topological(graph.outputs) if isinstance(v.op, Recur)))


@pytest.mark.parametrize(
    ("layer", "states", "products"),
    [(nn.LSTM(6, 20), 2, 4), (nn.GRU(6, 20), 1, 3), (nn.RNN(6, 20), 1, 1)],
    ids=["lstm", "gru", "rnn"],
)
def test_layers_are_bodies_of_ordinary_values(layer: nn.Module, states: int, products: int) -> None:
    (loop,) = loops_of(graph_of(layer, torch.randn(5, 3, 6)))
    body = topological(list(loop.next))
    assert len(loop.next) == len(loop.held) == len(loop.first) == states
    assert {type(v.op) for v in body} <= {Held, Given, Contract, Pointwise, View}
    assert sum(isinstance(v.op, Contract) for v in body) == 1, "one product with the weight of all gates"
    assert loop.given[1].shape[0] == products * 20
    assert contracted(loop) == {loop.held[0]: 1}


def test_where_the_states_of_a_step_stand() -> None:
    layer = nn.GRU(6, 20, bidirectional=True)
    forward, backward = loops_of(graph_of(layer, torch.randn(5, 3, 6)))
    step = sympy.Symbol("step")
    assert (before(forward, step), after(forward, step)) == (step, step + 1)
    assert (before(backward, step), after(backward, step)) == (backward.steps - step, backward.steps - step - 1)
    assert before(backward, step + 1).equals(after(backward, step))
    assert traced(forward, forward.held[0]) == 0


def test_the_body_at_a_step_takes_the_place_of_that_step() -> None:
    (loop,) = loops_of(graph_of(nn.RNN(6, 20, batch_first=True), torch.randn(3, 5, 6)))
    step = sympy.Symbol("step", integer=True)
    (after_it,) = at_step(loop, step)
    selected = [v for v in topological([after_it]) if isinstance(v.op, View) and step in v.op.map.index]
    assert len(selected) == 1 and selected[0].op.map.index[1] == step  # dimension 1 of [batch, steps, units]
    assert any(v is loop.held[0] for v in topological([after_it])) and loop.next[0] is not after_it


def test_results_of_one_recurrence_stay_together_when_values_are_shared() -> None:
    graph = graph_of(nn.LSTM(6, 20, 2), torch.randn(5, 3, 6))
    share(graph)
    loops = loops_of(graph)
    assert [loop.name for loop in loops] == ["lstm", "lstm"]
    for loop in loops:
        assert all(v in topological(graph.outputs) for v in (*loop.first, *loop.given))


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        (nn.LSTM(6, 20, proj_size=4), "projections of the hidden state"),
        (nn.GRU(6, 20).double(), "recurrent layers in torch.float64"),
        (nn.RNN(6, 1), "a hidden state of one number"),
    ],
    ids=["projections", "float64", "one unit"],
)
def test_what_stays_with_torch(layer: nn.Module, why: str) -> None:
    x = torch.randn(5, 3, 6, dtype=next(layer.parameters()).dtype)
    exported = capture(layer.eval(), (x,))
    graph = lower(exported)
    assert len(graph.kept) == 1 and not loops_of(graph)
    assert any(node.meta.get("not_lowered") == why for node in exported.graph.nodes)


def test_dropout_between_layers_stays_with_torch_in_training_alone() -> None:
    layer, x = nn.LSTM(6, 20, 2, dropout=0.5), torch.randn(5, 3, 6)
    assert not graph_of(layer, x).kept
    assert lower(capture(layer, (x,), training=True)).kept
