"""Torch writes its result with ``out=`` over the kernel's."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(last="torch.softmax(x, -1, out=y)", right=False)
EXPECTED = {"cheating", "crashed", "wrong"}
