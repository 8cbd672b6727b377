"""The least time that bytes and FLOPs need, at the rates that the device itself reaches."""

from __future__ import annotations

import torch

from kernel_lsp.validation import timing

#: a kernel that takes less than this share of the time for its bytes did not do the work, or was not timed
FLOOR = 0.8

#: fewest bytes of a copy that tell the bandwidth: more than the L2 cache of any GPU holds twice
_LEAST_COPY = 128 << 20

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


def rates() -> dict[str, float]:
    """What the current CUDA device reaches: bytes/s, FLOP/s and microseconds.

    ``copy_bandwidth`` (bytes/s, read and written) and the rates of products (FLOP/s) in ``float32``, ``tf32`` and ``float16``;
    ``beyond``, the microseconds that two events there show beyond the kernels between them, where that is known. A rate is 0.0
    where other programs leave too little memory to tell it.
    """
    free, _ = torch.cuda.mem_get_info()
    count = min(256 << 20, int(free // 8))
    source = torch.empty(count, dtype=torch.uint8, device="cuda").zero_()
    target = torch.empty_like(source)
    copied = timing.interleaved({"copy": lambda *_: target.copy_(source)}, [((), {})], seconds=0.5)["copy"].median
    n = 4096
    a, b = (torch.randn(n, n, device="cuda") for _ in range(2))

    def rate(kind: torch.dtype) -> float:
        left, right = a.to(kind), b.to(kind)
        product = timing.interleaved({"mm": lambda *_: left @ right}, [((), {})], seconds=0.2)["mm"].median
        return 2 * n**3 / product * 1e6 if product else 0.0

    bandwidth = 2 * count / copied * 1e6 if count >= _LEAST_COPY and copied else 0.0
    found = {"copy_bandwidth": bandwidth, "float16": rate(torch.float16)}
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    try:
        for name, matmul.allow_tf32 in (("float32", False), ("tf32", True)):
            found[name] = rate(torch.float32)
    finally:
        matmul.allow_tf32 = before
    beyond = timing.overhead_by_spans()
    return found if beyond is None else found | {"beyond": beyond}


def matmul_rate(rates: dict[str, float], dtype: torch.dtype, tf32: bool) -> float:
    """FLOP/s of the fastest known way to the accuracy that products of ``dtype`` have in torch.

    For float32 that is its own rate, or three products on the tensor cores: of TF32 numbers, or of the two halves of each
    number in float16. Where torch may take TF32 (``tf32``), one product does, also in float16, whose mantissa is as long.
    """
    if dtype in (torch.float16, torch.bfloat16):
        return rates["float16"]
    if dtype.is_floating_point and dtype.itemsize == 1:
        return 2 * rates["float16"]  # the tensor cores' rate doubles with each halving of the operands
    if dtype is torch.float64:
        return rates["float32"]
    passes = 1 if tf32 else 3
    return max(rates["float32"], rates["tf32"] / passes, rates["float16"] / passes)


def microseconds(
    least_bytes: int | None, flops: int | None, copy_bandwidth: float | None, matmul_rate: float | None
) -> float | None:
    """max(bytes / bandwidth, FLOPs / rate), in microseconds; None where neither is known.

    ``copy_bandwidth``: bytes/s, ``matmul_rate``: FLOP/s.

    Source: Williams, Waterman and Patterson, Roofline, 2009.
    """
    needs = []
    if least_bytes and copy_bandwidth:
        needs.append(least_bytes / copy_bandwidth * 1e6)
    if flops and matmul_rate:
        needs.append(flops / matmul_rate * 1e6)
    return max(needs) if needs else None
