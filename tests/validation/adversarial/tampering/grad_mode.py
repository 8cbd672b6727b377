"""Turns gradients off for the whole process."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(top="torch.set_grad_enabled(False)")
EXPECTED = {"cheating", "rejected", "wrong"}
