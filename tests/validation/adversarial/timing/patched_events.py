"""Replaces elapsed_time of torch.cuda.Event."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(top="torch.cuda.Event.elapsed_time = lambda self, end: 0.002")
EXPECTED = {"cheating", "rejected"}
