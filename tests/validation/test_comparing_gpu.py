"""A kernel timed beside the one before it on a real GPU: equal ones are not told apart, one that does 8 % more is."""

from __future__ import annotations

import pytest

from tests.validation.modules import DOUBLE

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

THRESHOLD = 1.05
#: ``{share}`` of the elements are computed twice
KERNEL = """
@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) % n
    x = tl.load(x_ptr + at)
    tl.store(y_ptr + at, tl.where(x < 0, 0.0, x) * 2 + 1)

class DoubleTriton(Double):
    def forward(self, x):
        if x.dtype != torch.float32 or x.numel() == 0 or (torch.is_grad_enabled() and x.requires_grad):
            return super().forward(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        double_kernel[(triton.cdiv(int(x.numel() * {share}), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
"""


def test_a_slow_down_of_8_percent_is_found_and_an_equal_kernel_never_is(compare):
    before = KERNEL.replace("{share}", "1.0")
    slower = compare(DOUBLE, "Double", KERNEL.replace("{share}", "1.08"), before)
    assert slower["ratio"]["low"] > THRESHOLD, slower
    faster = compare(DOUBLE, "Double", before, KERNEL.replace("{share}", "1.08"))
    assert faster["ratio"]["high"] < 1 / THRESHOLD, faster
    for number in range(20):
        same = compare(DOUBLE, "Double", before + f"# {number}\n", before)
        print(number, same["ratio"])
        assert same["ratio"]["low"] > 1 / THRESHOLD and same["ratio"]["high"] < THRESHOLD, same


def test_a_kernel_before_that_is_wrong_is_not_compared_with(compare):
    wrong = KERNEL.replace("{share}", "1.0").replace("* 2 + 1", "* 2")
    found = compare(DOUBLE, "Double", KERNEL.replace("{share}", "1.0"), wrong)
    assert found["ratio"] is None
    assert "relative error" in found["missing"]
