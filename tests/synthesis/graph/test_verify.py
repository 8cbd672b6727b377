"""A graph that does not hold together is refused, with the value where that shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sympy
import torch
from torch import nn

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.lowered import Graph
from kernel_lsp.synthesis.graph.order import topological
from kernel_lsp.synthesis.graph.value import Concat, Contract, Input, Pointwise, Recur, Recurrence, Reduce, Value, View
from kernel_lsp.synthesis.graph.verify import Malformed, verify
from kernel_lsp.synthesis.operators import lower


def graph_of(forward: Callable[..., Any], *inputs: torch.Tensor) -> Graph:
    kind = type("Module", (nn.Module,), {"forward": lambda self, *x: forward(*x)})
    return lower(capture(kind(), inputs))


def first(graph: Graph, kind: type) -> Value:
    return next(v for v in topological(graph.outputs) if isinstance(v.op, kind))


def everything(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cat([(x @ y).transpose(0, 1) + 1.0, y.transpose(0, 1).sum(1, keepdim=True).expand(-1, 4)], 1)


def whole() -> Graph:
    return graph_of(everything, torch.randn(4, 5), torch.randn(5, 6))


def test_what_is_lowered_holds_together() -> None:
    verify(whole())


def wider(value: Value) -> None:
    value.shape = (*value.shape[:-1], value.shape[-1] + 1)


def longer_sum(graph: Graph) -> None:
    wider(first(graph, Reduce))


def other_map(graph: Graph) -> None:
    wider(first(graph, View))


def other_pieces(graph: Graph) -> None:
    wider(first(graph, Concat))


def other_product(graph: Graph) -> None:
    wider(first(graph, Contract))


def other_operand(graph: Graph) -> None:
    value = first(graph, Pointwise)
    value.shape = tuple(sympy.Integer(n) for n in (9, 9))


def unnamed_axis(graph: Graph) -> None:
    op = first(graph, Contract).op
    assert isinstance(op, Contract)
    op.left_axes = op.left_axes[:-1]


def free_axis_gone_through(graph: Graph) -> None:
    op = first(graph, Contract).op
    assert isinstance(op, Contract)
    op.outer = op.axes[0]


def unknown_input(graph: Graph) -> None:
    graph.inputs = [v for v in graph.inputs if v is not first(graph, Input)]


@pytest.mark.parametrize(
    "broken",
    [
        longer_sum,
        other_map,
        other_pieces,
        other_product,
        other_operand,
        unnamed_axis,
        free_axis_gone_through,
        unknown_input,
    ],
    ids=lambda broken: broken.__name__,
)
def test_a_mistake_is_found(broken: Callable[[Graph], None]) -> None:
    graph = whole()
    broken(graph)
    with pytest.raises(Malformed):
        verify(graph)


def recurrent() -> tuple[Graph, Recurrence]:
    graph = lower(capture(nn.GRU(6, 20), (torch.randn(4, 3, 6),)))
    op = first(graph, Recur).op
    assert isinstance(op, Recur)
    return graph, op.loop


def other_beginning(loop: Recurrence) -> None:
    loop.first = tuple(Value(v.op, (*v.shape, sympy.Integer(2)), v.dtype) for v in loop.first)


def other_state_after(loop: Recurrence) -> None:
    wider(loop.next[0])


def other_place(loop: Recurrence) -> None:
    wider(loop.parts[0])


def unknown_state(loop: Recurrence) -> None:
    loop.held = tuple(Value(v.op, v.shape, v.dtype) for v in loop.held)


@pytest.mark.parametrize(
    "broken", [other_beginning, other_state_after, other_place, unknown_state], ids=lambda broken: broken.__name__
)
def test_a_mistake_in_a_recurrence_is_found(broken: Callable[[Recurrence], None]) -> None:
    graph, loop = recurrent()
    verify(graph)
    broken(loop)
    with pytest.raises(Malformed):
        verify(graph)
