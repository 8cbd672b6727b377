"""The kernel runs, and torch's result is then written over its own."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="y.copy_(torch.softmax(x, -1))")
EXPECTED = {"cheating"}
