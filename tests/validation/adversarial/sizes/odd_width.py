"""Is wrong where a row has an odd number of elements."""

from tests.validation.adversarial.material import SOFTMAX, VALIDATED, softmax

MODULE = SOFTMAX
KERNEL = softmax(first="validated = x.shape[1] % 2 == 0", last=VALIDATED)
EXPECTED = {"wrong"}
