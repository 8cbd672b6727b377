"""When a convolution's kernel stores what its tiles of pixels come to, and what is stored and read then."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from kernel_lsp.synthesis import stages, synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.graph.value import Partial, numel
from kernel_lsp.synthesis.kernel.execution_plan import Kernel, Planned, hint
from kernel_lsp.synthesis.schedule.schedules import Product, Rows
from kernel_lsp.synthesis.schedule.space import space
from kernel_lsp.synthesis.schedule.target import target
from tests.synthesis.schedule.test_folding import Then

H100 = target("H100")


def pooled(x: torch.Tensor) -> torch.Tensor:
    return functional.adaptive_avg_pool2d(functional.gelu(x), 1)


def normed(x: torch.Tensor) -> torch.Tensor:
    return functional.relu(functional.group_norm(x, 4))


def merged(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What is stored has another shape, in which pixels have no dimensions of their own."""
    flat = functional.relu(x.flatten(1))
    return flat, flat.view(x.shape).mean((2, 3))


def planned(layer: nn.Module, shape: tuple[int, ...], after: Callable[[torch.Tensor], torch.Tensor]) -> Planned:
    exported = capture(Then(layer, after).to("meta").eval(), (torch.empty(shape, device="meta"),))
    return stages.planned(stages.lowered(exported, on=H100, halves=True))


def product(found: Planned) -> Kernel:
    (kernel,) = [one for one in found.kernels if one.contract is not None and not one.exact]
    return kernel


def stored(kernel: Kernel, found: Planned) -> int:
    """Elements that it stores."""
    return sum(hint(numel(v.shape), found.hints) for v in kernel.outputs)


def test_what_only_its_mean_is_needed_of_is_not_stored() -> None:
    found = planned(nn.Conv2d(8, 64, 3), (128, 8, 128, 128), pooled)
    tiles = -(-126 * 126 // 128)
    assert len(product(found).partials) == 1
    assert stored(product(found), found) == tiles * 128 * 64


def test_a_norm_reads_the_convolution_once() -> None:
    found = planned(nn.Conv2d(8, 64, 3), (128, 8, 128, 128), normed)
    kernel = product(found)
    pixels, tiles = 128 * 64 * 126 * 126, -(-126 * 126 // 128)
    assert stored(kernel, found) == pixels + 2 * tiles * 128 * 64
    readers = [one for one in found.kernels if kernel.outputs[0] in one.leaves]
    assert len(readers) == 1 and not readers[0].folds


def test_what_is_reduced_to_an_output_is_not_stored() -> None:
    found = planned(nn.Conv2d(8, 64, 3), (16, 8, 128, 128), lambda x: x.amax((2, 3), keepdim=True))
    assert len(product(found).outputs) == len(product(found).partials) == 1


def test_tiles_of_all_images_count() -> None:
    found = planned(nn.Conv2d(256, 256, 1), (64, 256, 56, 56), lambda x: functional.max_pool2d(normed(x), 2))
    kernel = product(found)
    assert kernel.partials
    tiles = [(tile.m, tile.n) for tile in space(kernel, H100, found.hints) if isinstance(tile, Product)]
    assert {m for m, _ in tiles} == {128} and tiles[0] == (128, 128)


def test_larger_images_have_more_tiles_than_a_row_in_registers() -> None:
    found = planned(nn.Conv2d(8, 64, 3), (128, 8, 128, 128), normed)
    together = [one for one in found.kernels if set(product(found).partials) & set(one.leaves)]
    assert together and not any(isinstance(space(one, H100, found.hints)[0], Rows) for one in together)


def test_each_tile_has_pixels_of_one_image() -> None:
    found = planned(nn.Conv2d(16, 128, 3), (64, 16, 64, 64), normed)
    for kernel in (one for one in found.kernels if one.contract is not None):
        for tile in space(kernel, H100, found.hints):
            assert isinstance(tile, Product)
            assert (tile.n if kernel.exact else tile.m) == 128
            assert tile.m * tile.n <= 128 * 32 * tile.warps


@pytest.mark.parametrize(
    ("layer", "after", "kinds"),
    [
        (
            nn.ConvTranspose2d(16, 64, 4, 2, 1),
            normed,
            ["squares", "squares", "sum"],
        ),  # all phases have all of their pixels
        (
            nn.ConvTranspose2d(16, 64, 3, 2, 1),
            normed,
            ["squares", "squares", "sum"],
        ),  # some have one row or column less
        (nn.ConvTranspose2d(16, 64, 3, 2, 1, bias=False), functional.instance_norm, ["squares", "squares", "sum"]),
        (nn.ConvTranspose2d(32, 64, 3, 2, 1, groups=2), lambda x: (x, x.amax((2, 3)), x.mean((2, 3))), ["amax", "sum"]),
    ],
)
def test_each_tile_has_pixels_of_one_phase(
    layer: nn.Module, after: Callable[[torch.Tensor], torch.Tensor], kinds: list[str]
) -> None:
    assert isinstance(layer, nn.ConvTranspose2d)
    found = planned(layer, (64, layer.in_channels, 128, 128), after)
    kernel = product(found)
    assert sorted(v.op.kind for v in kernel.partials if isinstance(v.op, Partial)) == kinds
    for part in kernel.partials:
        assert tuple(hint(n, found.hints) for n in part.shape) == (128, 64, 64, 1, 2, 1, 2)
    assert len(kernel.outputs) == 1 + len(kernel.partials)
    for one in found.kernels:
        if one.contract is not None:
            assert {(t.n if one.exact else t.m) for t in space(one, H100, found.hints) if isinstance(t, Product)} == {
                128
            }


def test_pairs_of_phases_are_reduced_together() -> None:
    found = planned(nn.ConvTranspose2d(16, 64, 3, 2, 1), (64, 16, 128, 128), normed)
    first, second, *others = space(product(found), H100, found.hints)
    assert isinstance(first, Product) and isinstance(second, Product)
    assert (first.joined, first.warps) == (True, 8) and (second.joined, second.warps) == (True, 4)
    assert all(isinstance(tile, Product) and not tile.joined for tile in others)


def test_phases_that_are_not_stored_need_no_pairs() -> None:
    found = planned(nn.ConvTranspose2d(16, 64, 3, 2, 1), (64, 16, 128, 128), pooled)
    assert len(product(found).outputs) == len(product(found).partials) == 1
    assert not any(isinstance(tile, Product) and tile.joined for tile in space(product(found), H100, found.hints))


@pytest.mark.parametrize(
    ("layer", "shape", "after"),
    [
        (nn.Conv2d(16, 64, 3), (1, 16, 32, 32), normed),  # two launches more take longer than what is read
        (nn.Conv2d(256, 256, 3, padding=1), (64, 256, 9, 9), normed),  # a third of each tile would be empty
        (nn.ConvTranspose2d(16, 64, 3, 2, 1, dilation=2), (64, 16, 64, 64), normed),  # zeros between the pixels
        (nn.ConvTranspose2d(16, 64, 4, 2, 1), (16, 16, 9, 9), normed),  # a phase has two thirds of a tile
        (nn.ConvTranspose2d(16, 64, 3, 2, 1), (64, 16, 64, 64), lambda x: functional.relu(x[..., 1:]).mean((2, 3))),
        (nn.Conv2d(8, 64, 3), (128, 8, 128, 128), lambda x: functional.relu(x).mean(3)),  # a part of the pixels
        (nn.Conv2d(8, 64, 3), (128, 8, 128, 128), lambda x: x * torch.tanh(x).mean((2, 3), keepdim=True)),
        (
            nn.Conv2d(64, 64, 3),
            (64, 64, 64, 64),
            lambda x: functional.instance_norm(x).relu(),
        ),  # one kernel reads it once
        (
            nn.Conv2d(8, 64, 3),
            (16, 8, 512, 512),
            lambda x: x.flatten(2).softmax(-1),
        ),  # the sum of exponentials reads it
        (nn.Conv2d(8, 64, 3), (16, 8, 512, 512), lambda x: (x.mean((2, 3)), (x * x).mean((2, 3)))),
        (nn.Conv2d(8, 64, 3), (128, 8, 128, 128), lambda x: merged(x)),
    ],
)
def test_where_it_does_not_pay_or_fit_the_convolution_is_stored(
    layer: nn.Module, shape: tuple[int, ...], after: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    assert not product(planned(layer, shape, after)).partials


def test_the_form_without_is_offered_beside_it() -> None:
    module = Then(nn.Conv2d(8, 64, 3), normed).to("meta").eval()
    exported = capture(module, (torch.empty(128, 8, 128, 128, device="meta"),))
    found = synthesize(module, exported, class_name="Then", import_from="torch.nn", gpu="NVIDIA H100")
    ours = [one.variant for one in found if "float16 convolutions" in one.variant]
    assert stages.FOLDED in ours[0]
    assert any(stages.FOLDED not in variant for variant in ours)
