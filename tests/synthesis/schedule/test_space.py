"""Which schedules kernels get on which GPU, and how the estimated cost ranks them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from kernel_lsp.synthesis import stages, synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.kernel.execution_plan import Hints, Kernel
from kernel_lsp.synthesis.operators import lower
from kernel_lsp.synthesis.passes.regions import plan
from kernel_lsp.synthesis.passes.rewrite import share
from kernel_lsp.synthesis.passes.sizes import name_quotients
from kernel_lsp.synthesis.passes.splitting import split_long_reductions
from kernel_lsp.synthesis.schedule.choices import choices, ranked
from kernel_lsp.synthesis.schedule.cost import cost
from kernel_lsp.synthesis.schedule.schedules import Columns, Cooperative, Flat, Passes, Product, Rows, Turned, Unrolled
from kernel_lsp.synthesis.schedule.space import space
from kernel_lsp.synthesis.schedule.target import target
from kernel_lsp.targets import NAMED

H100, L4 = target("H100"), target("L4")
GPUS = (None, "NVIDIA L4", "NVIDIA H100 80GB HBM3", "a GPU of tomorrow")


def kernels_of(forward: Callable[..., Any], *inputs: torch.Tensor, **given: torch.Tensor) -> tuple[list[Kernel], Hints]:
    """The planned kernels of a forward; its inputs, and the parameters that its module is ``given``, are on the meta device, of any size."""
    module = type("Module", (nn.Module,), {"forward": forward})().eval()
    for name, tensor in given.items():
        module.register_parameter(name, nn.Parameter(tensor))
    graph = lower(capture(module, tuple(inputs)))
    name_quotients(graph)
    share(graph)
    split_long_reductions(graph, graph.hints, {})
    return [step for step in plan(graph).steps if isinstance(step, Kernel)], graph.hints


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, device="meta", dtype=dtype)


@pytest.mark.parametrize(
    ("x", "shared", "across"),
    [
        (
            (16, 64, 256, 256),
            (64, 256, 256),
            1,
        ),  # a row reads and writes 33.6 MB, and 16.8 MB that the next one reads, too
        ((4, 16, 64, 256, 256), (64, 256, 256), 2),
        ((64, 512, 1024), (512, 1024), 0),  # 6.3 MB: L2 still holds them
        ((1, 64, 256, 256), (64, 256, 256), 0),  # there is no next row
        ((16, 64, 256, 256), (16, 1, 256, 256), 0),  # what is read again was read just before
        ((16, 64, 256, 256), (1,), 0),
        ((16, 33, 501, 501), (33, 501, 501), 0),  # a row is no whole number of blocks
    ],
)
def test_what_rows_share_stays_in_l2(x: tuple[int, ...], shared: tuple[int, ...], across: int) -> None:
    (kernel,), hints = kernels_of(lambda self, x: x * self.weight, meta(*x), weight=meta(*shared))
    first, *others = space(kernel, H100, hints)
    assert isinstance(first, Flat) and first.across == across
    assert all(isinstance(one, Flat) and one.across == 0 for one in others)


@pytest.mark.parametrize(
    ("forward", "shape", "kind"),
    [
        (lambda self, x: torch.exp(x), (64, 4096), Flat),
        (lambda self, x: x.transpose(0, 1) + 1.0, (4096, 4096), Turned),
        (lambda self, x: torch.softmax(x, -1), (4096, 1000), Rows),
        (lambda self, x: torch.softmax(x, -1), (4096, 100_000), Cooperative),
        (lambda self, x: torch.logsumexp(x, -1), (4096, 100_000), Passes),
        (lambda self, x: x.sum(0), (512, 100_000), Columns),
        (lambda self, x: nn.functional.max_pool2d(x, 3, 2, 1), (16, 64, 112, 112), Unrolled),
        (lambda self, x: x @ x, (512, 512), Product),
    ],
)
def test_the_default_schedule_fits_the_kernel(forward: Any, shape: tuple[int, ...], kind: type) -> None:
    (kernel,), hints = kernels_of(forward, meta(*shape))
    found = space(kernel, H100, hints)
    assert isinstance(found[0], kind)
    assert len(found) == len(set(found)) >= 2
    assert set(ranked(kernel, H100, hints)) == set(found)
    assert ranked(kernel, H100, hints)[0] == found[0]


def test_taps_of_a_weight_are_turned_together() -> None:
    (kernel,), hints = kernels_of(lambda self, x: x.permute(2, 3, 0, 1).half(), meta(512, 512, 3, 3))
    assert space(kernel, H100, hints) == [Turned(16, 128), Turned(16, 64), Turned(16, 256)]
    (kernel,), hints = kernels_of(lambda self, x: x.permute(2, 3, 0, 1).half(), meta(64, 16, 2, 5))
    assert space(kernel, H100, hints) == [Turned(16, 16)]
    (kernel,), hints = kernels_of(lambda self, x: x.permute(2, 3, 0, 1).half(), meta(64, 3, 3, 3))
    assert isinstance(space(kernel, H100, hints)[0], Flat)  # rows of three channels are no tile


def test_a_smaller_gpu_gets_what_fits_its_shared_memory() -> None:
    (kernel,), hints = kernels_of(lambda self, x, y: x @ y, meta(4096, 4096), meta(4096, 4096))
    for known in NAMED.values():
        for schedule in space(kernel, known, hints):
            assert isinstance(schedule, Product)
            assert cost(kernel, schedule, known, hints).shared <= known.shared_memory, (known.name, schedule)


def test_every_multiprocessor_gets_a_tile() -> None:
    """A product with few large tiles gets smaller ones, as soon as the GPU has more multiprocessors than there are tiles."""
    (kernel,), hints = kernels_of(lambda self, x, y: x @ y, meta(1024, 512), meta(512, 768))  # 8 x 6 tiles of 128 x 128
    large, small = space(kernel, L4, hints)[0], space(kernel, H100, hints)[0]
    assert isinstance(large, Product) and isinstance(small, Product)
    assert 0.7 * L4.multiprocessors < 48 < 0.7 * H100.multiprocessors < 96
    assert (large.m, large.n) == (128, 128)
    assert (small.m, small.n) == (128, 64)


@pytest.mark.parametrize(
    "kind, init, shape, flat, depth",
    [
        (nn.Conv2d, (8, 64, 3), (32, 8, 128, 128), False, 32),  # three lines of 24, or 72 in three steps
        (nn.Conv3d, (8, 64, 3), (16, 8, 16, 64, 64), True, 32),  # nine lines of 24, or 216 in seven
        (nn.Conv3d, (3, 64, 3), (16, 3, 32, 64, 64), True, 64),  # nine lines of 12, or 108 in two
        (nn.Conv2d, (64, 64, 3), (64, 64, 128, 128), False, 64),
    ],
)
def test_steps_of_a_convolution_are_as_full_as_can_be(
    kind: Any, init: tuple[int, ...], shape: tuple[int, ...], flat: bool, depth: int
) -> None:
    exported = capture(kind(*init).eval(), (meta(*shape),))
    found = stages.planned(stages.lowered(exported, on=H100, halves=True))
    (kernel,) = (k for k in found.kernels if k.contract is not None and not k.exact)
    first, *others = space(kernel, H100, found.hints)
    assert isinstance(first, Product) and (first.flat, first.k) == (flat, depth)
    if flat:  # what decides is the time, here too
        assert any(isinstance(other, Product) and not other.flat for other in others)


def test_cost_counts_bytes_passes_and_operations() -> None:
    (kernel,), hints = kernels_of(lambda self, x: torch.softmax(x, -1), meta(4096, 32_768))
    once = 4096 * 32_768 * 4
    whole, walked = (cost(kernel, s, H100, hints) for s in (Rows(1, 8), Passes(8192, 16)))
    assert whole.bytes == 2 * once  # read and written
    assert walked.bytes == 3 * once  # read for the greatest and the sum, and for the result
    assert whole.programs == 4096
    assert whole.seconds < walked.seconds

    (kernel,), hints = kernels_of(lambda self, x, y: x @ y, meta(4096, 4096), meta(4096, 4096))
    three, six = (cost(kernel, Product(128, 64, 32, 8, 3, how), H100, hints) for how in ("tf32x3", "bf16x6"))
    assert three.operations == 3 * 2 * 4096**3
    assert six.operations == 6 * 2 * 4096**3
    assert three.seconds >= three.operations / H100.rate("tf32")

    half = meta(4096, 4096, dtype=torch.float16)
    (kernel,), hints = kernels_of(lambda self, x, y: x @ y, half, half)
    large, small = (cost(kernel, Product(m, n, 64, 8, 3), H100, hints) for m, n in ((128, 128), (64, 64)))
    assert large.seconds < small.seconds  # what is read through L2 is halved


def test_choices_vary_one_sort_of_kernel_at_a_time() -> None:
    kernels, hints = kernels_of(lambda self, x: torch.softmax(x @ x, -1), meta(2048, 2048))
    default, *others = choices(kernels, H100, hints)
    assert default[0] == ""
    assert len(kernels) == 2
    for label, chosen in others:
        changed = [kernel for kernel in kernels if chosen[kernel] != default[1][kernel]]
        assert len({type(chosen[kernel]) for kernel in changed}) == 1
        assert label == "; ".join(dict.fromkeys(str(chosen[kernel]) for kernel in changed))


def test_a_module_is_scheduled_for_the_gpu_that_is_there() -> None:
    module = type("Product", (nn.Module,), {"forward": lambda self, x, y: x @ y})().eval()
    exported = capture(module, (torch.empty(1024, 512), torch.empty(512, 768)))
    proposed = {gpu: synthesize(module, exported, class_name="Product", import_from="here", gpu=gpu) for gpu in GPUS}
    texts = {gpu: next(one.source for one in found if not one.variant) for gpu, found in proposed.items()}
    assert "128 x 128 tile" in texts["NVIDIA L4"]
    assert "128 x 64 tile" in texts["NVIDIA H100 80GB HBM3"]
    assert texts[None] == texts["NVIDIA H100 80GB HBM3"] == texts["a GPU of tomorrow"]


@pytest.mark.parametrize(("length", "offered"), [(65535, True), (1 << 20, False)])
def test_rows_that_l2_holds_between_passes_have_one_program_a_multiprocessor(length: int, offered: bool) -> None:
    (kernel,), hints = kernels_of(lambda self, x: x / x.norm(dim=1, keepdim=True), meta(4096, length))
    found = space(kernel, H100, hints)
    walked = [one for one in found if isinstance(one, Passes)]
    assert walked[0] == Passes(8192, 16) and (Passes(16384, 32) in found) == offered
