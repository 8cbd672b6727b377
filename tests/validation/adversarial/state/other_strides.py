"""Returns the right values in column order where the module's are in row order."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="y = y.t().contiguous().t()")
EXPECTED = {"wrong"}
