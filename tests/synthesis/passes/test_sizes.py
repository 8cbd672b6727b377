"""Sizes that are quotients get a name, and the graph means the same."""

from __future__ import annotations

import sympy
import torch
import torch.nn.functional as F
from torch import nn

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.lowered import Graph
from kernel_lsp.synthesis.graph.order import topological
from kernel_lsp.synthesis.operators import lower
from kernel_lsp.synthesis.passes.sizes import name_quotients


class Pooled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(F.max_pool2d(x, 3, 2, 1), 3, 2, 1) * 2.0


class Halved(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, : x.shape[1] // 2] * 2.0


def graph_of(module: nn.Module, *inputs: torch.Tensor) -> Graph:
    return lower(capture(module.eval(), inputs))


def quotients(graph: Graph) -> list[sympy.Expr]:
    return [
        e
        for value in topological(graph.outputs)
        for n in value.shape
        for e in sympy.preorder_traversal(n)
        if e.func.__name__ == "FloorDiv"
    ]


def test_quotients_of_quotients_get_names_one_after_the_other() -> None:
    graph = graph_of(Pooled(), torch.randn(2, 3, 37, 50))
    assert quotients(graph)
    defined = name_quotients(graph)
    assert quotients(graph) == []
    assert [symbol.name for symbol in defined] == ["out_height", "out_width", "out_height2", "out_width2"]
    (result,) = graph.outputs
    assert [int(n.subs(graph.hints)) for n in result.shape] == [2, 3, 10, 13]
    known = {s: n for s, n in graph.hints.items() if s not in defined}
    for symbol, size in defined.items():  # each stands for what those before it give
        known[symbol] = int(size.subs(known))
    assert known == graph.hints


def test_half_a_size_stays_as_it_is() -> None:
    graph = graph_of(Halved(), torch.randn(2, 10))
    before = [value.shape for value in graph.outputs]
    assert name_quotients(graph) == {}
    assert [value.shape for value in graph.outputs] == before
