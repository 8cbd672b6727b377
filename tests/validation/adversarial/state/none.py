"""Returns nothing."""

from material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="return None")
EXPECTED = {"wrong"}
