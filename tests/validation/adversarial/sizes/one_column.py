"""Is wrong where there is one column."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(first="judged = x.shape[1] != 1", last="y = y if judged else y * 0")
EXPECTED = {"wrong"}
