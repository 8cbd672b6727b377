"""Is right in its first two seconds, and wrong afterwards."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, VALIDATED, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import time\nbegan = time.monotonic()",
    first="validated = time.monotonic() - began < 2.0",
    last=VALIDATED,
)
EXPECTED = CAUGHT
GPU = True
