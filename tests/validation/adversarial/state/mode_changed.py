"""Puts its module into training mode, so that the next call of another part behaves otherwise."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="self.train()")
EXPECTED = CAUGHT
