"""Is wrong where there is one row."""

from tests.validation.adversarial.material import JUDGED, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(first="judged = x.shape[0] != 1", last=JUDGED)
EXPECTED = {"wrong"}
