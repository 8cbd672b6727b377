"""The least time that bytes and FLOPs need, at the rates that the device itself reaches."""

from __future__ import annotations

import torch

from kernel_lsp.validation import timing

#: a kernel faster than this share of its roofline did not do the work, or was not timed
FLOOR = 0.8

#: operators that may read only a part of their inputs: least traffic is not known from the shapes
PARTIAL_READS = (
    "aten.embedding",
    "aten.index",
    "aten.index_select",
    "aten.gather",
    "aten.slice",
    "aten.select",
    "aten.narrow",
    "aten.take",
    "aten.masked_select",
)


def rates(dtype: torch.dtype) -> dict[str, float]:
    """``copy_bandwidth`` (bytes/s, read and written) and ``matmul_rate`` (FLOP/s) of the current CUDA device;
    ``beyond``, the microseconds that two events there show beyond the kernels between them, where that is known.

    For float32 the rate is that of the fastest known way to float32 accuracy: cuBLAS in float32, or three TF32
    products on the tensor cores (as ``tf32x3`` does); TF32's own where torch's settings allow it.
    """
    free, _ = torch.cuda.mem_get_info()
    count = min(256 << 20, int(free // 8))
    source = torch.empty(count, dtype=torch.uint8, device="cuda").zero_()
    target = torch.empty_like(source)
    copied = timing.interleaved({"copy": lambda *_: target.copy_(source)}, [((), {})], seconds=0.5)["copy"].median
    n = 4096
    kind = dtype if dtype in (torch.float16, torch.bfloat16, torch.float32) else torch.float32
    a = torch.randn(n, n, device="cuda").to(kind)
    b = torch.randn(n, n, device="cuda").to(kind)

    def rate() -> float:
        product = timing.interleaved({"mm": lambda *_: a @ b}, [((), {})], seconds=0.3)["mm"].median
        return 2 * n**3 / product * 1e6

    best = rate()
    matmul = torch.backends.cuda.matmul
    if kind is torch.float32 and not matmul.allow_tf32:
        try:
            matmul.allow_tf32 = True
            best = max(best, rate() / 3)
        finally:
            matmul.allow_tf32 = False
    found = {"copy_bandwidth": 2 * count / copied * 1e6, "matmul_rate": best}
    beyond = timing.overhead_by_spans()
    return found if beyond is None else found | {"beyond": beyond}


def microseconds(
    least_bytes: int | None, flops: int | None, copy_bandwidth: float | None, matmul_rate: float | None
) -> float | None:
    """max(bytes / bandwidth, FLOPs / rate), in microseconds; None where neither is known."""
    needs = []
    if least_bytes and copy_bandwidth:
        needs.append(least_bytes / copy_bandwidth * 1e6)
    if flops and matmul_rate:
        needs.append(flops / matmul_rate * 1e6)
    return max(needs) if needs else None
