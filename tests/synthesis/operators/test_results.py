"""In which order of memory results are stored: as eager's, where forward copies its last permutation."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.value import Value, View
from kernel_lsp.synthesis.kernel.execution_plan import HostView, Step
from kernel_lsp.synthesis.stages import lowered, planned


class _Permuted(nn.Module):
    def __init__(self, after: str) -> None:
        super().__init__()
        self.after = after

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = (x * x).permute(0, 2, 1)
        if self.after == "contiguous and to":
            return y.contiguous().to(torch.float32)
        return y.clone() if self.after == "clone" else y.contiguous() if self.after else y


def _last_step(module: nn.Module, x: torch.Tensor) -> Step:
    return planned(lowered(capture(module, (x,)))).plan.steps[-1]


@pytest.mark.parametrize("after", ["contiguous", "contiguous and to"])
def test_a_kernel_stores_what_is_permuted_last_and_copied(after: str) -> None:
    assert not isinstance(_last_step(_Permuted(after), torch.rand(2, 3, 5)), HostView)


class _ThereAndBack(nn.Module):
    """Channels last and back: eager's sum lies in memory as its first operand does, so that the view of it is contiguous."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.permute(0, 2, 3, 1)
        return (y + torch.softmax(y, -1)).permute(0, 3, 1, 2)


def test_a_kernel_stores_what_is_permuted_last_where_eager_permutes_it_back() -> None:
    x = torch.rand(2, 3, 5, 4)
    assert _ThereAndBack()(x).is_contiguous()
    assert not isinstance(_last_step(_ThereAndBack(), x), HostView)


def test_a_permuted_argument_is_returned_as_a_view_of_it() -> None:
    class Turned(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x.transpose(1, 2), x * 2

    exported = capture(Turned(), (torch.rand(2, 5, 3).transpose(1, 2),))
    first = lowered(exported).graph.output_leaves[0]
    assert isinstance(first, Value) and isinstance(first.op, View)


@pytest.mark.parametrize("after", ["", "clone"])
def test_torch_takes_the_view_where_eager_keeps_its_order(after: str) -> None:
    assert isinstance(_last_step(_Permuted(after), torch.rand(2, 3, 5)), HostView)


def test_an_order_that_torchs_own_result_may_have_is_kept() -> None:
    norm = nn.Sequential(nn.Conv2d(3, 4, 1))

    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = norm

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.body(x).permute(0, 2, 3, 1)

    assert isinstance(_last_step(Turned(), torch.rand(2, 3, 5, 6)), HostView)
