"""Computes what the module computes, and sets the random state of Python's ``random``."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(top="import random", first="random.seed(0)")
EXPECTED = {"cheating", "rejected", "wrong"}
