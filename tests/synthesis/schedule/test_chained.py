"""Schedules of two products in one kernel, and whether that form or the one with scores in memory comes first."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram

from kernel_lsp.synthesis import stages, synthesize
from kernel_lsp.synthesis.capture import capture
from kernel_lsp.synthesis.schedule.chain_space import chain_shared
from kernel_lsp.synthesis.schedule.choices import ranked
from kernel_lsp.synthesis.schedule.cost import cost
from kernel_lsp.synthesis.schedule.schedules import Chained
from kernel_lsp.synthesis.schedule.target import target
from kernel_lsp.targets import NAMED


class Attention(nn.Module):
    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)


@cache
def exported(*shape: int, dtype: torch.dtype = torch.float32, causal: bool = False) -> ExportedProgram:
    """Of tensors that take no memory."""
    with FakeTensorMode():
        return capture(Attention(causal), tuple(torch.empty(shape, dtype=dtype) for _ in range(3)))


SHAPES = [(4, 16, 2048, 64), (4, 32, 512, 128), (2, 8, 512, 256), (1, 2, 40, 16), (32, 32, 512, 1024)]


@pytest.mark.parametrize("gpu", NAMED)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_schedule_fits_the_gpu(shape: tuple[int, ...], dtype: torch.dtype, gpu: str) -> None:
    on = target(gpu)
    found = stages.planned(stages.lowered(exported(*shape, dtype=dtype), on=on, chained=True))
    (kernel,) = found.kernels
    offered = ranked(kernel, on, found.hints)
    assert offered and len(set(offered)) == len(offered)
    for schedule in offered:
        assert isinstance(schedule, Chained)
        assert chain_shared(schedule, dtype.itemsize, dtype.itemsize) <= on.shared_memory
        assert schedule.m >= 16 and schedule.n >= 16 and schedule.stages >= 1
        estimate = cost(kernel, schedule, on, found.hints)
        assert estimate.operations >= 4 * shape[0] * shape[1] * shape[2] ** 2 * shape[3]
        assert estimate.seconds >= estimate.bytes / on.bandwidth


class Scored(nn.Module):
    """Attention whose scores are computed by ``of``."""

    def __init__(self, of: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.of = of

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.of(q @ k.mT), -1) @ v


def offered(module: nn.Module, *shape: int, dtype: torch.dtype = torch.float32, gpu: str = "H100") -> list[Chained]:
    """The schedules of its one kernel."""
    on = target(gpu)
    with FakeTensorMode():
        graph = capture(module, tuple(torch.empty(shape, dtype=dtype) for _ in range(3)))
    found = stages.planned(stages.lowered(graph, on=on, chained=True))
    (kernel,) = found.kernels
    return [one for one in ranked(kernel, on, found.hints) if isinstance(one, Chained)]


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (Attention(), (4, 16, 2048, 64)),
        (Attention(causal=True), (4, 16, 2048, 128)),
        (Scored(lambda x: 50 * torch.tanh(x / 50)), (4, 16, 512, 64)),
        (
            Scored(lambda x: x.masked_fill(torch.ones(512, 512, dtype=torch.bool).tril() == 0, -torch.inf)),
            (64, 512, 64),
        ),
    ],
)
def test_attention_in_float32_splits_its_tiles_into_float16(module: nn.Module, shape: tuple[int, ...]) -> None:
    found = offered(module, *shape)
    assert found[0].halves and found[0].precision == "tf32x3"
    assert any(not one.halves for one in found)  # they err the least


@pytest.mark.parametrize(
    ("module", "shape", "dtype"),
    [
        (Scored(lambda x: torch.where(x > 3, 3, x)), (4, 16, 512, 64), torch.float32),  # a NaN would be lost here
        (Scored(lambda x: torch.nan_to_num(x)), (4, 16, 512, 64), torch.float32),
        (Attention(), (4, 16, 512, 256), torch.float32),  # no registers for the halves of such rows
        (Attention(), (4, 16, 512, 30), torch.float32),  # rows that are not read 16 bytes at once
        (Attention(), (1, 2, 40, 16), torch.float32),  # nothing to gain
        (Attention(), (4, 16, 512, 64), torch.float16),
    ],
)
def test_other_attention_does_not(module: nn.Module, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    assert not any(one.halves for one in offered(module, *shape, dtype=dtype))


def test_the_registers_of_a_thread_are_bounded_on_nvidias_gpus_alone() -> None:
    assert offered(Attention(), 4, 16, 2048, 64)[0].registers == 128
    assert not any(one.registers for one in offered(Attention(), 4, 16, 2048, 64, gpu="MI300X"))


def test_a_causal_mask_halves_the_estimate() -> None:
    on, seconds = target("H100"), []
    for causal in (False, True):
        found = stages.planned(stages.lowered(exported(4, 16, 4096, 128, dtype=torch.float16, causal=causal), on=on))
        (kernel,) = found.kernels
        seconds.append(cost(kernel, ranked(kernel, on, found.hints)[0], on, found.hints).seconds)
    assert 0.45 < seconds[1] / seconds[0] < 0.6


def variants(*shape: int, dtype: torch.dtype = torch.float32) -> list[str]:
    made = synthesize(
        Attention(), exported(*shape, dtype=dtype), class_name="Attention", import_from="attention", gpu="H100"
    )
    return [one.variant for one in made]


def test_scores_stay_on_chip_by_default_and_go_through_memory_beside_that() -> None:
    found = variants(4, 16, 2048, 128, dtype=torch.float16)
    assert stages.CHAINED in found[0]
    assert any(stages.CHAINED not in one for one in found)


def test_planes_with_scores_in_memory_are_timed_beside_float32_on_chip() -> None:
    found = variants(4, 16, 2048, 64)
    assert stages.CHAINED in found[0]
    assert any("planes" in one and stages.CHAINED not in one for one in found)


def test_a_wide_head_has_its_scores_in_memory_first() -> None:
    """KernelBench level 1 #97: each block of columns would compute the scores again."""
    found = variants(32, 32, 512, 1024)
    assert "planes" in found[0] and stages.CHAINED not in found[0]
    assert any(stages.CHAINED in one for one in found)
