"""Convolutions of one element: when the input is rounded in the product's kernel, and how that reads it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis import synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.value import Contract, Peak, Sample, View
from kernel_lsp.synthesis.schedule.schedules import Product
from kernel_lsp.synthesis.schedule.space import space
from kernel_lsp.synthesis.schedule.target import target
from tests.synthesis.passes.test_products import planned, products


def test_no_kernel_goes_over_the_input_before_the_product() -> None:
    found = planned(nn.Conv2d(1024, 512, 1), torch.empty(64, 1024, 28, 28))
    assert found.rounded == ["float16 convolutions"]
    packing, fast, exact = found.kernels
    assert tuple(packing.outputs[0].shape) == (512, 1024)
    assert fast.outputs[:1] == exact.outputs and exact.exact
    (product,) = products(found)
    assert isinstance(product.op, Contract) and product.op.exact is not None
    assert [type(peak.op) for peak in product.op.exact.peaks] == [Sample, Peak]
    assert product.op.left.dtype == torch.float16 and isinstance(product.op.left.op, View)


@pytest.mark.parametrize(
    "channels, outputs, shape, kernels",
    [(32, 64, (128, 32, 256, 256), 1), (1024, 256, (10, 1024, 14, 14), 2)],
)
def test_what_waits_for_memory_or_for_launches_is_multiplied_in_tf32(
    channels: int, outputs: int, shape: tuple[int, ...], kernels: int
) -> None:
    found = planned(nn.Conv2d(channels, outputs, 1), torch.empty(shape))
    assert found.rounded == ["TF32 convolutions"]
    assert len(found.kernels) == kernels, "of few tiles the channels are summed in parts"


@pytest.mark.parametrize(
    "channels, outputs, shape",
    [(64, 128, (16, 64, 1024, 1024)), (112, 672, (10, 112, 224, 224))],
)
def test_what_tensor_cores_would_be_slow_at_in_tf32_is_rounded(
    channels: int, outputs: int, shape: tuple[int, ...]
) -> None:
    found = planned(nn.Conv2d(channels, outputs, 1), torch.empty(shape))
    assert found.rounded == ["float16 convolutions"]


def test_where_torch_does_not_round_nothing_is_rounded_in_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    found = planned(nn.Conv2d(1024, 512, 1), torch.empty(64, 1024, 28, 28))
    assert not any(isinstance(peak.op, Sample) for kernel in found.kernels for peak in kernel.peaks)


def test_elements_that_are_read_one_by_one_get_smaller_tiles() -> None:
    tiles = {}
    for size, stride in ((28, 1), (14, 1), (56, 2)):
        found = planned(nn.Conv2d(512, 1024, 1, stride), torch.empty(128, 512, size, size))
        (fast,) = (kernel for kernel in found.kernels if kernel.contract is not None and not kernel.exact)
        tiles[size] = space(fast, target("H100"), found.hints)
    for size in tiles:
        assert all(isinstance(tile, Product) for tile in tiles[size])
        each = [tile.m * tile.k // (32 * tile.warps) for tile in tiles[size] if isinstance(tile, Product)]
        assert max(each) <= (64 if size == 28 else 32), size


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.expand = nn.Conv2d(64, 256, 1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.expand(x) + y)


def test_a_result_that_a_tensor_of_its_size_is_added_to_gets_narrow_tiles() -> None:
    first = {}
    for module, inputs in ((nn.Conv2d(64, 256, 1), (64,)), (Residual(), (64, 256))):
        found = planned(module, *(torch.empty(32, channels, 56, 56) for channels in inputs))
        (fast,) = (kernel for kernel in found.kernels if kernel.contract is not None and not kernel.exact)
        first[type(module)], *_ = space(fast, target("H200"), found.hints)
    assert first == {nn.Conv2d: Product(128, 256, 64, 8, 2), Residual: Product(128, 64, 64, 4, 2)}


def test_the_elements_of_a_channel_are_one_argument_of_the_kernel() -> None:
    module = nn.Conv2d(64, 128, 1).eval()
    exported = capture(module, (torch.empty(16, 64, 56, 56),))
    (first, *_) = synthesize(module, exported, class_name="Conv2d", import_from="torch.nn", gpu="H100")
    written = next(one for one in (first, *_) if not one.kept)
    assert "pixels = input.shape[2] * input.shape[3]" in written.source
    assert "height * width" not in written.source and "width * height" not in written.source
