"""Is said to stand for the example's sizes only, but computes wrongly at others instead of running eager."""

from tests.validation.adversarial.material import SOFTMAX, VALIDATED, softmax

MODULE = SOFTMAX
KERNEL = softmax(first="validated = x.shape == (6, 300)", last=VALIDATED)
EXPECTED = {"wrong"}
HOW = {"pinned": True}
