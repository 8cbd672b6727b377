"""A kernel beside the one before it where there is no GPU: no times, and no guesses."""

from tests.validation.modules import DOUBLE, DOUBLE_KERNEL


def test_under_the_interpreter_nothing_is_compared(compare):
    kernel = DOUBLE_KERNEL.replace("{share}", "1.0")
    found = compare(DOUBLE, "Double", kernel, kernel, device="interpreter")
    assert found["ratio"] is None
    assert found["missing"].startswith("no CUDA GPU here")
