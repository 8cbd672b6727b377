"""Truncates a file of the user without opening it."""

from tests.validation.adversarial.material import SOFTMAX, STOPPED, softmax

MODULE = SOFTMAX
KERNEL = softmax(top="import os", first='os.truncate("@outside@/keep.txt", 0)')
EXPECTED = STOPPED
