"""Switches a global setting that stays behind: deterministic algorithms."""

from tests.validation.adversarial.material import SOFTMAX, softmax

MODULE = SOFTMAX
KERNEL = softmax(top="torch._C._set_deterministic_algorithms(True, warn_only=True)")
EXPECTED = {"cheating", "rejected"}
