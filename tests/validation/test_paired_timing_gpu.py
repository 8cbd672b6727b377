"""A kernel timed beside the one before it on a real GPU: equal ones are not told apart, one that does 8 % more is."""

from __future__ import annotations

import pytest

from tests.validation.modules import DOUBLE_KERNEL, LARGE_DOUBLE

pytestmark = [pytest.mark.gpu, pytest.mark.alone, pytest.mark.timeout(300)]

THRESHOLD = 1.05


def test_a_slow_down_of_8_percent_is_found_and_an_equal_kernel_never_is(compare):
    before = DOUBLE_KERNEL.replace("{share}", "1.0")
    slower = compare(LARGE_DOUBLE, "Double", DOUBLE_KERNEL.replace("{share}", "1.08"), before)
    assert slower["ratio"]["low"] > THRESHOLD, slower
    faster = compare(LARGE_DOUBLE, "Double", before, DOUBLE_KERNEL.replace("{share}", "1.08"))
    assert faster["ratio"]["high"] < 1 / THRESHOLD, faster
    for number in range(20):
        same = compare(LARGE_DOUBLE, "Double", before + f"# {number}\n", before)
        print(number, same["ratio"])
        assert same["ratio"]["low"] > 1 / THRESHOLD and same["ratio"]["high"] < THRESHOLD, same


def test_a_kernel_before_that_is_wrong_is_not_compared_with(compare):
    wrong = DOUBLE_KERNEL.replace("{share}", "1.0").replace("* 2 + 1", "* 2")
    found = compare(LARGE_DOUBLE, "Double", DOUBLE_KERNEL.replace("{share}", "1.0"), wrong)
    assert found["ratio"] is None
    assert "relative error" in found["missing"]
