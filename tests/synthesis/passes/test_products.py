"""Products in half precision, cut results and concatenations by pieces: what the passes make of a graph."""

from __future__ import annotations

import pytest
import sympy
import torch
import torch.nn.functional as F
from torch import nn

from kernel_lsp.synthesis import stages, synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.map import dims
from kernel_lsp.synthesis.graph.order import topological
from kernel_lsp.synthesis.graph.value import Contract, Pointwise, Value, View, numel
from kernel_lsp.synthesis.kernel.execution_plan import Planned, hint
from kernel_lsp.synthesis.schedule.extents import share_of_places
from kernel_lsp.synthesis.schedule.schedules import Product as Tile
from kernel_lsp.synthesis.schedule.space import space
from kernel_lsp.synthesis.schedule.target import target


def planned(module: nn.Module, *inputs: torch.Tensor, halves: bool = True) -> Planned:
    exported = capture(module.eval(), inputs)
    return stages.planned(stages.lowered(exported, on=target("H100") if halves else None, halves=halves))


def products(found: Planned) -> list[Value]:
    return [v for v in topological(found.graph.outputs) if isinstance(v.op, Contract)]


class Product(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x @ y


def test_a_large_product_goes_through_three_pairs_of_planes() -> None:
    found = planned(Product(), torch.empty(4096, 4096), torch.empty(4096, 4096))
    (product,) = products(found)
    assert isinstance(product.op, Contract)
    assert product.op.outer and product.op.size(product.op.outer) == 3
    assert product.op.left.dtype == torch.float16
    assert product.dtype == torch.float32
    assert found.rounded == ["float16 planes"]


def test_a_sum_of_one_step_takes_all_three_products_in_it() -> None:
    found = planned(Product(), torch.empty(16384, 32), torch.empty(32, 16384))
    (product,) = products(found)
    assert isinstance(product.op, Contract) and product.op.begins_again
    kernel = next(one for one in found.kernels if one.contract is product and not one.exact)
    first, *others = space(kernel, target("H100"), found.hints)
    assert isinstance(first, Tile) and first.together
    assert all(isinstance(tile, Tile) and tile.together for tile in others)
    # Two programs fit on a multiprocessor: 116 registers a thread, by the compiler.
    assert first.m * first.n <= 128 * 64 and first.warps == 8


def test_planes_have_rows_that_are_read_16_bytes_at_a_time() -> None:
    found = planned(Product(), torch.empty(4100, 2949), torch.empty(2949, 4101))
    (product,) = products(found)
    assert isinstance(product.op, Contract)
    for operand in (product.op.left, product.op.right):  # K is last, and longer
        assert isinstance(operand.op, View)
        assert operand.op.operand.shape[-1].subs(found.graph.hints) == 2960
    assert product.op.exact is not None and product.op.exact.product.size("k").subs(found.graph.hints) == 2949


def test_the_square_of_a_matrix_is_written() -> None:
    class Square(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ x

    module = Square()
    exported = capture(module, (torch.empty(4096, 4096),))
    first = synthesize(module, exported, class_name="Square", import_from="torch.nn", gpu="H100")[0]
    assert first.arithmetic == "float16 planes"


@pytest.mark.parametrize("m, n, k", [(64, 64, 64), (16, 8192, 8192), (512, 512, 512)])
def test_a_small_or_thin_product_is_left_as_it_is(m: int, n: int, k: int) -> None:
    found = planned(Product(), torch.empty(m, k), torch.empty(k, n))
    assert found.rounded == []
    assert all(isinstance(v.op, Contract) and not v.op.outer for v in products(found))


def test_a_product_in_half_precision_is_left_as_it_is() -> None:
    half = torch.empty(4096, 4096, dtype=torch.float16)
    assert planned(Product(), half, half).rounded == []


def test_the_square_of_a_matrix_splits_it_once() -> None:
    class Square(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ x

    found = planned(Square(), torch.empty(4096, 4096))
    assert len(found.kernels) == 3  # one that splits, one that multiplies, one for what float16 does not hold


def _convolution(padding: int = 1) -> nn.Module:
    return nn.Sequential(nn.Conv2d(64, 128, 3, padding=padding), nn.ReLU())


def test_a_convolution_is_rounded_and_its_range_is_looked_at() -> None:
    found = planned(_convolution(), torch.empty(16, 64, 112, 112))
    assert found.rounded == ["float16 convolutions"]
    rounding, packing, fast, exact = found.kernels
    assert rounding.peaks and packing.peaks
    assert not fast.exact and exact.exact
    assert fast.product.outer and fast.outputs == exact.outputs


def test_of_few_channels_the_places_along_the_last_axis_are_summed_with_them() -> None:
    found = planned(nn.Conv2d(3, 64, 3), torch.empty(16, 3, 256, 256))
    (product,) = products(found)
    assert isinstance(product.op, Contract) and product.op.exact is not None
    assert [product.op.size(letter) for letter in product.op.outer] == [3]  # the rows of the window
    assert [product.op.size(letter) for letter in product.op.summed if letter not in product.op.outer] == [3, 4]
    (last, _) = (operand.op.operand for operand in (product.op.left, product.op.exact.product.right))
    assert last.shape[-1] == 4 and last.dtype == torch.float16


def test_groups_of_channels_lie_apart() -> None:
    found = planned(nn.Conv2d(32, 64, 3, groups=4), torch.empty(64, 32, 128, 128))
    (product,) = products(found)
    assert isinstance(product.op, Contract) and isinstance(product.op.left.op, View)
    assert tuple(product.op.left.op.operand.shape[d] for d in (1, -1)) == (4, 8)


def test_where_torch_does_not_round_a_convolution_has_the_error_of_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    found = planned(_convolution(), torch.empty(16, 64, 112, 112))
    assert found.rounded == ["convolutions of float16 planes"]
    (product,) = products(found)
    assert isinstance(product.op, Contract) and product.op.exact is not None
    assert product.op.size(product.op.planes) == 3 and not product.op.exact.tf32


@pytest.mark.parametrize(
    "size, stride, padding, dilation",
    [(3, 2, 1, 1), (5, 3, 0, 1), (4, 3, 2, 2), (7, 2, 3, 1), (9, 4, 1, 3)],
)
def test_the_phases_of_a_transposed_convolution_take_each_element_of_the_weight_once(
    size: int, stride: int, padding: int, dilation: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "float16_pays", lambda *_: True)
    module = nn.ConvTranspose1d(64, 64, size, stride, padding, 0, 1, True, dilation)
    found = planned(module, torch.empty(8, 64, 512))
    (product,) = products(found)
    assert isinstance(product.op, Contract)
    ((_, length),) = product.op.lengths
    (phase,) = length.free_symbols
    phases = int(product.op.size(product.op.axes[dims(len(product.op.axes)).index(phase)]))
    taken = [int(length.xreplace({phase: sympy.Integer(i)}).doit()) for i in range(phases)]
    assert sum(taken) == size
    assert share_of_places(product.op, found.hints) == pytest.approx(size / phases / max(taken))


@pytest.mark.parametrize("size, stride, padding, dilation", [(1, 2, 0, 1), (3, 4, 1, 3), (2, 6, 1, 2)])
def test_of_a_filter_shorter_than_the_stride_each_element_is_multiplied_once(
    size: int, stride: int, padding: int, dilation: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many output channels as the filter has elements for all of them; then each result takes one of these, or is zero."""
    monkeypatch.setattr(stages, "float16_pays", lambda *_: True)
    module = nn.ConvTranspose1d(64, 32, size, stride, padding, 0, 1, True, dilation)
    found = planned(module, torch.empty(8, 64, 512))
    (product,) = products(found)
    assert isinstance(product.op, Contract) and not product.op.lengths
    assert hint(numel(product.shape), found.hints) == 8 * 32 * size * 512


def test_a_convolution_of_planes_stands_beside_the_one_that_rounds() -> None:
    module = _convolution().eval()
    exported = capture(module, (torch.empty(16, 64, 112, 112),))
    found = synthesize(module, exported, class_name="Sequential", import_from="torch.nn", gpu="H100")
    arithmetic = [one.arithmetic for one in found]
    assert arithmetic[0] == "float16 convolutions"
    assert "convolutions of float16 planes" in arithmetic
    assert "torch.backends.cudnn.allow_tf32" not in found[arithmetic.index("convolutions of float16 planes")].source


def test_without_a_gpu_nothing_is_rounded() -> None:
    module = _convolution().eval()
    exported = capture(module, (torch.empty(16, 64, 112, 112),))
    found = synthesize(module, exported, class_name="Sequential", import_from="torch.nn")
    assert not any(one.arithmetic.startswith("float16") for one in found)


def test_the_kernel_is_used_only_while_torch_rounds_its_convolutions_too() -> None:
    module = _convolution().eval()
    exported = capture(module, (torch.empty(16, 64, 112, 112),))
    first = synthesize(module, exported, class_name="Sequential", import_from="torch.nn", gpu="H100")[0]
    assert first.arithmetic == "float16 convolutions"
    assert "torch.backends.cudnn.allow_tf32" in first.source


class Tail(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.scale = nn.ConvTranspose2d(6, 8, 3, stride=2), nn.Parameter(torch.randn(8, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.up(x)) * self.scale


def test_what_follows_a_product_that_gives_too_much_stays_in_its_kernel() -> None:
    found = planned(Tail(), torch.empty(2, 6, 5, 4), halves=False)
    (kernel,) = found.kernels
    assert kernel.cut is found.graph.outputs[0]
    ((whole, _),) = kernel.stores
    height = whole.shape[2] * whole.shape[3]
    assert sympy.expand(height - kernel.cut.shape[2] * kernel.cut.shape[3]) != 0


def test_what_is_added_to_a_product_that_gives_too_much_is_read_in_its_kernel() -> None:
    class Along(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up = nn.ConvTranspose1d(4, 4, 3, stride=2)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return self.up(x) + y

    found = planned(Along(), torch.empty(2, 4, 6), torch.empty(2, 4, 13), halves=False)
    (kernel,) = found.kernels
    assert kernel.cut is found.graph.outputs[0]


def test_a_part_of_a_product_that_is_combined_with_another_part_is_no_longer_than_that() -> None:
    class Gate(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.both = nn.Linear(32, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            left, right = self.both(x).chunk(2, 1)
            return left * torch.sigmoid(right)

    found = planned(Gate(), torch.empty(48, 32), halves=False)
    assert [kernel.cut for kernel in found.kernels] == [None, None]
    assert tuple(found.kernels[-1].outputs[0].shape)[1] == 32


def test_what_is_added_to_phases_in_pairs_gets_a_smaller_tile() -> None:
    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up = nn.ConvTranspose2d(64, 128, 3, 2, 1)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.up(x)) + y

    rows = {}
    for module, shapes in ((Decoder(), [(16, 128, 255, 255)]), (nn.ConvTranspose2d(64, 128, 3, 2, 1), [])):
        found = planned(module, torch.empty(16, 64, 128, 128), *map(torch.empty, shapes))
        (fast,) = (kernel for kernel in found.kernels if kernel.contract is not None and not kernel.exact)
        default = space(fast, target("H100"), found.hints)[0]
        assert isinstance(default, Tile) and default.joined
        rows[len(shapes)] = default.m
    assert rows == {1: 64, 0: 128}


def test_phases_in_pairs_have_a_smaller_tile_and_more_warps_before_libdevice() -> None:
    """tanh takes tens of registers: with 128 results a thread spilled 1,484 bytes."""

    class Up(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up = nn.ConvTranspose2d(64, 64, 4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(self.up(x))

    found = planned(Up(), torch.empty(32, 64, 128, 128))
    (fast,) = (kernel for kernel in found.kernels if kernel.contract is not None and not kernel.exact)
    default = space(fast, target("H100"), found.hints)[0]
    assert isinstance(default, Tile) and default.joined
    assert (default.m, default.n, default.warps) == (64, 64, 8)


def test_pieces_of_one_tensor_are_stored_by_one_kernel() -> None:
    class Both(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([torch.relu(x), torch.relu(-x)], 1)

    (kernel,) = planned(Both(), torch.empty(3, 4, 5)).kernels
    assert kernel.whole is not None and len(kernel.stores) == 2
    assert len(kernel.leaves) == 1


def test_the_sum_of_a_thin_product_is_split() -> None:
    found = planned(Product(), torch.empty(16, 8192), torch.empty(8192, 8192), halves=True)
    (product,) = products(found)
    assert product.shape[0] == 4
    assert len(found.kernels) == 2  # the second adds the parts up


def test_the_channels_of_a_convolution_of_few_tiles_are_summed_in_parts() -> None:
    found = planned(nn.Conv2d(512, 512, 3, padding=1, bias=False), torch.empty(2, 512, 7, 7))
    (product,) = products(found)
    assert found.rounded == ["TF32 convolutions"] and product.shape[0] == 16
    assert len(found.kernels) == 2


@pytest.mark.parametrize(
    "channels, window, size, parts",
    [(3, 40, 224, 1), (100, 5, 11, 4), (8, 7, 9, 1)],
)
def test_parts_have_equally_many_channels_and_a_step_s_at_least(
    channels: int, window: int, size: int, parts: int
) -> None:
    found = planned(nn.Conv2d(channels, 64, window, window, bias=False), torch.empty(2, channels, size, size))
    (product,) = products(found)
    assert isinstance(product.op, Contract) and product.op.tf32
    assert (product.shape[0] if "S" in product.op.axes else 1) == parts


class Attention(nn.Module):
    """The attention of an autoencoder's middle block, of which a convolution reads the result through views."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Conv2d(64, 64, 1) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, c, h, w = x.shape
        q, k, v = (f(x).reshape(b, 1, c, h * w).mT for f in (self.query, self.key, self.value))
        return x + self.out(F.scaled_dot_product_attention(q, k, v).mT.reshape(b, c, h, w))


def test_a_convolution_rounds_what_attention_in_one_kernel_gives() -> None:
    module = Attention().eval()
    exported = capture(module, (torch.empty(2, 64, 16, 16),))
    found = synthesize(module, exported, class_name="Attention", import_from="attention", gpu="H100")
    assert any(one.arithmetic == "TF32 convolutions" for one in found) and not found[0].faults


def test_a_product_that_has_a_second_kernel_for_what_float16_does_not_hold_is_whole() -> None:
    module = nn.Conv2d(1024, 1024, 1).eval()
    exported = capture(module, (torch.empty(10, 1024, 7, 7),))
    found = synthesize(module, exported, class_name="Conv2d", import_from="torch.nn", gpu="H100")
    assert found[0].arithmetic == "float16 convolutions" and not found[0].faults


def test_operands_of_several_convolutions_are_rounded_to_the_nearest() -> None:
    """Once, by the kernel that computes one which nothing else reads; in tiles where there are few steps; else as a copy."""
    colours = nn.Conv2d(3, 32, 3)
    inner = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.colours, self.inner = colours, inner

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.relu(self.colours(x))
            return y + self.inner(y)

    found = planned(Net(), torch.empty(4, 3, 14, 14))
    assert found.rounded == ["TF32 convolutions"]
    first, second, third = products(found)
    weights_and_tiles = [product.op.nearest for product in (first, second, third) if isinstance(product.op, Contract)]
    assert weights_and_tiles == [(True, True), (True, False), (True, False)]
    rounded = [
        v for v in topological(found.graph.outputs) if isinstance(v.op, Pointwise) and v.op.function == "to_tf32"
    ]
    assert len(rounded) == 2, "what the sum needs, too, is copied, and what lies between the two convolutions is not"
    (one,) = products(planned(nn.Conv2d(32, 32, 3), torch.empty(4, 32, 14, 14)))
    assert isinstance(one.op, Contract) and one.op.tf32 and one.op.nearest == (False, False)


@pytest.mark.parametrize("m, n, k", [(4096, 512, 512), (16, 8192, 512), (1024, 1024, 8192)])
def test_a_product_of_enough_tiles_or_a_short_sum_is_not_split(m: int, n: int, k: int) -> None:
    found = planned(Product(), torch.empty(m, k), torch.empty(k, n))
    assert all(len(product.shape) == 2 for product in products(found))
