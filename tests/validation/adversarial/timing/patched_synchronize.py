"""Replaces torch.cuda.synchronize with nothing."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(top="torch.cuda.synchronize = lambda device=None: None")
EXPECTED = {"cheating", "rejected"}
