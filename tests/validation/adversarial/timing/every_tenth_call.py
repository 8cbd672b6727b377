"""Is wrong in every tenth call."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, VALIDATED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="calls = []",
    first="""
    calls.append(1)
    validated = len(calls) % 10 != 0
    """,
    last=VALIDATED,
)
EXPECTED = CAUGHT
