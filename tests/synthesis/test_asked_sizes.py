"""Sizes of views that forward gives as numbers are numbers in the graph, where torch.export has quotients of quotients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import ExportedProgram

from kernel_lsp.synthesis.capture import capture


class Applied(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def _graph(function: Callable[..., Any], x: torch.Tensor) -> ExportedProgram:
    exported = capture(Applied(function), (x,))
    assert not any(node.target is torch.ops.aten.expand.default for node in exported.graph.nodes)
    for n in (8, 20):
        other = torch.randn(n, *x.shape[1:])
        torch.testing.assert_close(exported.module()(other), function(other), rtol=0, atol=0, equal_nan=True)
    return exported


def _last(exported: ExportedProgram) -> tuple[Any, ...]:
    """The sizes of the only result."""
    (result,) = exported.graph.output_node().args[0]
    return tuple(result.meta["val"].shape)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.view(x.shape[0] // 4, 4, -1).transpose(0, 1) * 2,
        lambda x: torch.reshape(x, (x.shape[0] // 4, 4, x.shape[1])).transpose(0, 1),
        lambda x: x.unflatten(0, (x.shape[0] // 4, 4)).transpose(1, 0),
        lambda x: nn.functional.pad(x, (0, 0, 0, -x.shape[0] % 4)).view(-(-x.shape[0] // 4), 4, x.shape[1]).sum(2).T,
    ],
    ids=["view", "reshape", "unflatten", "padded"],
)
def test_a_size_that_is_asked_for_is_a_number(function: Callable[..., Any]) -> None:
    first, *others = _last(_graph(function, torch.randn(12, 5)))
    assert first == 4 and isinstance(first, int)
    assert isinstance(others[0], torch.SymInt)


def _changed(x: torch.Tensor) -> torch.Tensor:
    """An infinity in the view stays one where its part is changed in place."""
    y = x.clone()
    y[2, 1] = torch.inf
    view = y.view(y.shape[0] // 4, 4, -1)
    view[:, 1].mul_(2)
    return y


def test_a_view_that_is_changed_in_place_is_left_as_it_is() -> None:
    exported = _graph(_changed, torch.randn(12, 5))
    assert "aten.sub" not in str(exported.graph)


def test_an_expansion_of_forward_itself_stays() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0], 1, -1).expand(-1, 3, -1)

    exported = capture(Applied(function), (torch.randn(12, 5),))
    assert _last(exported)[1] == 3
    assert any(node.target is torch.ops.aten.expand.default for node in exported.graph.nodes)
