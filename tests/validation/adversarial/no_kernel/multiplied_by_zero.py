"""The kernel runs, and its result times zero is added to torch's."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="y = torch.softmax(x, -1) + 0.0 * y", right=False)
EXPECTED = {"cheating", "wrong"}
