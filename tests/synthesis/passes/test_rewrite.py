"""Values that are equal become one; values that only look alike do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.lowered import Graph
from kernel_lsp.synthesis.graph.order import topological
from kernel_lsp.synthesis.graph.value import Pointwise, viewed
from kernel_lsp.synthesis.operators import lower
from kernel_lsp.synthesis.passes.rewrite import share


def shared(forward: Callable[[torch.Tensor], Any], x: torch.Tensor) -> Graph:
    kind = type("Module", (nn.Module,), {"forward": lambda self, x: forward(x)})
    graph = lower(capture(kind(), (x,)))
    share(graph)
    return graph


def functions(graph: Graph) -> list[str]:
    return sorted(v.op.function for v in topological(graph.outputs) if isinstance(v.op, Pointwise))


def test_equal_expressions_are_computed_once() -> None:
    graph = shared(lambda x: (x.exp() + 1.0) * (x.exp() + 1.0), torch.randn(4, 5))
    assert functions(graph) == ["add", "exp", "mul"]


def test_equal_outputs_are_computed_once_and_have_memory_of_their_own() -> None:
    graph = shared(lambda x: (x.exp(), torch.exp(x), torch.exp(x).view(5, 4)), torch.randn(4, 5))
    for _ in range(2):
        assert functions(graph) == ["exp", "identity", "identity"]
        assert len({viewed(leaf) for leaf in graph.output_leaves}) == len(graph.outputs) == 3
        share(graph)


def test_one_tensor_that_is_returned_twice_stays_one() -> None:
    def forward(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x.exp()
        return y, y, y.view(-1), x.view(-1), x.reshape(-1)

    graph = shared(forward, torch.randn(4, 5))
    assert functions(graph) == ["exp"]
    assert graph.output_leaves[0] is graph.output_leaves[1] is viewed(graph.output_leaves[2])


def test_other_numbers_and_other_orders_stay_apart() -> None:
    graph = shared(lambda x: (x - 1.0) * (1.0 - x) * (x - 2.0), torch.randn(4, 5))
    assert functions(graph).count("sub") == 3


def test_other_dimensions_stay_apart() -> None:
    graph = shared(lambda x: x.sum(0, keepdim=True) + x.sum(1, keepdim=True), torch.randn(5, 5))
    assert sum(type(v.op).__name__ == "Reduce" for v in topological(graph.outputs)) == 2


def test_the_same_number_in_another_dtype_stays_apart() -> None:
    graph = shared(lambda x: (x + 1.0, x.double() + 1.0), torch.randn(4, 5))
    assert [v.dtype for v in graph.outputs] == [torch.float32, torch.float64]
