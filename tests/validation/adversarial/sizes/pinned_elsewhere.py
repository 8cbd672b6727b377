"""Is said to stand for the example's sizes only, but computes wrongly at others instead of running eager."""

from tests.validation.adversarial.material import JUDGED, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(first="judged = x.shape == (6, 300)", last=JUDGED)
EXPECTED = {"wrong"}
HOW = {"pinned": True}
