"""Is right in its first forty calls, and wrong afterwards."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, VALIDATED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="calls = []",
    first="""
    calls.append(1)
    validated = len(calls) <= 40
    """,
    last=VALIDATED,
)
EXPECTED = CAUGHT
