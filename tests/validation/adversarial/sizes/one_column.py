"""Is wrong where there is one column."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(first="validated = x.shape[1] != 1", last="y = y if validated else y * 0")
EXPECTED = {"wrong"}
