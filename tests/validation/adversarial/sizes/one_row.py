"""Is wrong where there is one row."""

from tests.validation.adversarial.material import SOFTMAX, VALIDATED, softmax

MODULE = SOFTMAX
KERNEL = softmax(first="validated = x.shape[0] != 1", last=VALIDATED)
EXPECTED = {"wrong"}
