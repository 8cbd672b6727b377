"""Replaces Python's clocks with ones that stand still."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="""
    import time
    time.perf_counter = time.monotonic = time.time = lambda: 0.0
    time.perf_counter_ns = time.monotonic_ns = lambda: 0
    """
)
EXPECTED = {"cheating", "rejected"}
