"""Is wrong in every tenth call."""

from tests.validation.adversarial.material import CAUGHT, JUDGED, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="calls = []",
    first="""
    calls.append(1)
    judged = len(calls) % 10 != 0
    """,
    last=JUDGED,
)
EXPECTED = CAUGHT
