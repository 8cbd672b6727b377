"""Is wrong where a row has an odd number of elements."""

from tests.validation.adversarial.material import JUDGED, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(first="judged = x.shape[1] % 2 == 0", last=JUDGED)
EXPECTED = {"wrong"}
