"""Schedule variants through the real worker, timed on a GPU."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.alone, pytest.mark.timeout(300)]

MODULE = """
import torch
from torch import nn

class Steps(nn.Module):
    def forward(self, x):
        for _ in range(100):
            x = x * 0.5 + 1.0
        return x

def get_inputs(): return [torch.randn(1 << 22)]
"""
HEAD = """
import torch, triton
import triton.language as tl
from module import Steps

@triton.jit
def steps_kernel(x_ptr, y_ptr, total, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total, other=0.0)
    for _ in range(STEPS):
        x = x * 0.5 + 1.0
    tl.store(y_ptr + at, x, mask=at < total)

class StepsTriton(Steps):
    def forward(self, x):
        if x.dtype != torch.float32 or not x.is_contiguous() or not x.numel() or torch.is_grad_enabled() or not x.is_cuda:
            return super().forward(x)
"""
#: One launch, which repeats the step until nothing changes any more, and for much longer: it takes longer than all launches of the other.
ONE = """
        y = torch.empty_like(x)
        steps_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), STEPS=20000, BLOCK=1024)
        return y
"""
MANY = """
        for _ in range(100):
            y = torch.empty_like(x)
            steps_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), STEPS=1, BLOCK=1024)
            x = y
        return x
"""


def test_a_variant_of_many_launches_is_allowed_the_time_of_its_own_and_not_of_the_first_one(worker, tmp_path):
    """CUDA events do not see the host's time where it launches ahead, and the clock does."""
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    asked = {"path": str(path), "class_name": "Steps", "device": "cuda"}
    result = worker.call("tune", timeout=250, sources=[HEAD + ONE, HEAD + MANY], seconds=200, **asked)
    tried = result["tried"]
    assert [one["reason"] for one in tried] == ["", ""]
    assert all(one["timing"] for one in tried) and result["fastest"] == 1
    assert result["measurement"]["shapes"][0]["kernel"], result["measurement"]["missing"]


#: What is scaled by nearly nothing, as a LayerScale begins, has errors of TF32 once the weights are moved. 75 MB, so that float64 is computed in slices.
SCALED = """
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(64, 64, 3, padding=1)
        self.gamma = nn.Parameter(torch.full((64, 1, 1), 1e-4))

    def forward(self, x):
        return x + self.gamma * torch.relu(self.conv(x))

def get_inputs(): return [torch.randn(32, 64, 96, 96)]
"""


def test_schedules_of_a_branch_that_a_faint_scale_hides_are_timed(worker, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(SCALED)
    asked = {"path": str(path), "class_name": "Scaled", "device": "cuda", "training": False}
    candidates = worker.call("synthesize", timeout=200, seconds=200, **asked)["candidates"]
    assert "float16" in candidates[0]["arithmetic"] or "TF32" in candidates[0]["arithmetic"]
    result = worker.call("tune", timeout=250, sources=[c["source"] for c in candidates], seconds=200, **asked)
    tried = {c["variant"]: one["reason"] for c, one in zip(candidates, result["tried"], strict=True)}
    assert not any("relative error" in reason for reason in tried.values()), tried
    assert result["tried"][0]["timing"] and result["measurement"]["shapes"][0]["kernel"]
