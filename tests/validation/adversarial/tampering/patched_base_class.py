"""Replaces the forward of the user's class with its own, so that both compute the same."""

from tests.validation.adversarial.material import CAUGHT, SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(right=False) + "\nSoftmax.forward = lambda self, x: torch.exp(x - x.amax(-1, keepdim=True))\n"
EXPECTED = CAUGHT
