"""Computes what the module computes, and sets the random state of the whole process."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(first="torch.manual_seed(0)")
EXPECTED = {"cheating", "rejected", "wrong"}
