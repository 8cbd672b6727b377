"""Is right in its first two seconds, and wrong afterwards."""

from tests.validation.adversarial.material import CAUGHT, JUDGED, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(
    top="import time\nbegan = time.monotonic()",
    first="judged = time.monotonic() - began < 2.0",
    last=JUDGED,
)
EXPECTED = CAUGHT
GPU = True
