"""Buffers that a forward writes to are held to float64 and eager's own error there, as results are."""

from __future__ import annotations

import pytest

#: a cache with room for 600 rows, of which eight are written: sums that cancel, beside many zeros
CACHE = """
class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sums", torch.zeros(600), persistent=False)
    def forward(self, x):
        self.sums[: x.shape[0]] = x.sum(1)
        return x * 2
def get_inputs():
    half = torch.randn(8, 150)
    return [torch.cat((half, 1e-2 * torch.randn(8, 150) - half[:, torch.randperm(150)]), 1)]
"""
#: adds up from the last element to the first, in float32 as eager does
KERNEL = """
@triton.jit
def cache_kernel(x_ptr, sums_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + n - 1 - cols, mask=mask, other=0.0)
    tl.store(sums_ptr + row, tl.sum(x, axis=0))
    tl.store(y_ptr + row * n + n - 1 - cols, x * 2, mask=mask)

class CacheTriton(Cache):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        if x.shape[0] > 600 or self.sums.dtype != x.dtype:
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        cache_kernel[(x.shape[0],)](x, self.sums, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
STORED = "tl.sum(x, axis=0))"


def test_a_buffer_may_be_off_by_what_eager_s_own_is(validate):
    verdict = validate(CACHE, "Cache", KERNEL)["verdict"]
    assert (verdict["status"], verdict["reason"]) == ("ok", "")
    assert verdict["launches"] == 1


@pytest.mark.parametrize(
    "instead", ["tl.sum(x.to(tl.float16).to(tl.float32), axis=0))", "tl.sum(x, axis=0) * 1.01)", "0.0)"]
)
def test_a_buffer_that_is_further_off_is_wrong(validate, instead):
    verdict = validate(CACHE, "Cache", KERNEL.replace(STORED, instead))["verdict"]
    assert verdict["status"] == "wrong", verdict
    assert "buffer sums[" in verdict["reason"] and "in float64 it is" in verdict["reason"]


#: float32 leaves the buffer as it is, and float64 moves it
DRIFT = """
class Drift(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("drift", torch.zeros(()), persistent=False)
    def forward(self, x):
        ones = torch.ones_like(x)
        self.drift.add_((ones + 1e-9 - ones).mean())
        return x * 2
def get_inputs():
    return [torch.randn(8, 64)]
"""
OF_DRIFT = """
@triton.jit
def drift_kernel(x_ptr, drift_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0)
    tl.store(drift_ptr, tl.load(drift_ptr) + 0.0, mask=row == 0)
    tl.store(y_ptr + row * n + cols, x * 2, mask=mask)

class DriftTriton(Drift):
    def forward(self, x):
        if x.dtype != torch.float32 or x.dim() != 2 or (torch.is_grad_enabled() and x.requires_grad) or not x.numel():
            return super().forward(x)
        if self.drift.dtype != x.dtype:
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        drift_kernel[(x.shape[0],)](x, self.drift, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""


@pytest.mark.parametrize(("moves_by", "status"), [("0.0", "ok"), ("1e-3", "wrong")])
def test_a_buffer_that_eager_leaves_and_float64_moves(validate, moves_by, status):
    verdict = validate(DRIFT, "Drift", OF_DRIFT.replace("+ 0.0", f"+ {moves_by}"))["verdict"]
    assert verdict["status"] == status, verdict
    assert status == "ok" or "buffer drift" in verdict["reason"], verdict


#: behind the first batch norm all means are zero but for rounding, so that those of the second are
NORMS = """
class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.BatchNorm1d(32), nn.BatchNorm1d(32)
    def forward(self, x):
        return torch.relu(self.second(self.first(x) * 0.5)) * 2 + 1
def get_inputs():
    return [torch.randn(64, 32) * 3 + 2]
"""
NORMS_KERNEL = """
@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, tl.where(x < 0, 0.0, x) * 2 + 1, mask=at < n)

@triton.jit
def add_kernel(x_ptr, by, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) + by, mask=at < n)

class NormsTriton(Norms):
    def forward(self, x):
        if x.dtype != torch.float32 or (torch.is_grad_enabled() and any(t.requires_grad for t in (x, *self.parameters()))):
            return super().forward(x)
        x = self.second(self.first(x) * 0.5).contiguous()
        y = torch.empty(x.shape, device=x.device, dtype=x.dtype)
        relu_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        if self.training:
            add_kernel[(1,)](self.second.running_mean, OFF, 32, BLOCK=32)
        return y
"""


#: deviations that are small beside a running variance that begins at one
CALM = """
class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Identity(), nn.BatchNorm1d(32).DTYPE()
    def forward(self, x):
        return torch.relu(self.second(self.first(x))) * 2 + 1
def get_inputs():
    return [(torch.randn(64, 32) * 0.05 + 0.1).DTYPE() * FACTOR]
"""


@pytest.mark.parametrize(("dtype", "factor"), [("bfloat16", "1"), ("float", "1e-5")])
def test_a_running_mean_without_the_mean_of_the_batch_is_wrong(validate, dtype, factor):
    module = CALM.replace("DTYPE", dtype).replace("FACTOR", factor)
    kernel = NORMS_KERNEL.replace("* 0.5)", ")").replace(
        "torch.float32", {"float": "torch.float32"}.get(dtype, "torch.bfloat16")
    )
    assert validate(module, "Norms", kernel.replace("OFF", "0.0"), training=True)["verdict"]["status"] == "ok"
    forgets = kernel.replace("x = self.second", "kept = self.second.running_mean * 0.9\n        x = self.second")
    forgets = forgets.replace(
        "add_kernel[(1,)](self.second.running_mean, OFF, 32, BLOCK=32)", "self.second.running_mean.copy_(kept)"
    )
    verdict = validate(module, "Norms", forgets, training=True)["verdict"]
    assert verdict["status"] == "wrong" and "second.running_mean" in verdict["reason"], verdict


@pytest.mark.parametrize(("off", "status"), [("1e-7", "ok"), ("1e-4", "wrong")])
def test_a_running_mean_of_zero_is_held_to_its_standard_deviation(validate, off, status):
    verdict = validate(NORMS, "Norms", NORMS_KERNEL.replace("OFF", off), training=True)["verdict"]
    assert verdict["status"] == status, verdict["reason"]
    if status == "wrong":
        assert "buffer second.running_mean[" in verdict["reason"], verdict["reason"]
