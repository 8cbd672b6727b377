"""Which recurrences one launch goes through, and that what they give stays what it was."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.lowered import Graph
from kernel_lsp.synthesis.graph.order import topological
from kernel_lsp.synthesis.graph.value import Recur, Recurrence
from kernel_lsp.synthesis.operators import lower
from kernel_lsp.synthesis.passes.rewrite import share
from kernel_lsp.synthesis.passes.stacked_recurrences import join_recurrences


class Between(nn.Module):
    """Two layers with another operation between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.RNN(20, 20), nn.RNN(20, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)[0]))[0]


def joined(layer: nn.Module, layers: int = 99, directions: int = 2) -> tuple[Graph, list[Recurrence], int]:
    graph = lower(capture(layer.eval(), (torch.randn(5, 3, 20),)))
    share(graph)
    shapes = [v.shape for v in graph.outputs]
    gone = join_recurrences(graph, lambda loop, count: count <= layers, lambda loop, count: count <= directions)
    assert [v.shape for v in graph.outputs] == shapes
    return graph, list(dict.fromkeys(v.op.loop for v in topological(graph.outputs) if isinstance(v.op, Recur))), gone


def test_layers_become_members_of_one() -> None:
    _, (loop,), gone = joined(nn.LSTM(20, 20, 4))
    assert (loop.members, gone) == (4, 3) and loop.below is not None
    assert all(v.shape[0] == 4 for v in (*loop.first, *loop.given))


def test_no_more_layers_than_fit() -> None:
    _, loops, gone = joined(nn.GRU(20, 20, 5), layers=2)
    assert [loop.members for loop in loops] == [2, 2, None] and gone == 2


def test_directions_become_members_of_one() -> None:
    _, loops, gone = joined(nn.GRU(20, 20, 2, bidirectional=True))
    assert [loop.members for loop in loops] == [2, 2] and gone == 2
    assert all(loop.below is None and not loop.backward for loop in loops)


@pytest.mark.parametrize("layer", [Between(), nn.LSTM(20, 20)], ids=["between", "one"])
def test_what_does_not_follow_directly_stays_apart(layer: Any) -> None:
    _, loops, gone = joined(layer)
    assert all(loop.members is None for loop in loops) and gone == 0


def test_the_last_states_of_all_layers_are_the_result_itself() -> None:
    graph, _, _ = joined(nn.LSTM(20, 20, 3))
    for value in graph.outputs[1:]:
        (source,) = [v for v in topological([value]) if isinstance(v.op, Recur)]
        assert value.op.operand is source  # type: ignore[attr-defined]
