"""How long operators of torch and kernels take on a GPU, by its data sheet and by the shares of it that were measured.

Constants are per kind of work, not per problem. Those of the GPU are from one H100 80GB HBM3, torch 2.11 and
Triton 3.6 (docs/performance.md); on another GPU the same shares of its own data sheet are assumed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from kernel_lsp.synthesis.schedule.replay import OPERATOR
from kernel_lsp.synthesis.schedule.rewritings import REACHED_CUDNN
from kernel_lsp.targets import Target

from . import launches
from .operators import Operator

#: Seconds of the host that one more launch of the same operator takes: a launch without PyTorch's dispatch before it.
NEXT_LAUNCH = 5e-6
#: Seconds that the host is taken to be ahead of the GPU, as a model before the module keeps it; validation times so, too
#: (``HEAD_START``, docs/performance.md, "How times are taken").
AHEAD = 100e-6
#: Seconds of the smallest kernel: one that clears a few bytes takes about as long.
SMALLEST = 2e-6
#: Share of the memory's bandwidth that a copy reaches: 2.95 of 3.35 TB/s.
COPIED = 0.88
#: Share of it that torch's pooling reaches, which computes each window anew: 0.4 to 1.2 TB/s in one to three dimensions.
POOLED = 0.3
#: Shares of the rate that cuBLAS reaches: 51 of 67 TFLOP/s in float32, 390 of 495 in TF32.
CUBLAS = 0.77
#: Share of TF32's rate that cuDNN reaches in three dimensions, about half of that in two: 79 and 87 TFLOP/s
#: at 64 channels, 13 to 23 at three, which fill three of eight.
CUDNN_3D = 0.12
#: Tensor cores take channels by so many: the rest of a step or a tile is multiplied, too.
CHANNELS, COLUMNS = 8, 32
#: Share of bandwidth that torch's own depthwise kernel reaches, which reads its windows through the cache. An assumption.
DEPTHWISE = 0.4
#: Seconds of a step of cuDNN's recurrent layers with a launch a step: six layers of 512 steps take 46.0 ms.
STEP = 15e-6
#: Seconds of a step where all are one kernel: 3 us for an exchange between multiprocessors. An assumption.
PERSISTENT_STEP = 3e-6
#: Share of the float32 rate that memory-efficient attention reaches in float32, and of the tensor cores' in half precision.
ATTENTION = 0.5


@dataclass(frozen=True)
class Work:
    """What one entry of the queue takes: ``host`` seconds until it is launched, ``gpu`` seconds once it runs."""

    host: float
    gpu: float


def seconds(works: Iterable[Work]) -> float:
    """Seconds from the first launch to the end of the last kernel, the host ``AHEAD`` at the beginning."""
    host, gpu = 0.0, AHEAD
    for work in works:
        host += work.host
        gpu = max(gpu, host) + work.gpu
    return gpu - AHEAD


def work_of(one: Operator, target: Target) -> Work:
    """What an operator of torch takes on ``target``."""
    return Work(OPERATOR + (one.launches - 1) * NEXT_LAUNCH, max(_gpu(one, target), one.launches * SMALLEST))


def _gpu(one: Operator, target: Target) -> float:
    if one.recurrent is not None:
        found = one.recurrent
        step = PERSISTENT_STEP if found.persistent else STEP
        steps = found.steps * found.chains * step if found.steps > 1 else 0.0
        return max(steps, one.operations / (CUBLAS * target.rate("float32")), _memory(one.bytes, target))
    if one.convolution is not None:
        return _convolution(one, target)
    moved = _memory(one.bytes, target)
    if one.name == "aten.scaled_dot_product_attention":
        return max(moved, one.operations / (ATTENTION * _product_rate(one.dtype, target)))
    if launches.is_product(one.name):
        return max(moved, one.operations / (CUBLAS * _product_rate(one.dtype, target)))
    if launches.is_pooling(one.name):
        return moved * COPIED / POOLED
    if one.rows is not None:  # a block of threads for each row: multiprocessors without one do nothing
        return moved / min(1.0, max(1, one.rows) / target.multiprocessors)
    return moved


def _memory(count: int, target: Target) -> float:
    return count / (COPIED * target.bandwidth)


def _convolution(one: Operator, target: Target) -> float:
    found = one.convolution
    assert found is not None
    moved = _memory(one.bytes, target)
    if found.depthwise:
        return moved * COPIED / DEPTHWISE
    filled = _filled(found.channels, CHANNELS) * _filled(found.columns, COLUMNS)
    reached = CUDNN_3D if found.spatial == 3 else REACHED_CUDNN
    if found.dtype != torch.float32:
        rate = reached * _product_rate(found.dtype, target)
    elif torch.backends.cudnn.allow_tf32:
        rate = reached * target.rate("tf32")
    else:
        rate, filled = CUBLAS * target.rate("float32"), 1.0
    return max(moved, one.operations * filled / rate)


def _filled(count: int, step: int) -> float:
    return -(-count // step) * step / count if count else 1.0


def _product_rate(dtype: torch.dtype, target: Target) -> float:
    """Of a matrix product in eager, where torch's own settings allow TF32 or not."""
    if dtype == torch.float32:
        return target.rate("tf32" if torch.backends.cuda.matmul.allow_tf32 else "float32")
    name = str(dtype).removeprefix("torch.")
    return target.rate(name) if name in target.rates or name.startswith("float8") else target.rate("float32") / 2
