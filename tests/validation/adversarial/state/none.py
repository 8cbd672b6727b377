"""Returns nothing."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="return None")
EXPECTED = {"wrong"}
