"""Returns a tensor without memory."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last='y = y.to("meta")')
EXPECTED = CAUGHT
