"""Is right in its first forty calls, and wrong afterwards."""

from tests.validation.adversarial.material import CAUGHT, JUDGED, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="calls = []",
    first="""
    calls.append(1)
    judged = len(calls) <= 40
    """,
    last=JUDGED,
)
EXPECTED = CAUGHT
