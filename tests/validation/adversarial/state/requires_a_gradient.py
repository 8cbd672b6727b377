"""Its result requires a gradient where none of its inputs does."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="y.requires_grad_()")
EXPECTED = {"wrong"}
