"""Recurrent layers are traced by their shapes: quickly, and with the results' shapes and the FLOPs of their products."""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import FlopCounterMode

from kernel_lsp.specimen import faking
from kernel_lsp.synthesis.capture import capture

LAYERS = {
    "lstm": lambda: nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True),
    "gru": lambda: nn.GRU(6, 8, num_layers=2),
    "rnn": lambda: nn.RNN(6, 8, nonlinearity="relu", bidirectional=True),
}


@pytest.mark.parametrize("name", LAYERS)
def test_shapes_are_those_of_the_layer(name):
    layer, x = LAYERS[name](), torch.randn(4, 5, 6)
    outputs = [tuple(t.shape) for t in pytree.tree_leaves(layer(x))]
    fake, _ = faking.run(layer, (x,), {})
    assert [tuple(t.shape) for t in pytree.tree_leaves(fake)] == outputs
    exported = capture(layer, (x,))
    found = exported.graph.output_node().args[0]
    assert [tuple(map(int, n.meta["val"].shape))[-1] for n in found] == [shape[-1] for shape in outputs]
    assert any("aten." + name in str(node.target) for node in exported.graph.nodes)


@pytest.mark.parametrize("name", ["gru", "rnn"])
def test_flops_are_those_that_torch_counts(name):
    layer, x = LAYERS[name](), torch.randn(4, 5, 6)
    with FlopCounterMode(display=False) as counter:  # on the CPU it does not see into an LSTM
        layer(x)
    assert faking.run(layer, (x,), {})[1] == counter.get_total_flops()


def test_many_steps_take_no_longer():
    layer, x = nn.LSTM(16, 16, num_layers=4), torch.randn(600, 2, 16)
    capture(layer, (x[:4],))  # imports
    began = time.process_time()
    capture(layer, (x,))
    assert time.process_time() - began < 10  # step by step it is a minute


def test_the_layer_itself_is_left_alone():
    layer, x = LAYERS["lstm"](), torch.randn(4, 5, 6)
    before = layer(x)[0]
    capture(layer, (x,))
    torch.testing.assert_close(layer(x)[0], before)


@pytest.mark.parametrize(
    "cell", [nn.LSTMCell(6, 8), nn.GRUCell(6, 8), nn.RNNCell(6, 8)], ids=lambda c: type(c).__name__
)
def test_a_cell_takes_any_batch_and_its_own_width(cell):
    exported = capture(cell, (torch.randn(4, 6),))
    x = next(n for n in exported.graph.nodes if n.op == "placeholder" and n.name == "input")
    batch, width = x.meta["val"].shape
    assert isinstance(batch, torch.SymInt) and width == 6
    found = [leaf for leaf in pytree.tree_leaves(exported.graph.output_node().args) if hasattr(leaf, "meta")]
    assert all(n.meta["val"].shape == (batch, 8) for n in found)
